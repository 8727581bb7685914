//! The start of the oldest block, from its `meta.json`.

use super::Store;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use tidepool_disk::BlockDirs;
use tidepool_ship::block_info::read_meta;

/// Start of each block by name. The start of a block never changes, so it is read once.
#[derive(Default)]
pub struct OldestTimes(Mutex<BTreeMap<String, Option<i64>>>);

impl Store {
    /// Returns the start of the oldest block; `None` without blocks.
    pub fn oldest_block_time_ms(&self) -> Option<i64> {
        let blocks = &self.shared.blocks;
        let listed = blocks.list().unwrap_or_default();
        let mut times = self.shared.oldest.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Removes deleted blocks from the map; the list is sorted.
        times.retain(|block, _| listed.binary_search(block).is_ok());
        for block in listed {
            times.entry(block).or_insert_with_key(|block| min_time_ms(blocks, block));
        }
        times.values().copied().flatten().min()
    }
}

/// Returns the start of a block; `None` if the block is damaged or was deleted meanwhile.
fn min_time_ms(blocks: &BlockDirs, block: &str) -> Option<i64> {
    read_meta(blocks, block).ok()?.get("minTime")?.as_i64()
}
