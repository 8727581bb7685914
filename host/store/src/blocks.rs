//! The blocks of the store, as their `meta.json` describe them.

use super::{Shared, Store, StoreError};
use serde_json::Value;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tidepool_disk::{BlockDirs, DiskError};
use tidepool_runtime::{Damage, Instance};

/// Longest `meta.json` that is read: some 200,000 blocks that a block was made of.
const META_BYTES_MAX: u64 = 16 << 20;

/// A block.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedBlock {
    /// Its ULID.
    pub id: String,
    /// Bytes of its files.
    pub bytes: u64,
    /// The object in its `meta.json`, or why it cannot be read.
    pub meta: Result<Value, String>,
    /// What was found damaged in it, so that it is not served.
    pub damage: Option<String>,
}

/// Blocks that were found damaged and are not served, with the reason.
#[derive(Default)]
pub(super) struct DamagedBlocks(Mutex<BTreeMap<String, String>>);

impl DamagedBlocks {
    /// Adds a block, and returns whether it was not among them.
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

    /// How many of these blocks are among them. Others are gone, and forgotten.
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
    /// Counts, logs and lists a damaged block, the first time that it is found.
    pub(super) fn report_damaged(&self, damage: &Damage) {
        let block = block_of(&damage.where_);
        let place = damage.where_.strip_prefix(block).unwrap_or_default();
        let reason = format!("{}: {}", place.trim_start_matches('/'), damage.reason);
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

    /// Reports the damaged blocks that reads of an instance left out, and returns a warning for
    /// each.
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

/// The block in the place of a damage: a ULID, or the path of a file in a block.
pub(super) fn block_of(place: &str) -> &str {
    place.split('/').next().unwrap_or(place)
}

impl Store {
    /// All blocks, by ascending ULID.
    pub async fn listed_blocks(&self) -> Result<Vec<ListedBlock>, StoreError> {
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
            // It was merged or dropped meanwhile.
            (Err(error), _) | (_, Err(error)) if error.is_not_found() => {}
            (meta, bytes) => {
                let meta = meta.map_err(|error| error.to_string()).and_then(|meta| meta);
                let damage = shared.damaged_blocks.damage_of(&id);
                listed.push(ListedBlock { id, bytes: bytes?, meta, damage });
            }
        }
    }
    Ok(listed)
}

/// What a block's `meta.json` says, or what is wrong with it.
fn meta(blocks: &BlockDirs, id: &str) -> Result<Result<Value, String>, DiskError> {
    let file = blocks.open_file(id, "meta.json")?;
    let bytes = file.size_bytes();
    if bytes > META_BYTES_MAX {
        return Ok(Err(format!("meta.json has {bytes} bytes, more than {META_BYTES_MAX}")));
    }
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
