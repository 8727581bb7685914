//! Deleting samples by matchers and time range: tombstones now, gone with the next compaction.
//!
//! Of a block, only its `tombstones` file is replaced, in one step
//! ([`Blocks::replace_tombstones`]), and then the count of them in `meta.json`. That is what
//! upstream does, so what is deleted here stays deleted when Prometheus serves the directory, and
//! costs some bytes of writing instead of a whole new block. The count only tells upstream when a
//! block is worth rewriting; here it is taken from the file of tombstones, so that a crash between
//! the two does no harm.

use super::{BadBlock, may_lie_beside_log};
use crate::block::{
    BlockError, BlockReader, TOMBSTONES_BYTES_MAX, Tombstones, are_deletions_in_log,
    meta_with_tombstones,
};
use crate::model::{Matcher, TimeRange};
use crate::storage::{Blocks, StorageError, StorageResult};

/// The result of marking samples as deleted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deletion {
    /// Blocks whose tombstones have changed.
    pub blocks: Vec<String>,
    /// Blocks in which nothing could be deleted, and why.
    pub bad: Vec<BadBlock>,
}

/// The tombstones that a block needs so that the samples of the series that any of the selectors
/// selects are deleted in the range, together with those it has; `None` if it needs no others.
pub fn deletion_in_block(
    block: &BlockReader,
    selectors: &[Vec<Matcher>],
    range: TimeRange,
) -> Result<Option<Tombstones>, BlockError> {
    if !block.time_range().overlaps(&range) {
        return Ok(None);
    }
    let before = block.tombstones();
    let mut tombstones = before.clone();
    for matchers in selectors {
        for series in block.select(matchers)? {
            let (_, chunks) = block.series(series)?;
            let touched = chunks.iter().any(|chunk| {
                let (start_ms, end_ms) = (chunk.min_time_ms, chunk.max_time_ms);
                range.overlaps(&TimeRange { start_ms, end_ms })
            });
            // Not further than the series' samples reach: a range that never ends would be a long
            // number in each tombstone.
            if touched && let (Some(first), Some(last)) = (chunks.first(), chunks.last()) {
                let start_ms = range.start_ms.max(first.min_time_ms);
                let end_ms = range.end_ms.min(last.max_time_ms);
                tombstones.add(series, TimeRange { start_ms, end_ms });
            }
        }
    }
    Ok(Some(tombstones).filter(|tombstones| tombstones != before))
}

/// Marks samples in all blocks as deleted. Done in one go: reads of all selected series' entries,
/// two small writes per block that holds any. A damaged block does not stop the others; if storage
/// fails half way, doing it again completes it.
pub fn delete_from_blocks(
    blocks: &dyn Blocks,
    selectors: &[Vec<Matcher>],
    range: TimeRange,
) -> StorageResult<Deletion> {
    let mut deletion = Deletion::default();
    for ulid in blocks.list()? {
        match files_after_deletion(blocks, &ulid, selectors, range) {
            Ok(None) => {}
            Ok(Some(NeededFiles { tombstones, meta })) => {
                blocks.replace_tombstones(&ulid, &tombstones, &meta)?;
                deletion.blocks.push(ulid);
            }
            // Gone since it was listed.
            Err(BlockError::Storage(StorageError::NotFound { .. }))
                if !blocks.list()?.contains(&ulid) => {}
            Err(error) => deletion.bad.push(BadBlock::of(&ulid, &error)),
        }
    }
    Ok(deletion)
}

/// New contents of a block's files.
struct NeededFiles {
    tombstones: Vec<u8>,
    meta: Vec<u8>,
}

/// The files that a block needs so that samples of it are deleted; `None` if it needs no others.
fn files_after_deletion(
    blocks: &dyn Blocks,
    ulid: &str,
    selectors: &[Vec<Matcher>],
    range: TimeRange,
) -> Result<Option<NeededFiles>, BlockError> {
    let block = BlockReader::open(blocks, ulid)?;
    let Some(tombstones) = deletion_in_block(&block, selectors, range)? else { return Ok(None) };
    let bytes = tombstones.encode();
    if bytes.len() > TOMBSTONES_BYTES_MAX {
        let (block, bytes, bytes_max) = (ulid.to_owned(), bytes.len(), TOMBSTONES_BYTES_MAX);
        return Err(BlockError::TooManyTombstones { block, bytes, bytes_max });
    }
    // The log gets what is deleted now from the head.
    let are_in_log = may_lie_beside_log(block.meta())
        && (block.tombstones().is_empty()
            || are_deletions_in_log(blocks, ulid, block.tombstones())?);
    let meta = meta_with_tombstones(blocks, ulid, &tombstones, are_in_log)?;
    Ok(Some(NeededFiles { tombstones: bytes, meta }))
}
