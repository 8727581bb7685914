//! A position in an answer, and the answer's bytes.

use super::SeriesSource;
use super::samples::{Extent, SeriesWriter, extent};
use crate::chunk::{ChunkError, plain};
use crate::error::{Error, Result};
use crate::model::{Labels, MatcherSpec, TimeRange};
use crate::wire::{
    ChunkedSeries, DEFAULT_FRAME_BYTES_MAX, FrameOptions, put_chunked_series, put_streamed_frames,
};

/// Most bytes of frames for which room is made at once.
const FRAMES_BYTES_USUAL: usize = 256 * 1024;

/// What frames may take beyond the bytes that are asked for, in most cases.
const OVERSHOOT_BYTES: usize = 32 * 1024;

/// How a cursor writes what it finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameFormat {
    /// Frames of the streamed remote read.
    StreamedChunks,
    /// `timeseries` fields of a `prometheus.QueryResult`.
    Samples,
    /// Length-delimited `prometheus.ChunkedSeries`.
    ChunkedSeries,
    /// Frames of the streamed remote read, with zeros in place of their checksums.
    UnsealedStreamedChunks,
}

/// What to select, and how to write it.
#[derive(Clone, Debug)]
pub struct Selection {
    /// All must hold.
    pub matchers: Vec<MatcherSpec>,
    /// Both ends included.
    pub range: TimeRange,
    /// How frames are written.
    pub format: FrameFormat,
    /// Written into streamed frames.
    pub query_index: u32,
    /// Largest streamed frame in bytes, but for one chunk more; 0 means the default.
    pub frame_bytes_max: u32,
    /// Most samples given in the `Samples` format; 0 means no limit.
    pub samples_max: u64,
    /// Labels that each series gets unless it has one of that name.
    pub external: Labels,
}

/// What [`Cursor::measure`] has gone over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measured {
    /// Whether that was all.
    pub done: bool,
    /// Bytes that `next_frames` will return for it.
    pub bytes: u64,
    /// Samples in them, of the `Samples` format.
    pub samples: u64,
}

/// What to look up: label names, label values, or series without their samples.
#[derive(Clone, Debug)]
pub struct Lookup {
    /// All matchers of one set must hold. No set at all takes every series.
    pub matcher_sets: Vec<Vec<MatcherSpec>>,
    /// Both ends included. Names and values are those of every block, and of the head, that hold
    /// some of it; series must have a chunk that reaches into it.
    pub range: TimeRange,
    /// Most names, values or series given; 0 means no limit.
    pub limit: u64,
}

/// A position in the answer to a selection or to a lookup of series.
pub struct Cursor {
    source: Box<dyn SeriesSource>,
    range: TimeRange,
    format: FrameFormat,
    query_index: u32,
    frame_bytes_max: usize,
    samples_max: u64,
    samples_given: u64,
    /// The series of which samples are being written.
    writing: Option<SeriesWriter>,
    measured: Extent,
    series_max: u64,
    series_given: u64,
    is_truncated: bool,
}

impl Cursor {
    /// Writes what a source returns as the selection asks.
    pub fn new(source: Box<dyn SeriesSource>, selection: &Selection) -> Cursor {
        let frame_bytes_max = match selection.frame_bytes_max {
            0 => DEFAULT_FRAME_BYTES_MAX as usize,
            bytes => bytes as usize,
        };
        Cursor {
            source,
            range: selection.range,
            format: selection.format,
            query_index: selection.query_index,
            frame_bytes_max,
            samples_max: selection.samples_max,
            samples_given: 0,
            writing: None,
            measured: Extent::default(),
            series_max: 0,
            series_given: 0,
            is_truncated: false,
        }
    }

    /// Returns series that come without chunks, at most so many; 0 means no limit.
    pub fn of_labels(source: Box<dyn SeriesSource>, range: TimeRange, limit: u64) -> Cursor {
        Cursor {
            source,
            range,
            format: FrameFormat::ChunkedSeries,
            query_index: 0,
            frame_bytes_max: DEFAULT_FRAME_BYTES_MAX as usize,
            samples_max: 0,
            samples_given: 0,
            writing: None,
            measured: Extent::default(),
            series_max: limit,
            series_given: 0,
            is_truncated: false,
        }
    }

    /// Whether the limit left series out; known at the end.
    pub fn is_truncated(&self) -> bool {
        self.is_truncated
    }

    fn next_series(&mut self) -> Result<Option<ChunkedSeries>> {
        if self.is_truncated {
            return Ok(None);
        }
        let next = self.next_in_range()?.map(with_plain_chunks).transpose()?;
        if next.is_some() && self.series_max > 0 && self.series_given >= self.series_max {
            self.is_truncated = true;
            return Ok(None);
        }
        self.series_given += u64::from(next.is_some());
        Ok(next)
    }

    /// The source's next series. If chunks were merged, and so encoded again, some may lie outside
    /// the range.
    fn next_in_range(&mut self) -> Result<Option<ChunkedSeries>> {
        while let Some(mut series) = self.source.next_series()? {
            let had_chunks = !series.chunks.is_empty();
            let range = self.range;
            series.chunks.retain(|chunk| {
                chunk.max_time_ms >= range.start_ms && chunk.min_time_ms <= range.end_ms
            });
            if !had_chunks || !series.chunks.is_empty() {
                return Ok(Some(series));
            }
        }
        Ok(None)
    }

    /// Series until their chunks fill `bytes_max`: at least one, none at the end.
    pub fn next(&mut self, bytes_max: u32) -> Result<Vec<ChunkedSeries>> {
        let mut series = Vec::new();
        let mut bytes = 0;
        while bytes < bytes_max.max(1) as usize
            && let Some(next) = self.next_series()?
        {
            bytes += next.labels.packed().len();
            bytes += next.chunks.iter().map(|chunk| chunk.data.len()).sum::<usize>();
            series.push(next);
        }
        Ok(series)
    }

    /// Frames until they fill `bytes_max`: at least one, none at the end. They are whole, but for
    /// series with more samples than fit, which may end after any chunk and go on the next time.
    pub fn next_frames(&mut self, bytes_max: u32) -> Result<Vec<u8>> {
        let room = FRAMES_BYTES_USUAL.min(bytes_max as usize) + OVERSHOOT_BYTES;
        let mut out = Vec::with_capacity(room);
        while out.len() < bytes_max.max(1) as usize {
            if let Some(writing) = &mut self.writing {
                if !writing.put_chunk(&mut out)? {
                    self.writing = None;
                }
                continue;
            }
            let Some(series) = self.next_series()? else { break };
            match self.format {
                FrameFormat::Samples => {
                    let (writing, samples) = SeriesWriter::begin(&mut out, series, self.range)?;
                    self.count(samples)?;
                    self.writing = (samples > 0).then_some(writing);
                }
                _ => self.put_frames(&mut out, &series),
            }
        }
        Ok(out)
    }

    /// Starts again from the first series.
    pub fn rewind(&mut self) -> Result<()> {
        self.source.rewind()?;
        self.writing = None;
        self.measured = Extent::default();
        (self.samples_given, self.series_given, self.is_truncated) = (0, 0, false);
        Ok(())
    }

    /// Goes over the next series, until their chunks fill `bytes_max`, and counts what
    /// [`Cursor::next_frames`] would return for all that it has gone over, up to the limit of
    /// samples.
    pub fn measure(&mut self, bytes_max: u32) -> Result<Measured> {
        let mut scratch = Vec::new();
        let mut bytes = 0;
        let mut done = false;
        while bytes < bytes_max.max(1) as usize && !done {
            let Some(series) = self.next_series()? else {
                done = true;
                break;
            };
            bytes += series.labels.packed().len();
            bytes += series.chunks.iter().map(|chunk| chunk.data.len()).sum::<usize>();
            if self.format == FrameFormat::Samples {
                let extent = extent(&series, self.range)?;
                self.count(extent.samples)?;
                self.measured.samples += extent.samples;
                self.measured.bytes += extent.bytes;
            } else {
                scratch.clear();
                self.put_frames(&mut scratch, &series);
                self.measured.bytes += scratch.len() as u64;
            }
        }
        let Extent { samples, bytes } = self.measured;
        Ok(Measured { done, bytes, samples })
    }

    /// A series in one of the forms that have chunks.
    fn put_frames(&self, out: &mut Vec<u8>, series: &ChunkedSeries) {
        let ChunkedSeries { labels, chunks } = series;
        let is_sealed = self.format == FrameFormat::StreamedChunks;
        if is_sealed || self.format == FrameFormat::UnsealedStreamedChunks {
            let frames = FrameOptions {
                query_index: self.query_index,
                bytes_max: self.frame_bytes_max,
                is_sealed,
            };
            put_streamed_frames(out, frames, labels, chunks);
        } else {
            put_chunked_series(out, labels, chunks);
        }
    }

    fn count(&mut self, samples: u64) -> Result<()> {
        self.samples_given += samples;
        if self.samples_max > 0 && self.samples_given > self.samples_max {
            let what = "samples in one read";
            return Err(Error::LimitExceeded { what, max: self.samples_max });
        }
        Ok(())
    }
}

/// The series with chunks of encodings that all clients know.
fn with_plain_chunks(series: ChunkedSeries) -> Result<ChunkedSeries> {
    let ChunkedSeries { labels, chunks } = series;
    let plain: std::result::Result<Vec<_>, ChunkError> = chunks.into_iter().map(plain).collect();
    match plain {
        Ok(chunks) => Ok(ChunkedSeries { labels, chunks }),
        Err(source) => Err(Error::Chunk { series: labels.to_string(), source }),
    }
}
