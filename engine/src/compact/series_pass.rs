//! The second pass over the series of a block to be: series and chunks are written, a slice at a
//! time, then the block is finished. The first pass, over the symbols, differs by where series
//! come from.

use super::SERIES_PER_SLICE;
use crate::block::{BlockBuilder, BlockMeta, BlockMetaParams, SymbolList};
use crate::error::Result;
use crate::model::TimeRange;
use crate::select::{SeriesSource, clip_chunks};
use crate::storage::Blocks;
use crate::wire::ChunkedSeries;

/// Bytes of chunks that one slice writes, but for one series more.
const CHUNK_BYTES_PER_SLICE: usize = 4 * 1024 * 1024;

/// A block whose series are being written. Dropped before `finish` it leaves no trace.
pub(super) struct SeriesPass {
    series: Box<dyn SeriesSource>,
    builder: Box<BlockBuilder>,
    /// The range to keep to, if the source may have more by now.
    growing: Option<TimeRange>,
}

impl SeriesPass {
    /// Begins a block; `symbols` are those of all series that the source will give.
    pub(super) fn begin(
        blocks: &dyn Blocks,
        now_ms: i64,
        symbols: impl Into<SymbolList>,
        series: Box<dyn SeriesSource>,
    ) -> Result<SeriesPass> {
        let builder = Box::new(BlockBuilder::new(blocks.create(now_ms)?, symbols)?);
        Ok(SeriesPass { series, builder, growing: None })
    }

    /// For a source that grows meanwhile: series whose symbols came after these were collected, and
    /// samples outside of the range, are left out. They stay in the head for another cut.
    pub(super) fn of_growing_head(self, range: TimeRange) -> SeriesPass {
        SeriesPass { growing: Some(range), ..self }
    }

    /// Writes a slice of the series; gives whether it was the last.
    pub(super) fn step(&mut self) -> Result<bool> {
        let mut bytes = 0;
        for _ in 0..SERIES_PER_SLICE {
            let Some(next) = self.series.next_series()? else { return Ok(true) };
            let ChunkedSeries { labels, mut chunks } = next;
            if let Some(range) = self.growing {
                if !self.builder.knows(&labels) {
                    continue;
                }
                chunks = clip_chunks(&labels, chunks, range)?;
            }
            self.builder.add_series(&labels, &chunks)?;
            bytes += chunks.iter().map(|chunk| chunk.data.len()).sum::<usize>();
            if bytes >= CHUNK_BYTES_PER_SLICE {
                break;
            }
        }
        Ok(false)
    }

    /// How many series were written.
    pub(super) fn series_count(&self) -> u64 {
        self.builder.stats().num_series
    }

    /// What labels and series take, at most, until the block is finished.
    pub(super) fn memory_bytes(&self) -> u64 {
        self.builder.memory_bytes()
    }

    /// Closes the source, then makes the block durable and visible; without a sample there is
    /// none.
    pub(super) fn finish(self, params: BlockMetaParams) -> Result<Option<BlockMeta>> {
        drop(self.series);
        if self.builder.stats().num_samples == 0 {
            return Ok(None);
        }
        Ok(Some(self.builder.finish(params)?))
    }
}
