//! The list of blocks.

use crate::block::{BlockError, BlockMeta, BlockReader};
use crate::compact::BadBlock;
use crate::storage::{Blocks, StorageError, StorageResult};

/// A block, or why it is none.
pub type ListedBlock = Result<BlockMeta, BadBlock>;

/// All blocks, by time range; those that do not open come last.
pub fn list_blocks(blocks: &dyn Blocks) -> StorageResult<Vec<ListedBlock>> {
    let mut listed = Vec::new();
    for ulid in blocks.list()? {
        match BlockReader::open(blocks, &ulid) {
            Ok(block) => {
                let mut meta = block.meta().clone();
                // The directory's name is what storage knows the block by.
                meta.ulid = ulid;
                listed.push(Ok(meta));
            }
            // Deleted since it was listed.
            Err(BlockError::Storage(StorageError::NotFound { .. }))
                if !blocks.list()?.contains(&ulid) => {}
            Err(error) => listed.push(Err(BadBlock::of(&ulid, &error))),
        }
    }
    listed.sort_by(|a, b| match (a, b) {
        (Ok(a), Ok(b)) => (a.min_time_ms, a.max_time_ms).cmp(&(b.min_time_ms, b.max_time_ms)),
        _ => a.is_err().cmp(&b.is_err()),
    });
    Ok(listed)
}
