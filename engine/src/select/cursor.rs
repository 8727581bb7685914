//! A position in an answer, and the bytes of the answer.

use super::merge::Mergeable;
use super::samples::{Extent, SeriesWriter, extent};
use super::{FoundChunk, SeriesSource};
use crate::block::{BlockReader, ChunkMeta};
use crate::codec::crc32c;
use crate::error::{Error, Result};
use crate::index::ChunkRef;
use crate::model::{Labels, MatcherSpec, TimeRange};
use crate::wire::{
    ChunkedSeries, Crc32c, DEFAULT_FRAME_BYTES_MAX, FrameOptions, PlannedChunk, put_chunked_series,
    put_planned_series, put_streamed_frames, split_planned_series,
};
use std::rc::Rc;

/// Largest number of bytes of frames for which memory is reserved at once.
const FRAMES_BYTES_USUAL: usize = 256 * 1024;

/// Bytes by which frames mostly exceed the requested number, since the last one is completed.
const OVERSHOOT_BYTES: usize = 32 * 1024;

/// The format of a cursor's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameFormat {
    /// Frames of the streamed remote read.
    StreamedChunks,
    /// `timeseries` fields of a `prometheus.QueryResult`.
    Samples,
    /// Messages `prometheus.ChunkedSeries`, each after its length.
    ChunkedSeries,
    /// Frames of the streamed remote read, with zeros in place of their checksums.
    UnsealedStreamedChunks,
}

/// The series to select, and the format of the answer.
#[derive(Clone, Debug)]
pub struct Selection {
    /// Matchers that must all hold.
    pub matchers: Vec<MatcherSpec>,
    /// Range of times, both ends included.
    pub range: TimeRange,
    /// Format of the answer's frames.
    pub format: FrameFormat,
    /// Number of the query, written into streamed frames.
    pub query_index: u32,
    /// Size in bytes at which a streamed frame is closed, after a whole chunk; 0 means the default.
    pub frame_bytes_max: u32,
    /// Largest number of samples in the `Samples` format; 0 means no limit.
    pub samples_max: u64,
    /// Labels that are added to each series without a label of the same name.
    pub external: Labels,
}

/// Size of all series that [`Cursor::measure`] has read so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measured {
    /// Whether all series were measured.
    pub done: bool,
    /// Bytes that `next_frames` will return for the measured series.
    pub bytes: u64,
    /// Samples of the measured series, in the `Samples` format.
    pub samples: u64,
}

/// A lookup of label names, label values, or series without their samples.
#[derive(Clone, Debug)]
pub struct Lookup {
    /// Sets of matchers, of which all of one set must match. Without sets, all series match.
    pub matcher_sets: Vec<Vec<MatcherSpec>>,
    /// Both ends included. Names and values are those of each block, and of the head, that overlaps
    /// the range; series must have a chunk that overlaps the range.
    pub range: TimeRange,
    /// Largest number of names, values or series; 0 means no limit.
    pub limit: u64,
}

/// A position in the answer to a selection or to a lookup of series.
pub struct Cursor {
    source: Box<dyn SeriesSource<FoundChunk>>,
    range: TimeRange,
    format: FrameFormat,
    query_index: u32,
    frame_bytes_max: usize,
    samples_max: u64,
    samples_given: u64,
    writing: Option<SeriesWriter>,
    measured: Extent,
    series_max: u64,
    series_given: u64,
    is_truncated: bool,
    plan: Plan,
}

/// Files that plans ([`Cursor::next_plan`]) have named, and buffers for the next plan.
#[derive(Default)]
struct Plan {
    /// Files of chunks, by block and number; a file's position is its number in plans.
    files: Vec<(Rc<BlockReader>, u32)>,
    last: usize,
    names: Vec<String>,
    chunks: Vec<PlannedChunk>,
}

impl Cursor {
    /// Makes a cursor that writes the series of a source as the selection asks.
    pub fn new(source: Box<dyn SeriesSource<FoundChunk>>, selection: &Selection) -> Cursor {
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
            plan: Plan::default(),
        }
    }

    /// Makes a cursor of series without chunks, at most `limit`; 0 means no limit.
    pub fn of_labels(
        source: Box<dyn SeriesSource<FoundChunk>>,
        range: TimeRange,
        limit: u64,
    ) -> Cursor {
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
            plan: Plan::default(),
        }
    }

    /// Returns whether the limit left out series, which is known at the end of the answer.
    pub fn is_truncated(&self) -> bool {
        self.is_truncated
    }

    /// Returns the next series with all bytes, in encodings that all clients know.
    fn next_series(&mut self) -> Result<Option<ChunkedSeries>> {
        let Some(ChunkedSeries { labels, chunks }) = self.next_found()? else { return Ok(None) };
        let chunks = chunks.into_iter().map(|chunk| chunk.into_plain(&labels));
        let chunks = chunks.collect::<Result<_>>()?;
        Ok(Some(ChunkedSeries { labels, chunks }))
    }

    fn next_found(&mut self) -> Result<Option<ChunkedSeries<FoundChunk>>> {
        // The flag stays set, so that further calls return nothing, too.
        if self.is_truncated {
            return Ok(None);
        }
        let next = self.next_in_range()?;
        // Only a series beyond the limit shows that some are left out.
        if next.is_some() && self.series_max > 0 && self.series_given >= self.series_max {
            self.is_truncated = true;
            return Ok(None);
        }
        self.series_given += u64::from(next.is_some());
        Ok(next)
    }

    /// Returns the next series of the source, without chunks that a merge put outside of the range.
    fn next_in_range(&mut self) -> Result<Option<ChunkedSeries<FoundChunk>>> {
        while let Some(mut series) = self.source.next_series()? {
            let had_chunks = !series.chunks.is_empty();
            let range = self.range;
            series.chunks.retain(|chunk| chunk.span().overlaps(&range));
            // Series of a lookup come without chunks, and are kept.
            if !had_chunks || !series.chunks.is_empty() {
                return Ok(Some(series));
            }
        }
        Ok(None)
    }

    /// Returns series until their chunks reach `bytes_max`: at least one, or none at the end.
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

    /// Returns frames until they reach `bytes_max`: at least one, or none at the end. A frame is
    /// complete, unless it has more samples than fit: then its part ends after a chunk, and the
    /// next call continues the frame.
    pub fn next_frames(&mut self, bytes_max: u32) -> Result<Vec<u8>> {
        let room = FRAMES_BYTES_USUAL.min(bytes_max as usize) + OVERSHOOT_BYTES;
        let mut out = Vec::with_capacity(room);
        // At least one frame, since an empty answer is the end.
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
                    // Counted before samples are written: too many samples are an error.
                    self.count(samples)?;
                    self.writing = (samples > 0).then_some(writing);
                }
                _ => self.put_frames(&mut out, &series),
            }
        }
        Ok(out)
    }

    /// Returns a plan of the next series until it reaches `bytes_max`: at least one series, or none
    /// at the end. A plan replaces the answer of [`Cursor::next_frames`]: chunks that blocks have
    /// are given by file and offset instead of their bytes.
    pub fn next_plan(&mut self, bytes_max: u32) -> Result<Vec<u8>> {
        if self.format == FrameFormat::Samples {
            return Err(Error::Invalid("samples have no plan: their chunks are decoded".into()));
        }
        let room = FRAMES_BYTES_USUAL.min(bytes_max as usize) + OVERSHOOT_BYTES;
        let mut out = Vec::with_capacity(room);
        while out.len() < bytes_max.max(1) as usize
            && let Some(series) = self.next_found()?
        {
            self.plan.put(&mut out, series)?;
        }
        Ok(out)
    }

    /// Returns a series of a plan, with the bytes of all its chunks.
    pub fn read_planned(&self, series: &[u8]) -> Result<Vec<u8>> {
        let (ChunkedSeries { labels, chunks }, rest) = split_planned_series(series)?;
        let chunks = chunks.into_iter().map(|chunk| self.plan.found(chunk)?.into_plain(&labels));
        let chunks: Vec<_> = chunks.collect::<Result<_>>()?;
        if !rest.is_empty() {
            return Err(Error::Invalid("more than one series of a plan".into()));
        }
        let mut out = Vec::new();
        put_chunked_series(&mut out, &labels, &chunks);
        Ok(out)
    }

    /// Starts again from the first series.
    pub fn rewind(&mut self) -> Result<()> {
        self.source.rewind()?;
        self.writing = None;
        self.measured = Extent::default();
        // A new plan numbers the files differently.
        self.plan = Plan::default();
        (self.samples_given, self.series_given, self.is_truncated) = (0, 0, false);
        Ok(())
    }

    /// Reads the next series until their chunks reach `bytes_max`. Returns the size of all that
    /// [`Cursor::next_frames`] would return for the series read so far, up to the limit of samples.
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

    fn put_frames(&self, out: &mut Vec<u8>, series: &ChunkedSeries) {
        let ChunkedSeries { labels, chunks } = series;
        let is_sealed = self.format == FrameFormat::StreamedChunks;
        if is_sealed || self.format == FrameFormat::UnsealedStreamedChunks {
            let frames = FrameOptions {
                query_index: self.query_index,
                bytes_max: self.frame_bytes_max,
                crc32c: is_sealed.then_some(crc32c as Crc32c),
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

impl Plan {
    fn put(&mut self, out: &mut Vec<u8>, series: ChunkedSeries<FoundChunk>) -> Result<()> {
        let ChunkedSeries { labels, chunks } = series;
        self.chunks.clear();
        for chunk in chunks {
            let planned = match chunk {
                FoundChunk::InBlock(block, meta) => PlannedChunk::Stored {
                    span: TimeRange { start_ms: meta.min_time_ms, end_ms: meta.max_time_ms },
                    file: self.file(&block, meta.chunk_ref.file()),
                    offset: meta.chunk_ref.offset(),
                },
                read => PlannedChunk::Given(read.into_plain(&labels)?),
            };
            self.chunks.push(planned);
        }
        put_planned_series(out, &labels, &self.names, &self.chunks);
        self.names.clear();
        Ok(())
    }

    /// Returns the number of a file in plans; a new file gets the next number.
    #[inline]
    fn file(&mut self, block: &Rc<BlockReader>, number: u32) -> u32 {
        let is_it = |file: &(Rc<BlockReader>, u32)| file.1 == number && Rc::ptr_eq(&file.0, block);
        // Chunks follow the order of blocks, so mostly the file is the last one or the next.
        let next = (self.last + 1) % self.files.len().max(1);
        for near in [self.last, next] {
            if self.files.get(near).is_some_and(is_it) {
                self.last = near;
                return near as u32;
            }
        }
        self.last = self.files.iter().position(is_it).unwrap_or_else(|| {
            self.names.push(block.chunk_file_name(number));
            self.files.push((Rc::clone(block), number));
            self.files.len() - 1
        });
        self.last as u32
    }

    fn found(&self, chunk: PlannedChunk) -> Result<FoundChunk> {
        let (span, file, offset) = match chunk {
            PlannedChunk::Given(chunk) => return Ok(FoundChunk::Read(chunk)),
            PlannedChunk::Stored { span, file, offset } => (span, file, offset),
        };
        // The plan comes back from the host, which may pass any number.
        let Some((block, number)) = self.files.get(file as usize) else {
            return Err(Error::Invalid(format!("no plan of this cursor named file {file}")));
        };
        let meta = ChunkMeta {
            min_time_ms: span.start_ms,
            max_time_ms: span.end_ms,
            chunk_ref: ChunkRef::new(*number, offset),
        };
        Ok(FoundChunk::InBlock(Rc::clone(block), meta))
    }
}
