//! Merging without writing chunks again: the new block takes over the parents' files of chunks,
//! and only an index is written.
//!
//! ```text
//! parent a   chunks/000001 ──────────────────────────▶ chunks/000001
//! parent b   chunks/000001, chunks/000002 ───────────▶ chunks/000002, chunks/000003    new block
//! parent c   (deletions) ── read and written again ──▶ chunks/000004
//! ```
//!
//! A parent's files are taken over if all that its index names stays as it is: nothing of it is
//! deleted, its time is its own, and its chunks are about as long as chunks become, so that joining
//! them would save little. Then no byte in these files is dead: each chunk in them is named by the
//! new index, too.
//!
//! Chunks that are taken over are neither read nor checked; it is only checked that each lies in
//! its file, and within the parent's range. Damage in them stays what it was: reads, and `verify`,
//! name the block and the place. The parent's `meta.json` counts the samples.
//!
//! A block has no more than [`LINKED_FILES_MAX`] such files, since readers keep them open: parents
//! beyond are written again, and so become few files.

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

/// The part of the samples that chunks may have from which on they are long enough. Two hours of
/// scrapes each 15 seconds are a half; joining them would save some hundredths of a byte a sample,
/// and write all of them again.
const PACKED_PART: u64 = 3;

/// Most files that a block takes over.
pub(super) const LINKED_FILES_MAX: u32 = 32;

/// A block that is begun, with the files that it took over.
pub(super) struct Begun {
    pub(super) out: Box<dyn BlockWriter>,
    pub(super) linked: LinkedChunks,
    /// For each parent, the number in the new block of its first file; none if it is to be written
    /// again.
    pub(super) first_files: Vec<Option<u32>>,
}

/// A parent whose files were taken over.
pub(super) struct LinkedParent {
    block: String,
    reader: BlockReader,
    refs: std::vec::IntoIter<SeriesRef>,
    /// The number in the new block of its first file.
    first_file: u32,
    blame: Blame,
    next: Option<(Labels, Vec<ChunkMeta>)>,
}

/// The series of all parents: with chunks to be written, and with chunks that are linked.
pub(super) struct MergedSeries {
    written: Merge,
    /// The next of those with chunks to be written.
    next: Option<ChunkedSeries>,
    linked: Vec<LinkedParent>,
}

/// Begins a block that takes over what it can of these parents.
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
        if !parent.is_packed(samples_per_chunk)
            || linked.files.saturating_add(files) > LINKED_FILES_MAX
            || parents.iter().any(overlaps)
        {
            continue;
        }
        for number in 0..files {
            if !link(&mut *out, block, number, linked.files + number)? {
                // What was taken over before it cannot be given back, so the block is begun anew.
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

/// Takes over a file; no if storage cannot, or the parent has just been deleted.
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
    /// Whether its chunks can stay as they are: nothing of it is deleted, and they have at least a
    /// third of the samples that chunks may have, on average.
    fn is_packed(&self, samples_per_chunk: usize) -> bool {
        let BlockStats {
            num_samples, num_chunks, num_float_samples, num_histogram_samples, ..
        } = self.meta().stats;
        // Others than these two counts are not written again, so they have to be right.
        num_samples > 0
            && num_float_samples.checked_add(num_histogram_samples) == Some(num_samples)
            && num_samples.saturating_mul(PACKED_PART)
                >= num_chunks.saturating_mul(samples_per_chunk as u64)
            && self.reader.tombstones().count() == 0
    }
}

impl LinkedParent {
    /// All series of a parent.
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

    /// The series that is next in label order, of all parents that have it.
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
