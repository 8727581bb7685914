//! The second pass of a cut or merge: writes series and chunks a slice at a time, then finishes the
//! block. The first passes, which collect symbols, are in `cut.rs` and `merge.rs`.

use super::SERIES_PER_SLICE;
use super::repack::Repacker;
use crate::block::{
    BlockBuilder, BlockMeta, BlockMetaParams, ChunkMeta, LinkedChunks, SealedBlock, SymbolList,
};
use crate::chunk::Chunk;
use crate::error::{Error, Result};
use crate::model::{Labels, TimeRange};
use crate::select::{SeriesSource, clip_chunks};
use crate::storage::BlockWriter;
use crate::wire::ChunkedSeries;

/// Bytes of chunks that one slice writes, exceeded by one series at most.
const CHUNK_BYTES_PER_SLICE: usize = 4 * 1024 * 1024;

/// A block whose series are being written. If dropped before it is finished, it leaves no trace.
pub(super) struct SeriesPass {
    builder: Box<BlockBuilder>,
    repacker: Repacker,
    /// Range that chunks are clipped to.
    range: TimeRange,
    /// Number of series that the pass may still write.
    left: u64,
    taken: u64,
    memory_bytes_max: u64,
}

pub(super) struct NextSeries {
    pub(super) labels: Labels,
    /// Chunks in linked files, with their positions in the new block.
    pub(super) linked: Vec<ChunkMeta>,
    pub(super) chunks: Vec<Chunk>,
}

impl From<ChunkedSeries> for NextSeries {
    fn from(ChunkedSeries { labels, chunks }: ChunkedSeries) -> NextSeries {
        NextSeries { labels, linked: Vec::new(), chunks }
    }
}

impl SeriesPass {
    /// Begins a block, which may have linked files; its other chunks get up to `samples_per_chunk`
    /// samples. `symbols` must contain the labels of all series of the pass.
    pub(super) fn begin(
        out: Box<dyn BlockWriter>,
        linked: LinkedChunks,
        symbols: impl Into<SymbolList>,
        samples_per_chunk: usize,
    ) -> Result<SeriesPass> {
        let repacker = Repacker::new(samples_per_chunk);
        let builder = Box::new(BlockBuilder::new(out, symbols)?.behind(linked));
        let (range, left, memory_bytes_max) = (TimeRange::ALL, u64::MAX, u64::MAX);
        Ok(SeriesPass { builder, repacker, range, left, taken: 0, memory_bytes_max })
    }

    /// Limits series, range of samples, and memory; beyond the memory limit the pass ends early.
    pub(super) fn with_bounds(
        self,
        range: TimeRange,
        series_max: u64,
        memory_bytes_max: u64,
    ) -> SeriesPass {
        SeriesPass { range, left: series_max, memory_bytes_max, ..self }
    }

    /// Writes a slice of the series; returns whether it was the last.
    pub(super) fn step(&mut self, series: &mut dyn SeriesSource) -> Result<bool> {
        self.step_of(|| Ok(series.next_series()?.map(NextSeries::from)))
    }

    /// Does the same as `step` with series that may have linked chunks.
    pub(super) fn step_of(
        &mut self,
        mut next: impl FnMut() -> Result<Option<NextSeries>>,
    ) -> Result<bool> {
        let mut bytes = 0;
        for _ in 0..SERIES_PER_SLICE {
            if self.left == 0 {
                return Ok(true);
            }
            let Some(NextSeries { labels, linked, mut chunks }) = next()? else { return Ok(true) };
            // A cursor returns whole chunks, which may extend beyond the range.
            if self.range != TimeRange::ALL {
                chunks = clip_chunks(&labels, chunks, self.range)?;
            }
            chunks = self
                .repacker
                .repack(chunks)
                .map_err(|source| Error::Chunk { series: labels.to_string(), source })?;
            self.builder.add_linked_series(&labels, &linked, &chunks)?;
            self.left -= 1;
            self.taken += 1;
            // Checked after the series, so that a pass writes at least one.
            if self.memory_bytes() > self.memory_bytes_max {
                return Ok(true);
            }
            bytes += chunks.iter().map(|chunk| chunk.data.len()).sum::<usize>();
            if bytes >= CHUNK_BYTES_PER_SLICE {
                break;
            }
        }
        Ok(false)
    }

    /// Number of series that the pass may still write.
    pub(super) fn left(&self) -> u64 {
        self.left
    }

    /// Number of series read, including series without samples in the range.
    pub(super) fn taken(&self) -> u64 {
        self.taken
    }

    pub(super) fn series_count(&self) -> u64 {
        self.builder.stats().num_series
    }

    /// Upper bound of the memory for labels and series until the block is finished, in bytes.
    pub(super) fn memory_bytes(&self) -> u64 {
        self.builder.memory_bytes()
    }

    /// Writes the rest of the block after its series; `None` for a block without samples.
    pub(super) fn seal(self, params: BlockMetaParams) -> Result<Option<SealedBlock>> {
        if self.builder.stats().num_samples == 0 {
            return Ok(None);
        }
        Ok(Some(self.builder.seal(params)?))
    }

    /// Writes the rest of the block after its series, and makes the block durable and visible.
    pub(super) fn finish(self, params: BlockMetaParams) -> Result<Option<BlockMeta>> {
        Ok(self.seal(params)?.map(SealedBlock::commit).transpose()?)
    }
}
