//! The list of shipped blocks: `thanos.shipper.json` in the data directory.
//!
//! ```json
//! {"version": 1, "uploaded": ["01J…", "01J…"]}
//! ```
//!
//! Name and format are those of Thanos' sidecar, so each can continue where the other stopped. The
//! list has the blocks in the data directory and the sources of merged blocks there. Other blocks
//! are removed from the list, so that it does not grow. If the list is lost, the bucket is asked
//! whether it has a block.

use super::ShipError;
use super::block_info::BlockInfo;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::Path;
use tidepool_disk::DataDir;
use tidepool_settings::file::read_regular;

pub const STATE_FILE: &str = "thanos.shipper.json";

/// Maximum size of the file, enough for about two million blocks.
const STATE_BYTES_MAX: u64 = 64 << 20;

/// The list in memory, and the list in its file.
#[derive(Debug, Default)]
pub struct ShippedFile {
    /// The list in memory, which may have changed since it was saved.
    pub shipped: Shipped,
    /// The list in the file; `None` if the file cannot be read.
    written: Option<Shipped>,
}

/// The blocks that have been shipped, by ULID.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shipped(BTreeSet<String>);

impl ShippedFile {
    /// Reads the list of a data directory. If this fails, the list is empty.
    pub fn open(data: &DataDir) -> ShippedFile {
        match Shipped::read(&data.path().join(STATE_FILE)) {
            Ok(shipped) => ShippedFile { shipped: shipped.clone(), written: Some(shipped) },
            Err(error) => {
                tracing::error!(
                    %error,
                    "the list of shipped blocks cannot be read; listing the bucket instead"
                );
                ShippedFile::default()
            }
        }
    }

    /// Writes and syncs the file, unless its content is unchanged.
    pub fn save(&mut self, data: &DataDir) -> Result<(), ShipError> {
        if self.written.as_ref() != Some(&self.shipped) {
            let list = json!({ "version": 1, "uploaded": self.shipped.0 });
            data.replace_file(STATE_FILE, format!("{list:#}\n").as_bytes())?;
            self.written = Some(self.shipped.clone());
        }
        Ok(())
    }
}

impl Shipped {
    /// Reads the file; without a file, the list is empty.
    pub fn read(path: &Path) -> Result<Shipped, ShipError> {
        let wrong = |reason: String| ShipError::State { path: path.to_owned(), reason };
        let bytes = match read_regular(path, STATE_BYTES_MAX) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Shipped::default()),
            read => read.map_err(|error| wrong(error.to_string()))?,
        };
        let state: Value = serde_json::from_slice(&bytes).map_err(|e| wrong(e.to_string()))?;
        match state.get("version").and_then(Value::as_u64) {
            Some(1) => {}
            _ => return Err(wrong("has another version than 1".to_owned())),
        }
        let uploaded = state.get("uploaded").and_then(Value::as_array);
        let uploaded = uploaded.into_iter().flatten().filter_map(Value::as_str);
        Ok(uploaded.map(str::to_owned).collect())
    }

    pub fn contains(&self, ulid: &str) -> bool {
        self.0.contains(ulid)
    }

    /// Adds a shipped block and, if it was rewritten, the block that it was made of.
    pub fn insert(&mut self, block: &BlockInfo) {
        self.0.insert(block.ulid.clone());
        // The source has the same samples, so shipping both would duplicate them.
        if block.level > 1 && block.sources.len() == 1 {
            self.0.extend(block.sources.iter().cloned());
        }
    }

    /// Removes blocks that are neither among `blocks` nor a source of one of them.
    pub fn retain(&mut self, blocks: &[BlockInfo]) {
        let ulids = blocks.iter().flat_map(|block| block.sources.iter().chain([&block.ulid]));
        let named: BTreeSet<&String> = ulids.collect();
        self.0.retain(|ulid| named.contains(ulid));
    }
}

impl FromIterator<String> for Shipped {
    fn from_iter<T: IntoIterator<Item = String>>(ulids: T) -> Shipped {
        Shipped(ulids.into_iter().collect())
    }
}
