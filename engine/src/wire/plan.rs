//! A plan of an answer: series in which chunks of blocks are given by file and offset instead of
//! their bytes, so that a host can copy the bytes from its files.
//!
//! A series is a `prometheus.ChunkedSeries` after its length, with fields that only plans have:
//!
//! - 3 of the series: block and name of a file, as in `01M7YFGMMBDYF668YRHWQK6XAK/chunks/000001`.
//!   Files are numbered from 0, in the order in which they are named; a name precedes the first
//!   chunk of its file.
//! - 5 and 6 of a chunk, in place of `type` and `data`: the number of the file, and the offset in
//!   it at which the chunk begins.

use super::chunked::{
    chunk_message_bytes, decode_chunk, put_chunk_content, put_times, split_series, times_bytes,
};
use super::{ChunkedSeries, Fields, Value, WireError};
use crate::chunk::Chunk;
use crate::codec::{put_uvarint, uvarint_bytes};
use crate::model::{Labels, TimeRange};

/// A chunk of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlannedChunk {
    /// A chunk with its bytes.
    Given(Chunk),
    /// A chunk that a file of a block has.
    Stored {
        /// Times of its first and last sample.
        span: TimeRange,
        /// Number of the file in the plan.
        file: u32,
        /// Offset of the chunk in the file, in bytes.
        offset: u32,
    },
}

impl PlannedChunk {
    #[inline]
    fn message_bytes(&self) -> usize {
        match self {
            PlannedChunk::Given(chunk) => chunk_message_bytes(chunk),
            PlannedChunk::Stored { span, file, offset } => {
                let numbers = uvarint_bytes(u64::from(*file)) + uvarint_bytes(u64::from(*offset));
                times_bytes(span.start_ms, span.end_ms) + 2 + numbers
            }
        }
    }
}

/// Appends a series, with the names of files that no earlier series has used.
pub fn put_planned_series(
    out: &mut Vec<u8>,
    labels: &Labels,
    names: &[String],
    chunks: &[PlannedChunk],
) {
    let field_bytes = |bytes: usize| 1 + uvarint_bytes(bytes as u64) + bytes;
    let names_bytes: usize = names.iter().map(|name| field_bytes(name.len())).sum();
    let chunks_bytes: usize = chunks.iter().map(|chunk| field_bytes(chunk.message_bytes())).sum();
    put_uvarint(out, (labels.packed().len() + names_bytes + chunks_bytes) as u64);
    out.extend_from_slice(labels.packed());
    // Names precede the chunks, which refer to files by number.
    for name in names {
        out.push(0x1a);
        put_uvarint(out, name.len() as u64);
        out.extend_from_slice(name.as_bytes());
    }
    for chunk in chunks {
        out.push(0x12);
        put_uvarint(out, chunk.message_bytes() as u64);
        match chunk {
            PlannedChunk::Given(chunk) => put_chunk_content(out, chunk),
            PlannedChunk::Stored { span, file, offset } => {
                put_times(out, span.start_ms, span.end_ms);
                // Fields that only plans have.
                out.push(0x28);
                put_uvarint(out, u64::from(*file));
                out.push(0x30);
                put_uvarint(out, u64::from(*offset));
            }
        }
    }
}

/// Splits a series of a plan off the front; the names of files are skipped.
pub fn split_planned_series(
    bytes: &[u8],
) -> Result<(ChunkedSeries<PlannedChunk>, &[u8]), WireError> {
    split_series(bytes, true, decode_planned)
}

fn decode_planned(message: &[u8]) -> Result<PlannedChunk, &'static str> {
    let mut span = TimeRange { start_ms: 0, end_ms: 0 };
    let (mut file, mut offset) = (None, 0);
    for field in Fields::new(message) {
        match field.map_err(|malformed| malformed.what)? {
            (1, Value::Varint(time)) => span.start_ms = time as i64,
            (2, Value::Varint(time)) => span.end_ms = time as i64,
            (5, Value::Varint(number)) => file = Some(number),
            (6, Value::Varint(place)) => offset = place,
            _ => {}
        }
    }
    // Without a file, the message has the bytes of the chunk.
    let Some(file) = file else { return decode_chunk(message).map(PlannedChunk::Given) };
    // In a reference to a chunk, file and offset have 32 bits each.
    let outside = "a chunk is outside of any file";
    let file = u32::try_from(file).map_err(|_| outside)?;
    let offset = u32::try_from(offset).map_err(|_| outside)?;
    Ok(PlannedChunk::Stored { span, file, offset })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::Encoding;
    use proptest::prelude::*;

    fn any_chunk() -> impl Strategy<Value = PlannedChunk> {
        let given = |(min_time_ms, max_time_ms, data): (i64, i64, Vec<u8>)| {
            let (encoding, data) = (Encoding::Histogram, data.into());
            PlannedChunk::Given(Chunk { encoding, min_time_ms, max_time_ms, data })
        };
        let stored = |(start_ms, end_ms, file, offset): (i64, i64, u32, u32)| {
            PlannedChunk::Stored { span: TimeRange { start_ms, end_ms }, file, offset }
        };
        prop_oneof![
            any::<(i64, i64, Vec<u8>)>().prop_map(given),
            any::<(i64, i64, u32, u32)>().prop_map(stored)
        ]
    }

    proptest! {
        #[test]
        fn series_of_plans_come_back(
            chunks in prop::collection::vec(any_chunk(), 0..6),
            names in prop::collection::vec("[a-z0-9/]{0,30}", 0..3),
        ) {
            let labels = Labels::from_sorted([("__name__", "up"), ("job", "node")]);
            let mut bytes = Vec::new();
            put_planned_series(&mut bytes, &labels, &names, &chunks);
            bytes.push(7);
            let (series, rest) = split_planned_series(&bytes).expect("a series");
            prop_assert_eq!((series.labels, series.chunks, rest), (labels, chunks, &[7][..]));
        }

        #[test]
        fn hostile_plans_are_survived(bytes: Vec<u8>, at in 0usize..60, wrong: u8) {
            let _ = split_planned_series(&bytes);
            let span = TimeRange { start_ms: 5, end_ms: 9 };
            let chunk = PlannedChunk::Stored { span, file: 1, offset: u32::MAX };
            let labels = Labels::from_sorted([("__name__", "up")]);
            let mut bytes = Vec::new();
            put_planned_series(&mut bytes, &labels, &["x".into()], &[chunk]);
            let at = at % bytes.len();
            bytes[at] = wrong;
            let _ = split_planned_series(&bytes);
        }
    }
}
