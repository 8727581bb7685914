//! Reads a block: its series, chunks and deletions.

use super::chunk_file::ChunkFileReader;
use super::{BlockError, BlockMeta, Tombstones, read_meta};
use crate::chunk::{Chunk, values};
use crate::index::{ChunkMeta, IndexError, IndexReader, SeriesRef};
use crate::model::{Labels, Matcher, TimeRange};
use crate::storage::Blocks;

/// An open block, which stays readable after it was deleted.
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

    /// Opens all files of a block for a query; see [`IndexReader::reopen`].
    pub fn reopen(blocks: &dyn Blocks, block: &str) -> Result<BlockReader, BlockError> {
        BlockReader::open_with(blocks, block, IndexReader::reopen)
    }

    /// Reads the ends of a block's files (some hundred bytes of each), which shows whether one is
    /// missing, cut short or of another kind.
    pub fn check_ends(blocks: &dyn Blocks, block: &str) -> Result<(), BlockError> {
        IndexReader::check_ends(blocks, block)?;
        // Opening reads the headers of all chunk files, which is the check.
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

    /// Drops the bytes that were read ahead; for use when the next read begins elsewhere.
    pub fn rest(&self) {
        self.index.rest();
        self.chunk_files.rest();
    }

    /// Approximate memory use in bytes, read-ahead included.
    pub fn memory_bytes(&self) -> usize {
        let files = self.chunk_files.memory_bytes() + self.tombstones.memory_bytes();
        size_of::<BlockReader>() + self.index.memory_bytes() + files
    }

    /// Number of open files: the index and the chunk files.
    pub fn file_count(&self) -> usize {
        1 + self.chunk_files.file_count()
    }

    /// Decoded content of the block's `meta.json`.
    pub fn meta(&self) -> &BlockMeta {
        &self.meta
    }

    /// Returns the time range, both ends inclusive; empty for a block that ends where it begins.
    pub fn time_range(&self) -> TimeRange {
        self.meta.time_range()
    }

    /// The reader of the block's index.
    pub fn index(&self) -> &IndexReader {
        &self.index
    }

    /// Returns the series that match all matchers, in label order; no matcher selects all series.
    pub fn select(&self, matchers: &[Matcher]) -> Result<Vec<SeriesRef>, BlockError> {
        Ok(self.index.select(matchers)?)
    }

    /// Returns the labels of a series, and its chunks in time order.
    pub fn series(&self, series: SeriesRef) -> Result<(Labels, Vec<ChunkMeta>), BlockError> {
        Ok(self.index.series(series)?)
    }

    /// Returns the labels of a series, and puts its chunks that overlap a range into `chunks`, in
    /// time order; `None` without such chunks. See [`IndexReader::series_in`].
    pub fn series_in(
        &self,
        series: SeriesRef,
        range: TimeRange,
        likely: &Labels,
        chunks: &mut Vec<ChunkMeta>,
    ) -> Result<Option<Labels>, BlockError> {
        Ok(self.index.series_in(series, range, likely, chunks)?)
    }

    /// Returns all labels of a series.
    pub fn series_labels(&self, series: SeriesRef) -> Result<Labels, BlockError> {
        Ok(self.index.series_labels(series)?)
    }

    /// Returns the number of labels of a series.
    pub fn label_count(&self, series: SeriesRef) -> Result<usize, BlockError> {
        Ok(self.index.label_count(series)?)
    }

    /// Number of chunk files of the block.
    pub fn chunk_file_count(&self) -> usize {
        self.chunk_files.file_count()
    }

    /// Checks that a chunk's position lies in a file, without reading the chunk.
    pub fn check_place(&self, meta: &ChunkMeta) -> Result<(), BlockError> {
        self.chunk_files.check_place(meta)
    }

    /// Reads a chunk and checks its checksum. Reads in the order of the series are the fastest.
    pub fn chunk(&self, meta: &ChunkMeta) -> Result<Chunk, BlockError> {
        self.chunk_files.chunk(meta)
    }

    /// Reads a chunk, and decodes every sample of it as a check.
    pub fn decodable_chunk(&self, meta: &ChunkMeta) -> Result<Chunk, BlockError> {
        let chunk = self.chunk(meta)?;
        // Only decoding finds a chunk that was written wrong, because its checksum matches.
        let decoded = values(&chunk).and_then(|mut all| all.try_for_each(|value| value.map(drop)));
        decoded.map_err(|source| self.chunk_files.undecodable(meta, source))?;
        Ok(chunk)
    }

    /// Returns the path of a chunk file, with the block's name; `number` counts from 0.
    pub fn chunk_file_name(&self, number: u32) -> String {
        self.chunk_files.full_name(number)
    }

    /// Returns all label names, ascending.
    pub fn label_names(&self) -> impl Iterator<Item = &str> {
        self.index.label_names()
    }

    /// Returns all values of a label name, ascending.
    pub fn label_values(&self, name: &str) -> Result<Vec<String>, BlockError> {
        Ok(self.index.label_values(name)?)
    }

    /// The tombstones, as read when the block was opened.
    pub fn tombstones(&self) -> &Tombstones {
        &self.tombstones
    }

    /// Deleted ranges of a series, ascending, not overlapping. Their samples are still in chunks.
    pub fn deleted_ranges(&self, series: SeriesRef) -> &[TimeRange] {
        self.tombstones.deleted_ranges(series)
    }
}
