//! Samples of a series in a range, as a SAMPLES answer has them.
//!
//! Samples are read twice, since their size precedes them. The size of most chunks of floats is
//! known without decoding, since all their samples have the same number of bytes.

use crate::chunk::{Chunk, ChunkError, Encoding, sample_count, samples, values};
use crate::error::Error;
use crate::model::{Labels, TimeRange};
use crate::wire::{
    ChunkedSeries, float_bytes, float_bytes_in, put_float, put_series_head, put_value, series_bytes,
};
use tidepool_model::sort;

/// Largest number of bytes of a float sample.
const FLOAT_BYTES_MAX: usize = 22;

/// Number of samples, and of their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) samples: u64,
    pub(super) bytes: u64,
}

/// A series that is written by chunks, so that a long one needs no more memory than a short one.
pub(super) struct SeriesWriter {
    series: ChunkedSeries,
    range: TimeRange,
    written: usize,
    bytes_left: u64,
}

/// Returns the size of a series in the answer; a series without samples takes no bytes.
pub(super) fn extent(series: &ChunkedSeries, range: TimeRange) -> Result<Extent, Error> {
    let content = content(series, range)?;
    let bytes = match content.samples {
        0 => 0,
        _ => series_bytes(&series.labels, content.bytes),
    };
    Ok(Extent { bytes, ..content })
}

fn content(series: &ChunkedSeries, range: TimeRange) -> Result<Extent, Error> {
    let mut all = Extent::default();
    for chunk in &series.chunks {
        let extent = chunk_extent(chunk, range).map_err(in_series(&series.labels))?;
        all.samples += extent.samples;
        all.bytes += extent.bytes;
    }
    Ok(all)
}

fn chunk_extent(chunk: &Chunk, range: TimeRange) -> Result<Extent, ChunkError> {
    let span = TimeRange { start_ms: chunk.min_time_ms, end_ms: chunk.max_time_ms };
    let mut extent = Extent::default();
    if chunk.encoding == Encoding::Xor {
        // All samples take the same number of bytes, so none has to be decoded.
        if range.covers(&span)
            && let Some(bytes) = float_bytes_in(span)
        {
            let samples = u64::from(sample_count(chunk)?);
            return Ok(Extent { samples, bytes: samples * bytes as u64 });
        }
        for sample in samples(chunk)? {
            let timestamp_ms = sample?.timestamp_ms;
            if range.contains(timestamp_ms) {
                extent.samples += 1;
                extent.bytes += float_bytes(timestamp_ms) as u64;
            }
        }
        return Ok(extent);
    }
    // Histograms differ in size, so each is encoded to measure it.
    let mut scratch = Vec::new();
    for value in values(chunk)? {
        let (timestamp_ms, value) = value?;
        if range.contains(timestamp_ms) {
            scratch.clear();
            put_value(&mut scratch, timestamp_ms, &value);
            extent.samples += 1;
            extent.bytes += scratch.len() as u64;
        }
    }
    Ok(extent)
}

impl SeriesWriter {
    /// Begins a series, and returns its number of samples; if this is 0, nothing is written.
    pub(super) fn begin(
        out: &mut Vec<u8>,
        mut series: ChunkedSeries,
        range: TimeRange,
    ) -> Result<(SeriesWriter, u64), Error> {
        let extent = content(&series, range)?;
        if extent.samples > 0 {
            put_series_head(out, &series.labels, extent.bytes);
        }
        // Fields must be in the order of their numbers: floats, then histograms.
        sort::sort_by_key(&mut series.chunks, |chunk| chunk.encoding != Encoding::Xor);
        Ok((SeriesWriter { series, range, written: 0, bytes_left: extent.bytes }, extent.samples))
    }

    /// Writes the next chunk; returns false if there is none left.
    pub(super) fn put_chunk(&mut self, out: &mut Vec<u8>) -> Result<bool, Error> {
        let ChunkedSeries { labels, chunks } = &self.series;
        let Some(chunk) = chunks.get(self.written) else {
            // Fewer bytes than announced make the message unreadable.
            return match self.bytes_left {
                0 => Ok(false),
                _ => Err(in_series(labels)(ChunkError::OtherTimes)),
            };
        };
        let start = out.len();
        put_samples(out, chunk, self.range).map_err(in_series(labels))?;
        let bytes_left = self.bytes_left.checked_sub((out.len() - start) as u64);
        self.bytes_left = bytes_left.ok_or_else(|| in_series(labels)(ChunkError::OtherTimes))?;
        self.written += 1;
        Ok(true)
    }
}

fn put_samples(out: &mut Vec<u8>, chunk: &Chunk, range: TimeRange) -> Result<(), ChunkError> {
    if chunk.encoding == Encoding::Xor {
        // A sample has two bits at least, so a larger count is false.
        let count = usize::from(sample_count(chunk)?).min(4 * chunk.data.len());
        out.reserve(count * FLOAT_BYTES_MAX);
        for sample in samples(chunk)? {
            let sample = sample?;
            if range.contains(sample.timestamp_ms) {
                put_float(out, sample.timestamp_ms, sample.value);
            }
        }
        return Ok(());
    }
    for value in values(chunk)? {
        let (timestamp_ms, value) = value?;
        if range.contains(timestamp_ms) {
            put_value(out, timestamp_ms, &value);
        }
    }
    Ok(())
}

fn in_series(labels: &Labels) -> impl Fn(ChunkError) -> Error + '_ {
    |source| Error::Chunk { series: labels.to_string(), source }
}
