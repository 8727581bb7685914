//! The blocks of the store, as their `meta.json` describe them.

use super::{Shared, Store, StoreError};
use crate::disk::{BlockDirs, DiskError};
use serde_json::Value;

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
                listed.push(ListedBlock { id, bytes: bytes?, meta });
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
