//! Encodes the series of a read: as streamed frames, and as engine instances exchange them.
//!
//! Streamed frames (remote read 1.0, STREAMED_XOR_CHUNKS) are laid out by
//! `engine/remote-write/src/frames.rs`, which the host shares.

use super::{Fields, Value, WireError};
use crate::chunk::{Chunk, Encoding};
use crate::codec::{put_uvarint, split_uvarint, uvarint_bytes};
use crate::model::Labels;
use tidepool_remote_write::{FrameOptions, FrameWriter};

/// Size at which a streamed frame is closed, in bytes: upstream's default.
pub const DEFAULT_FRAME_BYTES_MAX: u32 = 1024 * 1024;

const CHUNKED_SERIES: &str = "prometheus.ChunkedSeries";

/// A series as engine instances exchange it; `C` is the type of its chunks.
#[derive(Debug)]
pub struct ChunkedSeries<C = Chunk> {
    /// Label set that identifies the series.
    pub labels: Labels,
    /// Chunks of the series in time order.
    pub chunks: Vec<C>,
}

/// Appends a series as one or more streamed frames.
pub fn put_streamed_frames(
    out: &mut Vec<u8>,
    options: FrameOptions,
    labels: &Labels,
    chunks: &[Chunk],
) {
    let mut frames = FrameWriter::new(out, options, labels.packed());
    for chunk in chunks {
        put_chunk_content(frames.chunk(chunk_message_bytes(chunk)), chunk);
    }
    frames.finish();
}

/// Appends a series as a length-delimited `prometheus.ChunkedSeries`.
pub fn put_chunked_series(out: &mut Vec<u8>, labels: &Labels, chunks: &[Chunk]) {
    put_uvarint(out, chunked_series_bytes(labels, chunks) as u64);
    put_series_content(out, labels, chunks);
}

/// Splits a length-delimited `prometheus.ChunkedSeries` off the front.
pub fn split_chunked_series(bytes: &[u8]) -> Result<(ChunkedSeries, &[u8]), WireError> {
    split_series(bytes, false, decode_chunk)
}

/// Splits a series off the front. A series of a plan (`wire/plan.rs`) may name files: skipped.
pub(super) fn split_series<C>(
    bytes: &[u8],
    is_of_plan: bool,
    decode: impl Fn(&[u8]) -> Result<C, &'static str>,
) -> Result<(ChunkedSeries<C>, &[u8]), WireError> {
    let error = |reason| WireError { message: CHUNKED_SERIES, offset: 0, reason };
    let message = split_uvarint(bytes)
        .and_then(|(len, rest)| rest.split_at_checked(usize::try_from(len).ok()?));
    let (message, rest) = message.ok_or_else(|| error("the message is cut short"))?;
    let mut chunks = Vec::new();
    // Labels precede the chunks, and are encoded like packed labels.
    let mut labels_end = 0;
    let mut fields = Fields::new(message);
    while let Some(field) = fields.next() {
        match field {
            Ok((1, Value::Bytes(_))) if chunks.is_empty() => {
                labels_end = message.len() - fields.rest().len();
            }
            Ok((2, Value::Bytes(chunk))) => chunks.push(decode(chunk).map_err(error)?),
            Ok((3, Value::Bytes(_))) if is_of_plan => {}
            Ok(_) => return Err(error("an unexpected field")),
            Err(malformed) => return Err(error(malformed.what)),
        }
    }
    let labels = message.get(..labels_end).and_then(Labels::from_packed);
    let labels = labels.ok_or_else(|| error("the labels are not a valid label set"))?;
    Ok((ChunkedSeries { labels, chunks }, rest))
}

fn chunked_series_bytes(labels: &Labels, chunks: &[Chunk]) -> usize {
    let chunk_bytes = |chunk| {
        let bytes = chunk_message_bytes(chunk);
        1 + uvarint_bytes(bytes as u64) + bytes
    };
    labels.packed().len() + chunks.iter().map(chunk_bytes).sum::<usize>()
}

fn put_series_content(out: &mut Vec<u8>, labels: &Labels, chunks: &[Chunk]) {
    out.extend_from_slice(labels.packed());
    for chunk in chunks {
        // Field 2 of `prometheus.ChunkedSeries`.
        out.push(0x12);
        put_uvarint(out, chunk_message_bytes(chunk) as u64);
        put_chunk_content(out, chunk);
    }
}

pub(super) fn put_chunk_content(out: &mut Vec<u8>, chunk: &Chunk) {
    put_times(out, chunk.min_time_ms, chunk.max_time_ms);
    // Fields 3 and 4 of `prometheus.Chunk`: type and data.
    out.push(0x18);
    out.push(chunk.encoding as u8);
    out.push(0x22);
    put_uvarint(out, chunk.data.len() as u64);
    out.extend_from_slice(&chunk.data);
}

pub(super) fn chunk_message_bytes(chunk: &Chunk) -> usize {
    let data = chunk.data.len();
    times_bytes(chunk.min_time_ms, chunk.max_time_ms) + 3 + uvarint_bytes(data as u64) + data
}

pub(super) fn put_times(out: &mut Vec<u8>, min_time_ms: i64, max_time_ms: i64) {
    for (tag, time_ms) in [(0x08, min_time_ms), (0x10, max_time_ms)] {
        // Protobuf leaves out zeros.
        if time_ms != 0 {
            out.push(tag);
            put_uvarint(out, time_ms as u64);
        }
    }
}

pub(super) fn times_bytes(min_time_ms: i64, max_time_ms: i64) -> usize {
    let time_bytes = |time: i64| if time == 0 { 0 } else { 1 + uvarint_bytes(time as u64) };
    time_bytes(min_time_ms) + time_bytes(max_time_ms)
}

pub(super) fn decode_chunk(message: &[u8]) -> Result<Chunk, &'static str> {
    let (mut min_time_ms, mut max_time_ms, mut kind, mut data) = (0, 0, 0, &[][..]);
    for field in Fields::new(message) {
        match field.map_err(|malformed| malformed.what)? {
            (1, Value::Varint(time)) => min_time_ms = time as i64,
            (2, Value::Varint(time)) => max_time_ms = time as i64,
            (3, Value::Varint(number)) => kind = number,
            (4, Value::Bytes(bytes)) => data = bytes,
            _ => {}
        }
    }
    let encoding = u8::try_from(kind).ok().and_then(Encoding::try_from_u8);
    let encoding = encoding.ok_or("a chunk has an unknown encoding")?;
    Ok(Chunk { encoding, min_time_ms, max_time_ms, data: data.into() })
}
