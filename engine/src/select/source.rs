//! Where series come from: a block, the head of this instance, or another instance's head.

use super::{Lookup, TextSource};
use crate::block::{BlockReader, ChunkMeta, SeriesRef};
use crate::chunk::{Chunk, without};
use crate::error::{Error, Result};
use crate::index::select_any;
use crate::model::{Labels, Matcher, MatcherSets, MatcherSpec, TimeRange};
use crate::wire::{ChunkedSeries, split_chunked_series};

/// Bytes of head series that are fetched at a time from another instance.
const REMOTE_BATCH_BYTES: u32 = 256 * 1024;

/// Gives series in label order, each with chunks in time order that touch the selected range.
pub trait SeriesSource {
    /// The next series; `None` at the end.
    fn next_series(&mut self) -> Result<Option<ChunkedSeries>>;
}

/// A head, wherever it is.
pub trait HeadSource {
    /// Selects from the head. While the source lives, the head forgets nothing.
    fn select(&self, matchers: &[MatcherSpec], range: TimeRange) -> Result<Box<dyn SeriesSource>>;

    /// Looks up series of the head; they come without chunks. Limits are not the head's affair.
    fn series(&self, lookup: &Lookup) -> Result<Box<dyn SeriesSource>>;

    /// Looks up label names of the head's series.
    fn label_names(&self, lookup: &Lookup) -> Result<Box<dyn TextSource>>;

    /// Looks up values that the head's series have for a label name.
    fn label_values(&self, name: &str, lookup: &Lookup) -> Result<Box<dyn TextSource>>;

    /// The range that the next block should hold, if one is due.
    fn plan_cut(&self) -> Result<Option<TimeRange>>;

    /// Lets head and log forget what a committed block holds; gives whether some is left to do.
    fn forget(&self, before_ms: i64) -> Result<bool>;

    /// A number that is another one after samples of the head were deleted.
    fn deletion_mark(&self) -> Result<u64>;
}

/// The selected series of one block.
pub struct BlockSeries {
    block: BlockReader,
    refs: std::vec::IntoIter<SeriesRef>,
    range: TimeRange,
}

impl BlockSeries {
    /// Selects from a block.
    pub fn select(
        block: BlockReader,
        matchers: &[Matcher],
        range: TimeRange,
    ) -> Result<BlockSeries> {
        let refs = block.select(matchers)?.into_iter();
        Ok(BlockSeries { block, refs, range })
    }
}

impl SeriesSource for BlockSeries {
    fn next_series(&mut self) -> Result<Option<ChunkedSeries>> {
        for series_ref in self.refs.by_ref() {
            let (labels, metas) = self.block.series(series_ref)?;
            let mut chunks: Vec<Chunk> = Vec::new();
            for meta in &metas {
                let span = TimeRange { start_ms: meta.min_time_ms, end_ms: meta.max_time_ms };
                if span.overlaps(&self.range) {
                    chunks.push(self.block.chunk(meta)?);
                }
            }
            let deleted = self.block.deleted_ranges(series_ref);
            if !deleted.is_empty() {
                chunks = without_deleted(&labels, &chunks, deleted)?;
            }
            if !chunks.is_empty() {
                return Ok(Some(ChunkedSeries { labels, chunks }));
            }
        }
        Ok(None)
    }
}

/// Series of one block, without their chunks.
pub struct BlockLabels {
    block: BlockReader,
    refs: std::vec::IntoIter<SeriesRef>,
    range: TimeRange,
}

impl BlockLabels {
    /// The series that one of the sets selects and that have chunks in the range.
    pub fn select(block: BlockReader, sets: &MatcherSets, range: TimeRange) -> Result<BlockLabels> {
        let refs = select_any(block.index(), sets.sets())?.into_iter();
        Ok(BlockLabels { block, refs, range })
    }

    /// Whether a chunk reaches into the range and was not deleted as a whole.
    fn counts(&self, series: SeriesRef, chunk: &ChunkMeta) -> bool {
        let span = TimeRange { start_ms: chunk.min_time_ms, end_ms: chunk.max_time_ms };
        let deleted = self.block.deleted_ranges(series);
        span.overlaps(&self.range) && !deleted.iter().any(|range| range.covers(&span))
    }
}

impl SeriesSource for BlockLabels {
    fn next_series(&mut self) -> Result<Option<ChunkedSeries>> {
        while let Some(series) = self.refs.next() {
            let (labels, metas) = self.block.series(series)?;
            if metas.iter().any(|meta| self.counts(series, meta)) {
                return Ok(Some(ChunkedSeries { labels, chunks: Vec::new() }));
            }
        }
        Ok(None)
    }
}

/// The samples of chunks that lie in none of the deleted ranges.
fn without_deleted(labels: &Labels, chunks: &[Chunk], deleted: &[TimeRange]) -> Result<Vec<Chunk>> {
    let mut kept = Vec::with_capacity(chunks.len());
    for chunk in chunks {
        let rest = without(chunk, deleted);
        kept.extend(rest.map_err(|source| Error::Chunk { series: labels.to_string(), source })?);
    }
    Ok(kept)
}

/// Series of another instance's head, fetched as bytes a batch at a time.
pub struct RemoteHeadSeries<F> {
    fetch: F,
    batch: Vec<u8>,
    read: usize,
}

impl<F: FnMut(u32) -> Result<Vec<u8>>> RemoteHeadSeries<F> {
    /// `fetch` gives whole series, about as many bytes as it is asked for, and none at the end.
    pub fn new(fetch: F) -> RemoteHeadSeries<F> {
        RemoteHeadSeries { fetch, batch: Vec::new(), read: 0 }
    }
}

impl<F: FnMut(u32) -> Result<Vec<u8>>> SeriesSource for RemoteHeadSeries<F> {
    fn next_series(&mut self) -> Result<Option<ChunkedSeries>> {
        if self.read == self.batch.len() {
            self.batch = (self.fetch)(REMOTE_BATCH_BYTES)?;
            self.read = 0;
            if self.batch.is_empty() {
                return Ok(None);
            }
        }
        let (series, rest) = split_chunked_series(&self.batch[self.read..])?;
        self.read = self.batch.len() - rest.len();
        Ok(Some(series))
    }
}
