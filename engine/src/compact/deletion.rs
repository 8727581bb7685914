//! Deleting samples by matchers and time range: tombstones at once, samples with the next merge.
//!
//! A deletion replaces a block's `tombstones` file in one step ([`Blocks::replace_tombstones`]),
//! then the count of tombstones in `meta.json`. Prometheus does the same, so deleted samples stay
//! deleted when it serves the directory, and a deletion writes some bytes instead of a new block.
//! Prometheus uses the count only to decide when to rewrite a block. This store counts the
//! tombstones in their file, so a crash between the two writes does no harm.

use super::{BadBlock, may_lie_beside_log};
use crate::block::{
    BlockError, BlockReader, TOMBSTONES_BYTES_MAX, Tombstones, are_deletions_in_log,
    meta_with_tombstones,
};
use crate::model::{Matcher, TimeRange};
use crate::storage::{Blocks, StorageError, StorageResult};

/// Result of marking samples as deleted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deletion {
    /// ULIDs of the blocks whose tombstones have changed.
    pub blocks: Vec<String>,
    /// Blocks in which nothing could be deleted, with reasons.
    pub bad: Vec<BadBlock>,
}

/// Returns a block's tombstones with the range added for each series that any selector matches;
/// `None` if nothing changes.
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
            // Clipped to the samples, because an open end is a long number in each tombstone.
            if touched && let (Some(first), Some(last)) = (chunks.first(), chunks.last()) {
                let start_ms = range.start_ms.max(first.min_time_ms);
                let end_ms = range.end_ms.min(last.max_time_ms);
                tombstones.add(series, TimeRange { start_ms, end_ms });
            }
        }
    }
    // A repeated deletion adds no range, so the files need not be written again.
    Ok(Some(tombstones).filter(|tombstones| tombstones != before))
}

/// Marks samples in all blocks as deleted. Reads the index entries of all selected series, and
/// makes two small writes for each block with such series. A damaged block does not stop the
/// others. If storage fails half way, repeating the call completes the deletion.
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
            // Compaction or retention has deleted the block since it was listed.
            Err(BlockError::Storage(StorageError::NotFound { .. }))
                if !blocks.list()?.contains(&ulid) => {}
            Err(error) => deletion.bad.push(BadBlock::of(&ulid, &error)),
        }
    }
    Ok(deletion)
}

struct NeededFiles {
    tombstones: Vec<u8>,
    meta: Vec<u8>,
}

/// Returns the new files of a block after a deletion; `None` if nothing changes.
fn files_after_deletion(
    blocks: &dyn Blocks,
    ulid: &str,
    selectors: &[Vec<Matcher>],
    range: TimeRange,
) -> Result<Option<NeededFiles>, BlockError> {
    let block = BlockReader::open(blocks, ulid)?;
    let Some(tombstones) = deletion_in_block(&block, selectors, range)? else { return Ok(None) };
    let bytes = tombstones.encode();
    // Checked before the first write, so a refused deletion leaves the block as it was.
    if bytes.len() > TOMBSTONES_BYTES_MAX {
        let (block, bytes, bytes_max) = (ulid.to_owned(), bytes.len(), TOMBSTONES_BYTES_MAX);
        return Err(BlockError::TooManyTombstones { block, bytes, bytes_max });
    }
    // The log gets this deletion as well, so only earlier deletions can be missing there.
    let are_in_log = may_lie_beside_log(block.meta())
        && (block.tombstones().is_empty()
            || are_deletions_in_log(blocks, ulid, block.tombstones())?);
    let meta = meta_with_tombstones(blocks, ulid, &tombstones, are_in_log)?;
    Ok(Some(NeededFiles { tombstones: bytes, meta }))
}
