//! Reads the series of one parent of a merge, and records which parent could not be read.

use super::BadBlock;
use crate::block::{BlockError, BlockMeta, BlockReader, Tombstones, chunk_file_name};
use crate::chunk::values;
use crate::codec::crc32c;
use crate::error::{Error, Result};
use crate::model::{Labels, TimeRange};
use crate::select::{BlockSeries, SeriesSource, merge_chunks};
use crate::storage::Blocks;
use crate::wire::ChunkedSeries;
use std::cell::RefCell;
use std::rc::Rc;

/// The parent that could not be read; shared between all parents and the merge.
pub(super) type Blame = Rc<RefCell<Option<BadBlock>>>;

pub(super) struct Parent {
    pub(super) reader: BlockReader,
    /// Checksum of the tombstones when the block was opened.
    pub(super) tombstones_crc: u32,
}

/// The series of a parent, without deleted samples.
pub(super) struct ParentSeries {
    block: String,
    range: TimeRange,
    series: BlockSeries,
    blame: Blame,
}

impl Parent {
    pub(super) fn open(blocks: &dyn Blocks, block: &str) -> std::result::Result<Parent, BadBlock> {
        let open = || {
            // Read before the block, so that a deletion in between is noticed at the commit.
            let tombstones_crc = tombstones_crc(blocks, block)?;
            Ok(Parent { reader: BlockReader::open(blocks, block)?, tombstones_crc })
        };
        open().map_err(|error| BadBlock::of(block, &error))
    }

    pub(super) fn meta(&self) -> &BlockMeta {
        self.reader.meta()
    }

    pub(super) fn into_series(
        self,
        block: &str,
        blame: &Blame,
    ) -> std::result::Result<ParentSeries, BadBlock> {
        let range = self.reader.time_range();
        let series = BlockSeries::select(Rc::new(self.reader), &[], TimeRange::ALL);
        let series = series.map_err(|error| bad_block(block, &error))?;
        Ok(ParentSeries { block: block.to_owned(), range, series, blame: Rc::clone(blame) })
    }
}

impl SeriesSource for ParentSeries {
    fn next_series(&mut self) -> Result<Option<ChunkedSeries>> {
        let next = self.series.next_series().and_then(|next| next.map(in_order).transpose());
        let next = next.and_then(|next| self.in_range(next));
        if let Err(error) = &next {
            *self.blame.borrow_mut() = Some(bad_block(&self.block, error));
        }
        next
    }

    fn rewind(&mut self) -> Result<()> {
        self.series.rewind()
    }
}

impl ParentSeries {
    /// Refuses samples outside of the block's range, which a merge must neither drop nor take over.
    fn in_range(&self, series: Option<ChunkedSeries>) -> Result<Option<ChunkedSeries>> {
        let Some(ChunkedSeries { labels, chunks }) = &series else { return Ok(series) };
        let (Some(first), Some(last)) = (chunks.first(), chunks.last()) else { return Ok(series) };
        let span = TimeRange { start_ms: first.min_time_ms, end_ms: last.max_time_ms };
        if self.range.covers(&span) {
            return Ok(series);
        }
        Err(outside_of_range(&self.block, self.range, labels, span))
    }
}

pub(super) fn outside_of_range(
    block: &str,
    range: TimeRange,
    labels: &Labels,
    span: TimeRange,
) -> Error {
    Error::Invalid(format!(
        "block {block} has samples of series {labels} at {}..={} ms, outside of its range {}..={} ms",
        span.start_ms, span.end_ms, range.start_ms, range.end_ms
    ))
}

/// Returns the checksum of a block's current tombstones.
pub(super) fn tombstones_crc(
    blocks: &dyn Blocks,
    block: &str,
) -> std::result::Result<u32, BlockError> {
    Ok(crc32c(&Tombstones::read(blocks, block)?.encode()))
}

/// Finds the first chunk of a series that does not decode, among blocks that hold the series. Reads
/// whole blocks, so it is used only after a merge has failed.
pub(super) fn find_undecodable(
    blocks: &dyn Blocks,
    ulids: impl Iterator<Item = String>,
    series: &str,
) -> Option<BadBlock> {
    for ulid in ulids {
        match undecodable_in(blocks, &ulid, series) {
            Ok(None) => {}
            Ok(Some(bad)) => return Some(bad),
            Err(error) => return Some(BadBlock::of(&ulid, &error)),
        }
    }
    None
}

fn undecodable_in(
    blocks: &dyn Blocks,
    ulid: &str,
    series: &str,
) -> std::result::Result<Option<BadBlock>, BlockError> {
    let block = BlockReader::open(blocks, ulid)?;
    for series_ref in block.select(&[])? {
        let (labels, metas) = block.series(series_ref)?;
        // The error that led here names the series as text.
        if labels.to_string() != series {
            continue;
        }
        for meta in &metas {
            let chunk = block.chunk(meta)?;
            let decoded = match chunk.encoding.is_floats() {
                true => values(&chunk).and_then(|mut all| all.try_for_each(|next| next.map(drop))),
                // Chunks of other kinds are not decoded here.
                false => Ok(()),
            };
            if let Err(source) = decoded {
                let (block, file) = (ulid.into(), chunk_file_name(meta.chunk_ref.file()));
                let offset = u64::from(meta.chunk_ref.offset());
                return Ok(Some(BadBlock::of(
                    ulid,
                    &BlockError::Chunk { block, file, offset, source },
                )));
            }
        }
    }
    Ok(None)
}

pub(super) fn bad_block(block: &str, error: &Error) -> BadBlock {
    match error {
        Error::Block(error) => BadBlock::of(block, error),
        error => BadBlock {
            block: block.to_owned(),
            file: None,
            offset: None,
            reason: error.to_string(),
        },
    }
}

/// Merges overlapping chunks of a series, which only blocks of other programs have.
fn in_order(series: ChunkedSeries) -> Result<ChunkedSeries> {
    let ChunkedSeries { labels, mut chunks } = series;
    if !chunks.is_sorted_by(|a, b| a.max_time_ms < b.min_time_ms) {
        chunks = merge_chunks(&labels, chunks)?;
    }
    Ok(ChunkedSeries { labels, chunks })
}
