//! Lists the blocks of a data directory.

use crate::block::{BlockError, BlockMeta, BlockReader};
use crate::compact::BadBlock;
use crate::storage::{Blocks, StorageError, StorageResult};
use tidepool_model::sort;

/// The metadata of a block, or the reason why the block cannot be opened.
pub type ListedBlock = Result<BlockMeta, BadBlock>;

/// Returns all blocks by time range; blocks that cannot be opened come last.
pub fn list_blocks(blocks: &dyn Blocks) -> StorageResult<Vec<ListedBlock>> {
    let mut listed = Vec::new();
    for ulid in blocks.list()? {
        match BlockReader::open(blocks, &ulid) {
            Ok(block) => {
                let mut meta = block.meta().clone();
                // Storage knows the block by the name of its directory.
                meta.ulid = ulid;
                listed.push(Ok(meta));
            }
            // A block that was deleted since it was listed is not damaged.
            Err(BlockError::Storage(StorageError::NotFound { .. }))
                if !blocks.list()?.contains(&ulid) => {}
            Err(error) => listed.push(Err(BadBlock::of(&ulid, &error))),
        }
    }
    sort::sort_by(&mut listed, |a, b| match (a, b) {
        (Ok(a), Ok(b)) => (a.min_time_ms, a.max_time_ms).cmp(&(b.min_time_ms, b.max_time_ms)),
        _ => a.is_err().cmp(&b.is_err()),
    });
    Ok(listed)
}
