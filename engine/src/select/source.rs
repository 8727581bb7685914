//! Sources of series: blocks, and the head of this or another instance.

use super::{ExemplarSource, FoundChunk, Lookup, StringSource, Windows};
use crate::block::{BlockReader, ChunkMeta, SeriesRef};
use crate::chunk::{Chunk, without};
use crate::error::{Error, Result};
use crate::index::select_any;
use crate::model::{Labels, Matcher, MatcherSets, MatcherSpec, OrderGroup, TimeRange};
use crate::wire::ChunkedSeries;
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

/// A source of series in label order, with chunks in time order that overlap the range.
pub trait SeriesSource<C = Chunk> {
    /// Returns the next series; `None` at the end.
    fn next_series(&mut self) -> Result<Option<ChunkedSeries<C>>>;

    /// Starts again from the first series.
    fn rewind(&mut self) -> Result<()>;

    /// Estimates the number of series before reading: that in the largest block, or 0 in a head.
    fn estimate(&mut self) -> Result<usize> {
        Ok(0)
    }
}

/// The head of this or another instance.
pub trait HeadSource {
    /// Selects series of the head and adds external labels; series are in the order of the
    /// resulting labels. While the source exists, the head truncates nothing.
    fn select(
        &self,
        matchers: &[MatcherSpec],
        range: TimeRange,
        external: &Labels,
    ) -> Result<Box<dyn SeriesSource>>;

    /// Looks up series of the head, without chunks. The limit of the lookup is ignored.
    fn series(&self, lookup: &Lookup) -> Result<Box<dyn SeriesSource>>;

    /// Looks up label names of the head's series.
    fn label_names(&self, lookup: &Lookup) -> Result<Box<dyn StringSource>>;

    /// Looks up values that the head's series have for a label name.
    fn label_values(&self, name: &str, lookup: &Lookup) -> Result<Box<dyn StringSource>>;

    /// Deletes the samples in a range of the series that any selector selects; without selectors,
    /// of all series. Returns the number of series that may have had such samples.
    fn delete(&self, selectors: &[Vec<MatcherSpec>], range: TimeRange) -> Result<u64>;

    /// Returns the head's exemplars in a range, not sorted.
    fn exemplars(&self, range: TimeRange) -> Result<Box<dyn ExemplarSource>>;

    /// Returns the range that the next block should hold, if one is due.
    fn plan_cut(&self) -> Result<Option<TimeRange>>;

    /// Truncates head and log up to the end of a committed block; returns whether work is left.
    fn truncate(&self, before_ms: i64) -> Result<bool>;

    /// Returns a number that changes when samples of the head are deleted.
    fn deletion_mark(&self) -> Result<u64>;
}

/// The selected series of one block.
pub struct BlockSeries {
    block: Rc<BlockReader>,
    refs: Vec<SeriesRef>,
    given: usize,
    range: TimeRange,
    /// Parts of the range that are needed.
    windows: Windows,
    external: Labels,
    /// Collects skipped damage; if `None`, damage ends the read.
    damages: Option<Damages>,
    metas: Vec<ChunkMeta>,
    /// Labels that the next series most likely has.
    latest: LatestLabels,
}

/// Labels that one of several sources returned last. The next source most likely has the same
/// series, since sources are read in turn.
#[derive(Clone, Default)]
pub struct LatestLabels(Rc<RefCell<Labels>>);

impl LatestLabels {
    fn is_shared(&self) -> bool {
        Rc::strong_count(&self.0) > 1
    }
}

/// Damage that a read has skipped, in the order of discovery; clones share the same list.
#[derive(Clone, Default)]
pub struct Damages(Rc<RefCell<VecDeque<Error>>>);

impl Damages {
    /// Adds damage that was skipped.
    pub fn put(&self, damage: impl Into<Error>) {
        self.0.borrow_mut().push_back(damage.into());
    }

    /// Takes the oldest damage that was not taken.
    pub fn take(&self) -> Option<Error> {
        self.0.borrow_mut().pop_front()
    }

    /// Returns whether all damage was taken.
    pub fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }
}

impl BlockSeries {
    /// Selects series of a block in a range.
    pub fn select(
        block: Rc<BlockReader>,
        matchers: &[Matcher],
        range: TimeRange,
    ) -> Result<BlockSeries> {
        let refs = block.select(matchers)?;
        Ok(BlockSeries::of(block, refs, range, Labels::default()))
    }

    fn of(
        block: Rc<BlockReader>,
        refs: Vec<SeriesRef>,
        range: TimeRange,
        external: Labels,
    ) -> BlockSeries {
        let (windows, metas, latest) = (Windows::whole(range), Vec::new(), LatestLabels::default());
        let damages = None;
        BlockSeries { block, refs, given: 0, range, windows, external, damages, metas, latest }
    }

    /// Limits the source to chunks that windows touch, and to series with such chunks.
    #[cfg(feature = "promql")]
    pub fn touched_by(self, windows: Windows) -> BlockSeries {
        BlockSeries { windows, ..self }
    }

    /// Shares labels with other sources that are read in turn and mostly have the same series.
    pub fn in_turn(self, latest: &LatestLabels) -> BlockSeries {
        BlockSeries { latest: latest.clone(), ..self }
    }

    /// Skips damage, and collects it in `damages`. The memory for that is bounded by the index: a
    /// few words for each entry and chunk in the index.
    pub fn stepping_over(self, damages: &Damages) -> BlockSeries {
        BlockSeries { damages: Some(damages.clone()), ..self }
    }

    /// Returns the labels of a series, the external ones included, and its needed chunks in
    /// `metas`; `None` if it has no chunk in the range.
    fn look_up(&mut self, series_ref: SeriesRef) -> Result<Option<Labels>> {
        let latest = &self.latest.0;
        let likely = latest.borrow();
        let found = self.block.series_in(series_ref, self.range, &likely, &mut self.metas)?;
        let Some(labels) = found else { return Ok(None) };
        // Without another source, no one would use the copy.
        let is_news = self.latest.is_shared() && *likely != labels;
        // `replace` panics while the cell is borrowed.
        drop(likely);
        if is_news {
            latest.replace(labels.clone());
        }
        let windows = self.windows;
        self.metas.retain(|meta| windows.touch(meta.min_time_ms, meta.max_time_ms));
        let has_all = self.external.is_empty();
        Ok(Some(if has_all { labels } else { labels.with_others(&self.external) }))
    }

    /// Reads a series with its chunks, if it has any that are needed.
    fn read(&mut self, series_ref: SeriesRef) -> Result<Option<ChunkedSeries>> {
        let Some(labels) = self.look_up(series_ref)? else { return Ok(None) };
        let chunks = self.read_chunks(series_ref, &labels)?;
        Ok((!chunks.is_empty()).then_some(ChunkedSeries { labels, chunks }))
    }

    /// Like `read`, but chunks are read only if samples of them may be deleted.
    fn find(&mut self, series_ref: SeriesRef) -> Result<Option<ChunkedSeries<FoundChunk>>> {
        let Some(labels) = self.look_up(series_ref)? else { return Ok(None) };
        // A chunk with deleted samples must be encoded again, so its stored bytes are of no use.
        let chunks: Vec<FoundChunk> = if self.block.deleted_ranges(series_ref).is_empty() {
            let found = |meta: &ChunkMeta| FoundChunk::InBlock(Rc::clone(&self.block), *meta);
            self.metas.iter().map(found).collect()
        } else {
            let read = self.read_chunks(series_ref, &labels)?;
            read.into_iter().map(FoundChunk::Read).collect()
        };
        Ok((!chunks.is_empty()).then_some(ChunkedSeries { labels, chunks }))
    }

    fn read_chunks(&self, series_ref: SeriesRef, labels: &Labels) -> Result<Vec<Chunk>> {
        let mut chunks: Vec<Chunk> = Vec::with_capacity(self.metas.len());
        for meta in &self.metas {
            // With damages, chunks are decoded here, since a later error could not be skipped.
            let chunk = match &self.damages {
                None => self.block.chunk(meta)?,
                Some(damages) => match self.block.decodable_chunk(meta) {
                    Ok(chunk) => chunk,
                    Err(error) => {
                        damages.put(error);
                        continue;
                    }
                },
            };
            chunks.push(chunk);
        }
        match self.block.deleted_ranges(series_ref) {
            [] => Ok(chunks),
            deleted => without_deleted(labels, &chunks, deleted),
        }
    }

    fn next_ref(&mut self) -> Option<SeriesRef> {
        let next = self.refs.get(self.given).copied();
        self.given += 1;
        next
    }

    /// Adds external labels. Returns several sources that are sorted; a single one would not be.
    pub fn with_external(self, external: &Labels) -> Result<Vec<BlockSeries>> {
        if external.is_empty() {
            return Ok(vec![self]);
        }
        let carries = |(name, _): (&str, &str)| self.block.index().label_value_count(name) > 0;
        // If the block has none of the names, the group follows from the label count, read faster.
        let is_carried = external.iter().any(carries);
        let mut groups: BTreeMap<OrderGroup, Vec<SeriesRef>> = BTreeMap::new();
        for series in self.refs {
            let group = match is_carried {
                true => OrderGroup::of(self.block.series_labels(series)?.iter(), external),
                false => OrderGroup::of_count(self.block.label_count(series)?),
            };
            groups.entry(group).or_default().push(series);
        }
        let block = &self.block;
        let source = |refs| BlockSeries::of(Rc::clone(block), refs, self.range, external.clone());
        // Series that store a label take precedence over series to which it is added.
        Ok(groups.into_values().rev().map(source).collect())
    }
}

impl SeriesSource for BlockSeries {
    fn next_series(&mut self) -> Result<Option<ChunkedSeries>> {
        while let Some(series_ref) = self.next_ref() {
            match (self.read(series_ref), &self.damages) {
                (Ok(None), _) => {}
                (Err(error), Some(damages)) => damages.put(error),
                (read, _) => return read,
            }
        }
        Ok(None)
    }

    fn rewind(&mut self) -> Result<()> {
        self.given = 0;
        Ok(())
    }

    fn estimate(&mut self) -> Result<usize> {
        Ok(self.refs.len())
    }
}

/// The series of a block; chunks are read when their bytes are needed.
pub struct BlockChunks(pub BlockSeries);

impl SeriesSource<FoundChunk> for BlockChunks {
    fn next_series(&mut self) -> Result<Option<ChunkedSeries<FoundChunk>>> {
        while let Some(series_ref) = self.0.next_ref() {
            if let Some(found) = self.0.find(series_ref)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    fn rewind(&mut self) -> Result<()> {
        self.0.rewind()
    }

    fn estimate(&mut self) -> Result<usize> {
        self.0.estimate()
    }
}

/// Series of one block, without their chunks.
pub struct BlockLabels {
    block: Rc<BlockReader>,
    refs: Vec<SeriesRef>,
    given: usize,
    range: TimeRange,
}

impl BlockLabels {
    /// Selects the series that any of the sets selects and that have chunks in the range.
    pub fn select(
        block: Rc<BlockReader>,
        sets: &MatcherSets,
        range: TimeRange,
    ) -> Result<BlockLabels> {
        let refs = select_any(block.index(), sets.sets())?;
        Ok(BlockLabels { block, refs, given: 0, range })
    }

    /// Returns whether a chunk reaches into the range and is not deleted as a whole.
    fn counts(&self, series: SeriesRef, chunk: &ChunkMeta) -> bool {
        let span = TimeRange { start_ms: chunk.min_time_ms, end_ms: chunk.max_time_ms };
        // A chunk that is deleted in part counts as kept: only decoding would show what is left.
        let deleted = self.block.deleted_ranges(series);
        span.overlaps(&self.range) && !deleted.iter().any(|range| range.covers(&span))
    }
}

impl SeriesSource for BlockLabels {
    fn next_series(&mut self) -> Result<Option<ChunkedSeries>> {
        while let Some(series) = self.refs.get(self.given).copied() {
            self.given += 1;
            let (labels, metas) = self.block.series(series)?;
            if metas.iter().any(|meta| self.counts(series, meta)) {
                return Ok(Some(ChunkedSeries { labels, chunks: Vec::new() }));
            }
        }
        Ok(None)
    }

    fn rewind(&mut self) -> Result<()> {
        self.given = 0;
        Ok(())
    }
}

fn without_deleted(labels: &Labels, chunks: &[Chunk], deleted: &[TimeRange]) -> Result<Vec<Chunk>> {
    let mut kept = Vec::with_capacity(chunks.len());
    for chunk in chunks {
        let rest = without(chunk, deleted);
        kept.extend(rest.map_err(|source| Error::Chunk { series: labels.to_string(), source })?);
    }
    Ok(kept)
}
