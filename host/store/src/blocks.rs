//! Lists the blocks of the store from their `meta.json`, and records which blocks are damaged.

use super::{Shared, Store, StoreError};
use serde_json::Value;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tidepool_disk::{BlockDirs, DiskError};
use tidepool_runtime::{Damage, Instance};

/// Maximum size of a `meta.json` that is read: enough for a block merged from 200,000 blocks.
const META_BYTES_MAX: u64 = 16 << 20;

#[derive(Clone, Debug, PartialEq)]
pub struct ListedBlock {
    /// ULID, the name of the block's directory.
    pub id: String,
    /// Total size of the block's files.
    pub bytes: u64,
    /// The JSON object in `meta.json`, or the reason why it cannot be read.
    pub meta: Result<Value, String>,
    /// Damage that prevents serving the block; `None` if no damage was found.
    pub damage: Option<String>,
}

/// Damaged blocks, which are not served, each with the reason.
#[derive(Default)]
pub(super) struct DamagedBlocks(Mutex<BTreeMap<String, String>>);

impl DamagedBlocks {
    /// Adds a block, and returns whether it was new.
    fn add(&self, block: &str, reason: String) -> bool {
        match self.lock().entry(block.to_owned()) {
            Entry::Vacant(entry) => {
                entry.insert(reason);
                true
            }
            Entry::Occupied(_) => false,
        }
    }

    pub(super) fn damage_of(&self, block: &str) -> Option<String> {
        self.lock().get(block).cloned()
    }

    /// Counts the damaged blocks among `blocks`, and drops all others: they were removed.
    pub(super) fn count_of(&self, blocks: &[String]) -> u64 {
        let mut damaged = self.lock();
        damaged.retain(|block, _| blocks.contains(block));
        damaged.len() as u64
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    /// Counts, logs and records a damaged block when it is found for the first time.
    pub(super) fn report_damaged(&self, damage: &Damage) {
        let block = block_of(&damage.where_);
        let place = damage.where_.strip_prefix(block).unwrap_or_default();
        let reason = format!("{}: {}", place.trim_start_matches('/'), damage.reason);
        // Each read finds the same damage again; one count and one log line for a block are enough.
        if !self.damaged_blocks.add(block, reason.trim_start_matches(": ").to_owned()) {
            return;
        }
        self.counters.blocks_damaged.fetch_add(1, Relaxed);
        tracing::error!(
            file = damage.where_,
            offset = damage.offset,
            reason = damage.reason,
            "block is damaged and not served; all others are. Restore it from a copy and restart, \
             or move it out of the data directory"
        );
    }

    /// Reports the damaged blocks that an instance left out; returns one warning for each block.
    pub(super) fn damaged_in_reads(
        &self,
        instance: &mut Instance,
    ) -> Result<Vec<String>, StoreError> {
        let damaged = instance.take_damaged_blocks()?;
        let warning = |damage: &Damage| {
            self.report_damaged(damage);
            let block = block_of(&damage.where_);
            format!("block {block} is damaged and not read: {}", damage.reason)
        };
        Ok(damaged.iter().map(warning).collect())
    }
}

/// Returns the block of a damage's position: `where_` is a ULID, or the path of a file in a block.
pub(super) fn block_of(place: &str) -> &str {
    place.split('/').next().unwrap_or(place)
}

impl Store {
    /// Lists all blocks, by ascending ULID.
    pub async fn listed_blocks(&self) -> Result<Vec<ListedBlock>, StoreError> {
        // Listing opens a file of every block, which must not block the network runtime.
        let shared = self.shared.clone();
        let listed = tokio::task::spawn_blocking(move || list(&shared)).await;
        listed.map_err(|error| StoreError::Runtime(error.to_string()))?
    }
}

fn list(shared: &Shared) -> Result<Vec<ListedBlock>, StoreError> {
    let blocks = &shared.blocks;
    let mut listed = Vec::new();
    for id in blocks.list()? {
        match (meta(blocks, &id), blocks.size_bytes(&id)) {
            // A merge or retention dropped the block after it was listed.
            (Err(error), _) | (_, Err(error)) if error.is_not_found() => {}
            (meta, bytes) => {
                // A block with a damaged `meta.json` is not hidden: it is listed with the reason.
                let meta = meta.map_err(|error| error.to_string()).and_then(|meta| meta);
                let damage = shared.damaged_blocks.damage_of(&id);
                listed.push(ListedBlock { id, bytes: bytes?, meta, damage });
            }
        }
    }
    Ok(listed)
}

/// Reads a block's `meta.json`. The inner error is the reason why its content cannot be used.
fn meta(blocks: &BlockDirs, id: &str) -> Result<Result<Value, String>, DiskError> {
    let file = blocks.open_file(id, "meta.json")?;
    let bytes = file.size_bytes();
    if bytes > META_BYTES_MAX {
        return Ok(Err(format!("meta.json has {bytes} bytes, more than {META_BYTES_MAX}")));
    }
    // The bound above fits into 32 bits, so the cast cannot truncate.
    let text = file.read_at(0, bytes as u32)?;
    Ok(match serde_json::from_slice(&text) {
        Ok(meta @ Value::Object(_)) => Ok(meta),
        Ok(_) => Err("meta.json is damaged: it is no object".to_owned()),
        Err(error) => Err(format!("meta.json is damaged: {error}")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_blocks_are_known_while_they_are_there() {
        let damaged = DamagedBlocks::default();
        assert!(damaged.add("A", "index: it ends early".into()));
        assert!(!damaged.add("A", "found again".into()));
        assert!(damaged.add("B", "meta.json: no object".into()));
        assert_eq!(damaged.damage_of("A").as_deref(), Some("index: it ends early"));
        assert_eq!(damaged.damage_of("C"), None);
        assert_eq!(damaged.count_of(&["A".into(), "B".into(), "C".into()]), 2);
        assert_eq!(damaged.count_of(&["B".into(), "C".into()]), 1, "A was moved away");
        assert_eq!(damaged.damage_of("A"), None);
    }
}
