//! Writes a block in one pass: series in label order, their chunks in time order.

use super::chunk_file::ChunkFileWriter;
use super::{
    BlockDesc, BlockError, BlockMeta, BlockStats, CHUNK_BYTES_MAX, CHUNK_FILE_BYTES_MAX,
    CompactionMeta, META_FILE, TOMBSTONES_FILE, Tombstones,
};
use crate::chunk::{Chunk, sample_count};
use crate::index::{ChunkMeta, IndexWriter, SymbolList};
use crate::model::{Labels, TimeRange};
use crate::storage::BlockWriter;
use tidepool_model::sort;

/// Chunk files that a new block shares with other blocks. They have the first numbers.
#[derive(Clone, Debug, Default)]
pub struct LinkedChunks {
    /// Number of shared chunk files.
    pub files: u32,
    /// Counts of the samples in the shared files; all other counts are 0.
    pub stats: BlockStats,
}

/// A block being written. Dropping it without [`finish`](Self::finish) leaves no trace.
pub struct BlockBuilder {
    out: Box<dyn BlockWriter>,
    index: IndexWriter,
    chunk_files: ChunkFileWriter,
    stats: BlockStats,
    /// Time range of the samples so far; empty before the first sample.
    span: TimeRange,
    /// Kept between series to reuse its memory.
    chunk_metas: Vec<ChunkMeta>,
}

/// A complete, invisible block. Dropped without [`commit`](Self::commit), it leaves no trace.
pub struct SealedBlock {
    out: Box<dyn BlockWriter>,
    meta: BlockMeta,
}

/// The properties of a block that do not follow from its contents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockMetaParams {
    /// Start of the time range in milliseconds, inclusive.
    pub min_time_ms: i64,
    /// End of the time range in milliseconds, exclusive.
    pub max_time_ms: i64,
    /// 1 for a block cut from a head; each compaction adds one.
    pub level: u32,
    /// ULIDs of all blocks cut from a head that this block is made of; empty means only itself.
    pub sources: Vec<String>,
    /// Blocks from which a compaction makes this block.
    pub parents: Vec<BlockDesc>,
    /// Hints on the content, such as `from-out-of-order`.
    pub hints: Vec<String>,
}

impl SealedBlock {
    /// Makes the block durable and visible.
    pub fn commit(self) -> Result<BlockMeta, BlockError> {
        self.out.commit()?;
        Ok(self.meta)
    }
}

impl BlockBuilder {
    /// Begins a block; `symbols` must contain the labels of all its series.
    pub fn new(
        mut out: Box<dyn BlockWriter>,
        symbols: impl Into<SymbolList>,
    ) -> Result<BlockBuilder, BlockError> {
        let index = IndexWriter::new(symbols.into(), &mut *out)?;
        Ok(BlockBuilder {
            out,
            index,
            chunk_files: ChunkFileWriter::new(0, CHUNK_FILE_BYTES_MAX),
            stats: BlockStats::default(),
            span: TimeRange { start_ms: i64::MAX, end_ms: i64::MIN },
            chunk_metas: Vec::new(),
        })
    }

    /// Adds linked chunk files and counts their samples. Call before the first series.
    pub fn behind(self, LinkedChunks { files, stats }: LinkedChunks) -> BlockBuilder {
        if files == 0 {
            return self;
        }
        let chunk_files = ChunkFileWriter::new(files, CHUNK_FILE_BYTES_MAX);
        BlockBuilder { chunk_files, stats, ..self }
    }

    /// ULID that the new block will have.
    pub fn id(&self) -> &str {
        self.out.id()
    }

    /// Upper bound of the memory for labels and series until the block is finished, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        self.index.memory_bytes()
    }

    /// Counts of the series, chunks and samples added so far.
    pub fn stats(&self) -> &BlockStats {
        &self.stats
    }

    /// Ends chunk files early, so that a test sees several.
    #[cfg(test)]
    pub(super) fn with_chunk_file_bytes_max(self, bytes_max: u64) -> BlockBuilder {
        BlockBuilder { chunk_files: ChunkFileWriter::new(0, bytes_max), ..self }
    }

    /// Adds a series in label order, with chunks in time order; skips a series without chunks.
    pub fn add_series(&mut self, labels: &Labels, chunks: &[Chunk]) -> Result<(), BlockError> {
        self.add_linked_series(labels, &[], chunks)
    }

    /// Adds a series with chunks in linked files, given by their positions in this block. Linked
    /// chunks overlap no other chunk of the series, and `chunks` are in time order.
    pub fn add_linked_series(
        &mut self,
        labels: &Labels,
        linked: &[ChunkMeta],
        chunks: &[Chunk],
    ) -> Result<(), BlockError> {
        // A series without samples in this block must not show up in look-ups.
        if chunks.is_empty() && linked.is_empty() {
            return Ok(());
        }
        self.chunk_metas.clear();
        self.chunk_metas.extend_from_slice(linked);
        self.stats.num_chunks += linked.len() as u64;
        for chunk in chunks {
            self.count(labels, chunk)?;
            let chunk_ref = self.chunk_files.put(chunk, &mut *self.out)?;
            let Chunk { min_time_ms, max_time_ms, .. } = *chunk;
            self.chunk_metas.push(ChunkMeta { min_time_ms, max_time_ms, chunk_ref });
        }
        // Linked and new chunks may alternate in time, and the index demands time order.
        if !linked.is_empty() {
            sort::sort_by_key(&mut self.chunk_metas, |meta| meta.min_time_ms);
        }
        if let (Some(first), Some(last)) = (self.chunk_metas.first(), self.chunk_metas.last()) {
            self.span.start_ms = self.span.start_ms.min(first.min_time_ms);
            self.span.end_ms = self.span.end_ms.max(last.max_time_ms);
        }
        self.index.add_series(labels, &self.chunk_metas, &mut *self.out)?;
        self.stats.num_series += 1;
        Ok(())
    }

    /// Writes the rest of the block after its series, and makes the block durable and visible.
    pub fn finish(self, params: BlockMetaParams) -> Result<BlockMeta, BlockError> {
        self.seal(params)?.commit()
    }

    /// Writes the rest of the block after its series; the commit then needs hardly any memory.
    pub fn seal(mut self, params: BlockMetaParams) -> Result<SealedBlock, BlockError> {
        let BlockMetaParams { min_time_ms, max_time_ms, level, mut sources, parents, hints } =
            params;
        let TimeRange { start_ms: first_ms, end_ms: last_ms } = self.span;
        // Reads choose blocks by their range, so samples outside of it would be invisible.
        let is_inside = first_ms >= min_time_ms && last_ms < max_time_ms;
        if self.stats.num_chunks > 0 && !is_inside {
            return Err(BlockError::OutsideRange { first_ms, last_ms, min_time_ms, max_time_ms });
        }
        let ulid = self.out.id().to_owned();
        // A block cut from a head is its own source, as in Prometheus.
        if sources.is_empty() {
            sources.push(ulid.clone());
        }
        let meta = BlockMeta::new(
            BlockDesc { ulid, min_time_ms, max_time_ms },
            self.stats,
            CompactionMeta { level, sources, parents, hints, ..CompactionMeta::default() },
        );
        self.chunk_files.finish(&mut *self.out)?;
        self.index.finish(&mut *self.out)?;
        // Prometheus' compactor, too, writes the file for a block without tombstones.
        self.out.write_at(TOMBSTONES_FILE, 0, &Tombstones::default().encode())?;
        self.out.write_at(META_FILE, 0, &meta.encode()?)?;
        Ok(SealedBlock { out: self.out, meta })
    }

    fn count(&mut self, labels: &Labels, chunk: &Chunk) -> Result<(), BlockError> {
        let bytes = chunk.data.len();
        // Readers treat a longer chunk as damage.
        if bytes > CHUNK_BYTES_MAX {
            let (labels, bytes_max) = (labels.to_string(), CHUNK_BYTES_MAX);
            return Err(BlockError::ChunkTooLong { labels, bytes, bytes_max });
        }
        let bad = |source| BlockError::BadChunk { labels: labels.to_string(), source };
        let samples = u64::from(sample_count(chunk).map_err(bad)?);
        self.stats.num_samples += samples;
        match chunk.encoding.is_floats() {
            true => self.stats.num_float_samples += samples,
            false => self.stats.num_histogram_samples += samples,
        }
        self.stats.num_chunks += 1;
        Ok(())
    }
}
