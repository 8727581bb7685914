//! Merging without rewriting chunks: the new block takes over the parents' chunk files.
//!
//! ```text
//! parent a   chunks/000001 ──────────────────────────▶ chunks/000001
//! parent b   chunks/000001, chunks/000002 ───────────▶ chunks/000002, chunks/000003    new block
//! parent c   (deletions) ── read and written again ──▶ chunks/000004
//! ```
//!
//! A parent's files are taken over (*linked*) if its chunks need no change: nothing is deleted, no
//! other parent overlaps its range, and its chunks are so long that joining them would save little.
//! Then the files have no unused bytes, because the new index refers to all their chunks.
//!
//! Linked chunks are neither read nor checked, except that each must begin in its file and lie in
//! the parent's time range. Reads and `verify` report damage in them later. Their sample counts are
//! those in the parent's `meta.json`.
//!
//! A block has at most [`LINKED_FILES_MAX`] linked files, since readers keep them open; the chunks
//! of further parents are rewritten into few files.

use super::block_time::new_block_ms;
use super::parent::{Blame, Parent, bad_block, outside_of_range};
use super::series_pass::NextSeries;
use crate::block::{
    BlockReader, BlockStats, ChunkMeta, ChunkRef, LinkedChunks, SeriesRef, chunk_file_name,
};
use crate::error::{Error, Result};
use crate::model::{Labels, TimeRange};
use crate::select::{Merge, SeriesSource};
use crate::storage::{BlockWriter, Blocks, StorageError, StorageResult};
use crate::wire::ChunkedSeries;
use std::rc::Rc;

/// Divisor: chunks are long enough with a third of the largest sample count. Two hours of scrapes
/// every 15 s are half of it; joining them would save some hundredths of a byte a sample.
const PACKED_PART: u64 = 3;

/// Largest number of files that a block takes over.
pub(super) const LINKED_FILES_MAX: u32 = 32;

/// A new block, with the files that it took over.
pub(super) struct Begun {
    pub(super) out: Box<dyn BlockWriter>,
    pub(super) linked: LinkedChunks,
    /// For each parent, the number of its first file in the new block; `None` if it is not linked.
    pub(super) first_files: Vec<Option<u32>>,
}

pub(super) struct LinkedParent {
    block: String,
    reader: BlockReader,
    refs: std::vec::IntoIter<SeriesRef>,
    /// Number of the parent's first file in the new block.
    first_file: u32,
    blame: Blame,
    next: Option<(Labels, Vec<ChunkMeta>)>,
}

/// Series of all parents, with chunks to be written and linked chunks.
pub(super) struct MergedSeries {
    written: Merge,
    /// Next series with chunks to be written.
    next: Option<ChunkedSeries>,
    linked: Vec<LinkedParent>,
}

/// Begins a block that takes over the files of as many of these parents as possible.
pub(super) fn begin(
    blocks: &dyn Blocks,
    now_ms: i64,
    parents: &[(String, Parent)],
    samples_per_chunk: usize,
) -> StorageResult<Begun> {
    let ends_ms = parents.iter().map(|(_, parent)| parent.meta().max_time_ms);
    let time_ms = new_block_ms(blocks, now_ms, ends_ms.max().unwrap_or(i64::MIN))?;
    let mut out = blocks.create(time_ms)?;
    let mut linked = LinkedChunks::default();
    let mut first_files = vec![None; parents.len()];
    for ((block, parent), first_file) in parents.iter().zip(&mut first_files) {
        let files = parent.reader.chunk_file_count() as u32;
        let overlaps = |(other, other_parent): &(String, Parent)| {
            other != block && other_parent.reader.time_range().overlaps(&parent.reader.time_range())
        };
        // Chunks of parents that overlap must be merged sample by sample.
        if !parent.is_packed(samples_per_chunk)
            || linked.files.saturating_add(files) > LINKED_FILES_MAX
            || parents.iter().any(overlaps)
        {
            continue;
        }
        for number in 0..files {
            if !link(&mut *out, block, number, linked.files + number)? {
                // Links cannot be undone one by one, so the block is begun again without links.
                drop(out);
                return Begun::without_links(blocks, time_ms, parents.len());
            }
        }
        *first_file = Some(linked.files);
        linked.files += files;
        linked.stats.add_samples(&parent.meta().stats);
    }
    Ok(Begun { out, linked, first_files })
}

/// Links a file; returns false if storage cannot link, or the parent has just been deleted.
fn link(out: &mut dyn BlockWriter, block: &str, from: u32, to: u32) -> StorageResult<bool> {
    match out.link_file(block, &chunk_file_name(from), &chunk_file_name(to)) {
        Err(StorageError::NotFound { .. }) => Ok(false),
        linked => linked,
    }
}

impl Begun {
    fn without_links(blocks: &dyn Blocks, time_ms: i64, parents: usize) -> StorageResult<Begun> {
        let (linked, first_files) = (LinkedChunks::default(), vec![None; parents]);
        Ok(Begun { out: blocks.create(time_ms)?, linked, first_files })
    }
}

impl Parent {
    /// Returns whether the chunks can stay: nothing is deleted, and on average they have at least a
    /// third of the largest sample count.
    fn is_packed(&self, samples_per_chunk: usize) -> bool {
        let BlockStats {
            num_samples, num_chunks, num_float_samples, num_histogram_samples, ..
        } = self.meta().stats;
        // Linked samples are not counted again, so the parent's counts must be consistent.
        num_samples > 0
            && num_float_samples.checked_add(num_histogram_samples) == Some(num_samples)
            && num_samples.saturating_mul(PACKED_PART)
                >= num_chunks.saturating_mul(samples_per_chunk as u64)
            && self.reader.tombstones().count() == 0
    }
}

impl LinkedParent {
    pub(super) fn new(
        block: &str,
        parent: Parent,
        first_file: u32,
        blame: &Blame,
    ) -> Result<LinkedParent> {
        let reader = parent.reader;
        let refs = reader.select(&[]).map_err(|error| {
            *blame.borrow_mut() = Some(bad_block(block, &Error::Block(error)));
            Error::Invalid(format!("block {block} does not read"))
        })?;
        let (block, blame) = (block.to_owned(), Rc::clone(blame));
        let refs = refs.into_iter();
        let mut parent = LinkedParent { block, reader, refs, first_file, blame, next: None };
        parent.advance()?;
        Ok(parent)
    }

    fn advance(&mut self) -> Result<()> {
        let read = self.read_next();
        if let Err(error) = &read {
            *self.blame.borrow_mut() = Some(bad_block(&self.block, error));
        }
        self.next = read?;
        Ok(())
    }

    fn read_next(&mut self) -> Result<Option<(Labels, Vec<ChunkMeta>)>> {
        for series in self.refs.by_ref() {
            let (labels, mut metas) = self.reader.series(series)?;
            let (Some(first), Some(last)) = (metas.first(), metas.last()) else { continue };
            let span = TimeRange { start_ms: first.min_time_ms, end_ms: last.max_time_ms };
            let range = self.reader.time_range();
            // This parent was chosen by its range, and a merge must not drop samples outside of it.
            if !range.covers(&span) {
                return Err(outside_of_range(&self.block, range, &labels, span));
            }
            for meta in &mut metas {
                self.reader.check_place(meta)?;
                let file = meta.chunk_ref.file().saturating_add(self.first_file);
                meta.chunk_ref = ChunkRef::new(file, meta.chunk_ref.offset());
            }
            return Ok(Some((labels, metas)));
        }
        Ok(None)
    }
}

impl MergedSeries {
    pub(super) fn new(mut written: Merge, linked: Vec<LinkedParent>) -> Result<MergedSeries> {
        let next = written.next_series()?;
        Ok(MergedSeries { written, next, linked })
    }

    /// Returns the next series in label order, with the chunks of all parents that have it.
    pub(super) fn next_series(&mut self) -> Result<Option<NextSeries>> {
        let of_linked = self.linked.iter().filter_map(|parent| parent.next.as_ref());
        let first = of_linked
            .map(|(labels, _)| labels)
            .chain(self.next.as_ref().map(|series| &series.labels))
            .min();
        let Some(labels) = first.cloned() else { return Ok(None) };
        let mut series = NextSeries { labels, linked: Vec::new(), chunks: Vec::new() };
        for parent in &mut self.linked {
            if let Some((_, metas)) = parent.next.take_if(|(labels, _)| *labels == series.labels) {
                series.linked.extend(metas);
                parent.advance()?;
            }
        }
        if let Some(written) = self.next.take_if(|written| written.labels == series.labels) {
            series.chunks = written.chunks;
            self.next = self.written.next_series()?;
        }
        Ok(Some(series))
    }
}
