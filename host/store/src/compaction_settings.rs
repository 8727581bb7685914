//! `compaction.json` in the data directory: settings of a node for commands that run without it.
//!
//! ```json
//! {"version": 1, "block_duration_ms": 7200000, "max_block_duration_ms": 129600000,
//!  "out_of_order_window_ms": 7200000,
//!  "pin": {"list": "thanos.shipper.json", "with_compacted": false}}
//! ```
//!
//! `pin` is present if blocks are pinned (neither merged nor dropped) until a list of uploaded
//! blocks names them. A list in the data directory has a relative path, so that the directory can
//! be moved. A command that ignored `pin` would merge blocks, which are then never uploaded.

use super::pinned::PinConfig;
use super::{StoreConfig, millis};
use serde::{Deserialize, Serialize};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tidepool_disk::{DataDir, DiskError};
use tidepool_settings::file::read_regular;

const FILE: &str = "compaction.json";
const VERSION: u32 = 1;

/// Maximum size of the file.
const BYTES_MAX: u64 = 64 << 10;

/// Default maximum span of a merged block, even if a tenth of the retention is longer.
const BLOCK_DURATION_MAX: Duration = Duration::from_secs(31 * 86400);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompactionSettings {
    version: u32,
    pub block_duration_ms: i64,
    pub max_block_duration_ms: i64,
    /// Maximum age of an out-of-order sample, relative to the newest sample.
    pub out_of_order_window_ms: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pin: Option<Pin>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Pin {
    list: PathBuf,
    with_compacted: bool,
}

/// Reason for which `compaction.json` cannot be used.
#[derive(Debug, thiserror::Error)]
#[error(
    "{}: {reason}. Start the node once, which writes it again; if no block of this directory waits \
     for an upload, remove it",
    path.display()
)]
pub struct CompactionSettingsError {
    path: PathBuf,
    reason: String,
}

impl CompactionSettings {
    pub fn of(config: &StoreConfig) -> CompactionSettings {
        let pin = config.pin.as_ref().map(|pin| Pin {
            list: relative_to(&config.data_dir, &pin.file),
            with_compacted: pin.with_compacted,
        });
        CompactionSettings {
            version: VERSION,
            block_duration_ms: millis(config.block_duration),
            max_block_duration_ms: millis(max_block_duration(config)),
            out_of_order_window_ms: millis(config.out_of_order_window),
            pin,
        }
    }

    /// Reads the settings of the last node that used a data directory; `None` without a file.
    pub fn read(data: &DataDir) -> Result<Option<CompactionSettings>, CompactionSettingsError> {
        let path = data.path().join(FILE);
        let wrong = |reason| CompactionSettingsError { path: path.clone(), reason };
        let bytes = match read_regular(&path, BYTES_MAX) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            read => read.map_err(|error| wrong(error.to_string()))?,
        };
        let settings: CompactionSettings =
            serde_json::from_slice(&bytes).map_err(|error| wrong(error.to_string()))?;
        match settings.version {
            VERSION => Ok(Some(settings)),
            version => Err(wrong(format!("version {version} is not known, only {VERSION} is"))),
        }
    }

    /// Writes the file durably, unless it already has the same content.
    pub fn save(&self, data: &DataDir) -> Result<(), DiskError> {
        // An unreadable file is replaced, because it is only a copy of the flags for commands.
        let before = Self::read(data).unwrap_or_else(|error| {
            tracing::warn!(%error, "the settings of compaction cannot be read; writing them again");
            None
        });
        if before.as_ref() == Some(self) {
            return Ok(());
        }
        if self.pin.is_none() && before.is_some_and(|before| before.pin.is_some()) {
            tracing::warn!(
                "blocks are not held back for an upload any more: neither --ship nor \
                 --delay-compact-file is set, and an earlier start had one. What is merged now is \
                 not uploaded later"
            );
        }
        // Cannot fail: all fields are plain, so the default is never written.
        let text = serde_json::to_vec(self).unwrap_or_default();
        data.replace_file(FILE, &text)
    }

    /// Returns which blocks are pinned until they are uploaded; `None` if no blocks are pinned.
    pub fn pin(&self, data: &DataDir) -> Option<PinConfig> {
        let Pin { list, with_compacted } = self.pin.clone()?;
        Some(PinConfig { file: data.path().join(list), with_compacted })
    }
}

/// Returns the maximum span of a merged block: the configured span, or a tenth of the retention.
pub fn max_block_duration(config: &StoreConfig) -> Duration {
    let by_retention = match config.retention {
        Duration::ZERO => BLOCK_DURATION_MAX,
        retention => (retention / 10).min(BLOCK_DURATION_MAX),
    };
    // A maximum below the span of one block could not be kept.
    config.block_duration_max.unwrap_or(by_retention).max(config.block_duration)
}

/// Returns a path relative to `dir` if the file is inside of it, else the absolute path.
fn relative_to(dir: &Path, file: &Path) -> PathBuf {
    // Unlike `canonicalize`, this also works if the file does not exist yet.
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let file = absolute(file);
    file.strip_prefix(absolute(dir)).map_or_else(|_| file.clone(), Path::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(pin: Option<Pin>) -> CompactionSettings {
        CompactionSettings {
            version: VERSION,
            block_duration_ms: 7_200_000,
            max_block_duration_ms: 129_600_000,
            out_of_order_window_ms: 0,
            pin,
        }
    }

    #[test]
    fn what_a_node_leaves_is_read_again() -> Result<(), Box<dyn std::error::Error>> {
        let dir = tempfile::tempdir()?;
        let data = DataDir::open(dir.path())?;
        assert_eq!(CompactionSettings::read(&data)?, None);
        for list in [None, Some("thanos.shipper.json"), Some("/elsewhere/list")] {
            let pin = list.map(|list| Pin { list: list.into(), with_compacted: true });
            settings(pin.clone()).save(&data)?;
            let read = CompactionSettings::read(&data)?.ok_or("no settings")?;
            assert_eq!(read, settings(pin));
            let file = read.pin(&data).map(|pin| pin.file);
            assert_eq!(file, list.map(|list| dir.path().join(list)), "relative to the directory");
        }
        Ok(())
    }

    /// A command that cannot read the settings does not guess them.
    #[test]
    fn a_damaged_file_is_an_error() -> Result<(), Box<dyn std::error::Error>> {
        let dir = tempfile::tempdir()?;
        let data = DataDir::open(dir.path())?;
        for text in ["", "{", "{}", "[1]", "{\"version\":2}"] {
            std::fs::write(dir.path().join(FILE), text)?;
            let error = CompactionSettings::read(&data).err().ok_or("it reads")?;
            assert!(error.to_string().contains(FILE), "{error}");
        }
        settings(None).save(&data)?;
        assert_eq!(CompactionSettings::read(&data)?, Some(settings(None)));
        Ok(())
    }

    #[test]
    fn a_list_in_the_directory_moves_with_it() {
        for (dir, file, list) in [
            ("data", "data/thanos.shipper.json", "thanos.shipper.json"),
            ("/var/data", "/var/data/list", "list"),
            ("/var/data", "/var/data2/list", "/var/data2/list"),
        ] {
            assert_eq!(relative_to(Path::new(dir), Path::new(file)), Path::new(list));
        }
    }
}
