//! Deleting samples by matchers and time range: tombstones now, gone with the next compaction.
//!
//! Of a block, only its `tombstones` file is replaced, in one step
//! ([`Blocks::replace_tombstones`]). That is what upstream does, so what is deleted here stays
//! deleted when Prometheus serves the directory, and costs some bytes of writing instead of a
//! whole new block. Upstream also counts tombstones in `meta.json`; here that file never changes,
//! and the count is taken from the file of tombstones.

use super::BadBlock;
use crate::block::{BlockError, BlockReader, TOMBSTONES_BYTES_MAX, Tombstones};
use crate::model::{Matcher, TimeRange};
use crate::storage::{Blocks, StorageError, StorageResult};

/// What was marked as deleted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deletion {
    /// Blocks whose tombstones have changed.
    pub blocks: Vec<String>,
    /// Blocks in which nothing could be deleted, and why.
    pub bad: Vec<BadBlock>,
}

/// The tombstones that a block needs so that the samples of the selected series in the range are
/// deleted, together with those it has; `None` if it needs no others.
pub fn deletion_in_block(
    block: &BlockReader,
    matchers: &[Matcher],
    range: TimeRange,
) -> Result<Option<Tombstones>, BlockError> {
    if !block.time_range().overlaps(&range) {
        return Ok(None);
    }
    let before = block.tombstones();
    let mut tombstones = before.clone();
    for series in block.select(matchers)? {
        let (_, chunks) = block.series(series)?;
        let touched = chunks.iter().any(|chunk| {
            range.overlaps(&TimeRange { start_ms: chunk.min_time_ms, end_ms: chunk.max_time_ms })
        });
        // Not further than the series' samples reach: a range that never ends would be a long
        // number in each tombstone.
        if touched && let (Some(first), Some(last)) = (chunks.first(), chunks.last()) {
            let start_ms = range.start_ms.max(first.min_time_ms);
            let end_ms = range.end_ms.min(last.max_time_ms);
            tombstones.add(series, TimeRange { start_ms, end_ms });
        }
    }
    Ok(Some(tombstones).filter(|tombstones| tombstones != before))
}

/// Marks samples in all blocks as deleted. Done in one go: reads of all of a selection's series
/// entries, a write per block that holds any. A damaged block does not stop the others; if storage
/// fails half way, doing it again completes it.
pub fn delete_from_blocks(
    blocks: &dyn Blocks,
    matchers: &[Matcher],
    range: TimeRange,
) -> StorageResult<Deletion> {
    let mut deletion = Deletion::default();
    for ulid in blocks.list()? {
        let reader = BlockReader::open(blocks, &ulid);
        let needed = reader.and_then(|block| deletion_in_block(&block, matchers, range));
        match needed {
            Ok(None) => {}
            // Gone since it was listed.
            Err(BlockError::Storage(StorageError::NotFound { .. }))
                if !blocks.list()?.contains(&ulid) => {}
            Err(error) => deletion.bad.push(BadBlock::of(&ulid, &error)),
            Ok(Some(tombstones)) => {
                let bytes = tombstones.encode();
                if bytes.len() > TOMBSTONES_BYTES_MAX {
                    deletion.bad.push(too_many(&ulid, bytes.len()));
                    continue;
                }
                blocks.replace_tombstones(&ulid, &bytes)?;
                deletion.blocks.push(ulid);
            }
        }
    }
    Ok(deletion)
}

fn too_many(ulid: &str, bytes: usize) -> BadBlock {
    let reason = format!(
        "the deletions of block {ulid} would take {bytes} bytes, {TOMBSTONES_BYTES_MAX} are \
         allowed; nothing was deleted in it: delete fewer series, then clean tombstones"
    );
    BadBlock { block: ulid.to_owned(), file: None, offset: None, reason }
}
