//! Answers from a block: which series, their chunks, what was deleted.

use super::chunk_file::ChunkFileReader;
use super::{BlockError, BlockMeta, Tombstones, read_meta};
use crate::chunk::{Chunk, values};
use crate::index::{ChunkMeta, IndexError, IndexReader, SeriesRef};
use crate::model::{Labels, Matcher, TimeRange};
use crate::storage::Blocks;

/// An open block. Stays readable after the block was deleted.
pub struct BlockReader {
    meta: BlockMeta,
    index: IndexReader,
    chunk_files: ChunkFileReader,
    tombstones: Tombstones,
}

impl BlockReader {
    /// Opens all files of a block.
    pub fn open(blocks: &dyn Blocks, block: &str) -> Result<BlockReader, BlockError> {
        BlockReader::open_with(blocks, block, IndexReader::open)
    }

    /// Opens all files of a block, for a read: see [`IndexReader::reopen`].
    pub fn reopen(blocks: &dyn Blocks, block: &str) -> Result<BlockReader, BlockError> {
        BlockReader::open_with(blocks, block, IndexReader::reopen)
    }

    /// Reads the ends of a block's files, which shows whether one is missing, cut short or of
    /// another kind: some hundred bytes of each.
    pub fn check_ends(blocks: &dyn Blocks, block: &str) -> Result<(), BlockError> {
        IndexReader::check_ends(blocks, block)?;
        ChunkFileReader::open(blocks, block)?;
        Ok(())
    }

    fn open_with(
        blocks: &dyn Blocks,
        block: &str,
        open_index: impl FnOnce(&dyn Blocks, &str) -> Result<IndexReader, IndexError>,
    ) -> Result<BlockReader, BlockError> {
        Ok(BlockReader {
            meta: read_meta(blocks, block)?,
            index: open_index(blocks, block)?,
            chunk_files: ChunkFileReader::open(blocks, block)?,
            tombstones: Tombstones::read(blocks, block)?,
        })
    }

    /// Says that no read goes on with what it read last: what was read ahead is dropped.
    pub fn rest(&self) {
        self.index.rest();
        self.chunk_files.rest();
    }

    /// Memory that it takes now, about.
    pub fn memory_bytes(&self) -> usize {
        let files = self.chunk_files.memory_bytes() + self.tombstones.memory_bytes();
        size_of::<BlockReader>() + self.index.memory_bytes() + files
    }

    /// Files that it has open.
    pub fn file_count(&self) -> usize {
        1 + self.chunk_files.file_count()
    }

    /// The block's `meta.json`.
    pub fn meta(&self) -> &BlockMeta {
        &self.meta
    }

    /// The block's time range, with both ends inside; empty for a block that ends where it begins.
    pub fn time_range(&self) -> TimeRange {
        self.meta.time_range()
    }

    /// The block's index.
    pub fn index(&self) -> &IndexReader {
        &self.index
    }

    /// The series that all matchers select, in label order; all series without a matcher.
    pub fn select(&self, matchers: &[Matcher]) -> Result<Vec<SeriesRef>, BlockError> {
        Ok(self.index.select(matchers)?)
    }

    /// Labels of a series, and its chunks in time order.
    pub fn series(&self, series: SeriesRef) -> Result<(Labels, Vec<ChunkMeta>), BlockError> {
        Ok(self.index.series(series)?)
    }

    /// Labels of a series, and those of its chunks that reach into a range, in time order, in
    /// `chunks`; none without such chunks. See [`IndexReader::series_in`].
    pub fn series_in(
        &self,
        series: SeriesRef,
        range: TimeRange,
        likely: &Labels,
        chunks: &mut Vec<ChunkMeta>,
    ) -> Result<Option<Labels>, BlockError> {
        Ok(self.index.series_in(series, range, likely, chunks)?)
    }

    /// Labels of a series.
    pub fn series_labels(&self, series: SeriesRef) -> Result<Labels, BlockError> {
        Ok(self.index.series_labels(series)?)
    }

    /// How many labels a series has.
    pub fn label_count(&self, series: SeriesRef) -> Result<usize, BlockError> {
        Ok(self.index.label_count(series)?)
    }

    /// How many files of chunks it has.
    pub fn chunk_file_count(&self) -> usize {
        self.chunk_files.file_count()
    }

    /// Checks that there is a file with room for a chunk where the index says; the chunk itself is
    /// not read.
    pub fn check_place(&self, meta: &ChunkMeta) -> Result<(), BlockError> {
        self.chunk_files.check_place(meta)
    }

    /// A chunk's bytes, checked. Chunks asked for in the order of their series cost few reads.
    pub fn chunk(&self, meta: &ChunkMeta) -> Result<Chunk, BlockError> {
        self.chunk_files.chunk(meta)
    }

    /// The same, but every sample of it can be decoded.
    pub fn decodable_chunk(&self, meta: &ChunkMeta) -> Result<Chunk, BlockError> {
        let chunk = self.chunk(meta)?;
        let decoded = values(&chunk).and_then(|mut all| all.try_for_each(|value| value.map(drop)));
        decoded.map_err(|source| self.chunk_files.undecodable(meta, source))?;
        Ok(chunk)
    }

    /// The block's name and that of one of its files of chunks, counted from 0.
    pub fn chunk_file_name(&self, number: u32) -> String {
        self.chunk_files.full_name(number)
    }

    /// All label names, ascending.
    pub fn label_names(&self) -> impl Iterator<Item = &str> {
        self.index.label_names()
    }

    /// All values of a label name, ascending.
    pub fn label_values(&self, name: &str) -> Result<Vec<String>, BlockError> {
        Ok(self.index.label_values(name)?)
    }

    /// The tombstones of the block.
    pub fn tombstones(&self) -> &Tombstones {
        &self.tombstones
    }

    /// The deleted spans of a series: ascending, not overlapping. The chunks still hold them.
    pub fn deleted_ranges(&self, series: SeriesRef) -> &[TimeRange] {
        self.tombstones.deleted_ranges(series)
    }
}
