//! A series as bytes; the layout is in `engine/docs/format/head.md`.

use super::out_of_order_samples::OutOfOrderSamples;
use super::{OpenChunk, Series, SeriesKey, SeriesLabels, block_end};
use crate::chunk::{Chunk, Encoding, ValueAppender};
use crate::head::saved::{Bytes, SavedHeadError};

/// Encoding number that means that no chunk is being filled.
const NO_CHUNK: u8 = 0;

impl Series {
    /// Returns whether any sample is held.
    pub(in crate::head) fn has_samples(&self) -> bool {
        !self.sealed.is_empty() || self.open.is_some() || self.out_of_order.is_some()
    }

    /// Appends the state of the series without its labels.
    pub(in crate::head) fn put_state(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.series_ref.to_le_bytes());
        out.extend_from_slice(&self.newest_ms.to_le_bytes());
        put_chunks(out, &self.sealed);
        let out_of_order =
            self.out_of_order.as_ref().map(|out_of_order| out_of_order.parts()).unwrap_or_default();
        put_chunks(out, &out_of_order);
        match &self.open {
            None => out.push(NO_CHUNK),
            Some(open) => {
                out.push(open.appender.encoding() as u8);
                open.appender.put_state(out);
            }
        }
    }

    /// Decodes a series whose labels were decoded before.
    #[inline]
    pub(in crate::head) fn take_state(
        key: SeriesKey,
        labels: SeriesLabels,
        block_duration_ms: i64,
        bytes: &mut Bytes<'_>,
    ) -> Result<Series, SavedHeadError> {
        let mut series = Series::new(bytes.u64()?, key, labels);
        series.newest_ms = bytes.i64()?;
        series.sealed = take_chunks(bytes)?;
        let out_of_order = take_chunks(bytes)?;
        if !out_of_order.is_empty() {
            series.out_of_order = Some(Box::new(OutOfOrderSamples::from_parts(out_of_order)));
        }
        let encoding = bytes.u8()?;
        if encoding != NO_CHUNK {
            let encoding = Encoding::try_from_u8(encoding);
            let encoding = encoding.ok_or(NO_STATE)?;
            let (appender, rest) = ValueAppender::split_state(encoding, bytes.0).ok_or(NO_STATE)?;
            bytes.0 = rest;
            // A chunk belongs to one block, so its newest sample determines the block.
            let block_end_ms = block_end(series.newest_ms, block_duration_ms);
            series.open = Some(Box::new(OpenChunk { appender, block_end_ms }));
        }
        // Only series with samples are saved.
        match series.has_samples() {
            true => Ok(series),
            false => Err(SavedHeadError::Damaged { what: "a series has no samples" }),
        }
    }
}

const NO_STATE: SavedHeadError =
    SavedHeadError::Damaged { what: "a chunk that is being filled has no possible state" };

fn put_chunks(out: &mut Vec<u8>, chunks: &[Chunk]) {
    out.extend_from_slice(&(chunks.len() as u32).to_le_bytes());
    for Chunk { encoding, min_time_ms, max_time_ms, data } in chunks {
        out.push(*encoding as u8);
        out.extend_from_slice(&min_time_ms.to_le_bytes());
        out.extend_from_slice(&max_time_ms.to_le_bytes());
        out.extend_from_slice(&(data.len() as u32).to_le_bytes());
        out.extend_from_slice(data);
    }
}

fn take_chunks(bytes: &mut Bytes<'_>) -> Result<Vec<Chunk>, SavedHeadError> {
    /// Bytes of encoding, times and length before a chunk's data.
    const HEADER_BYTES: usize = 1 + 8 + 8 + 4;
    let count = bytes.u32()? as usize;
    // A false count must not allocate more than the piece can hold.
    let mut chunks = Vec::with_capacity(count.min(bytes.0.len() / HEADER_BYTES));
    for _ in 0..count {
        // The head makes plain chunks only.
        let encoding = Encoding::try_from_u8(bytes.u8()?).filter(|encoding| encoding.is_plain());
        let unknown = SavedHeadError::Damaged { what: "a chunk has an unknown encoding" };
        let encoding = encoding.ok_or(unknown)?;
        let (min_time_ms, max_time_ms) = (bytes.i64()?, bytes.i64()?);
        let len = bytes.u32()? as usize;
        let data = bytes.part(len)?.into();
        chunks.push(Chunk { encoding, min_time_ms, max_time_ms, data });
    }
    Ok(chunks)
}
