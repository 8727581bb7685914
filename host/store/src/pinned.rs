//! Pinned blocks: blocks that are neither merged nor dropped until they are copied elsewhere.

use std::path::PathBuf;
use tidepool_disk::BlockDirs;
use tidepool_ship::ShipError;
use tidepool_ship::plan::{Survey, survey};
use tidepool_ship::state::Shipped;

/// The list of copied blocks, and the kinds of blocks that are to be copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinConfig {
    /// Path of the list, in the format of Thanos' sidecar.
    pub file: PathBuf,
    /// Whether merged blocks are copied as well.
    pub with_compacted: bool,
}

/// Blocks that wait to be copied.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Waiting {
    pub all: Vec<String>,
    /// Waiting blocks that must be neither merged nor dropped.
    pub pinned: Vec<String>,
}

impl PinConfig {
    /// Returns the blocks that wait to be copied. If the list is unreadable, all blocks that may be
    /// in it wait; so does a block with a damaged `meta.json`. On a full disk, blocks that end
    /// `retention_ms` before the newest are not pinned. After an error any block may be waiting.
    pub fn waiting(
        &self,
        blocks: &BlockDirs,
        retention_ms: i64,
        is_full: bool,
    ) -> Result<Waiting, ShipError> {
        let shipped = Shipped::read(&self.file).unwrap_or_else(|error| {
            tracing::warn!(%error, "the list of uploaded blocks cannot be read; merging is paused");
            Shipped::default()
        });
        let Survey { found, unread } = survey(blocks)?;
        let newest_ms = found.iter().map(|block| block.max_time_ms).max();
        let kept_from_ms = match is_full && retention_ms > 0 {
            true => newest_ms.map_or(i64::MIN, |newest_ms| newest_ms.saturating_sub(retention_ms)),
            false => i64::MIN,
        };
        let mut waiting = Waiting::default();
        for (ulid, error) in unread {
            match error {
                // A merge or retention dropped the block meanwhile.
                error if error.is_gone() => {}
                // Damage is permanent, so this block waits; all other blocks can be judged.
                ShipError::Meta { .. } => waiting.add(&ulid),
                error => return Err(error),
            }
        }
        for block in found.into_iter().filter(|b| b.is_due(&shipped, self.with_compacted)) {
            if block.max_time_ms > kept_from_ms {
                waiting.pinned.push(block.ulid.clone());
            }
            waiting.all.push(block.ulid);
        }
        Ok(waiting)
    }

    /// Returns whether a new block of this level waits to be copied.
    pub fn pins_new(&self, level: u32) -> bool {
        level == 1 || self.with_compacted
    }
}

impl Waiting {
    /// Adds a waiting block that is pinned.
    pub fn add(&mut self, ulid: &str) {
        self.pinned.push(ulid.to_owned());
        self.all.push(ulid.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidepool_disk::DataDir;

    #[test]
    fn on_a_full_disk_age_counts() -> Result<(), Box<dyn std::error::Error>> {
        let dir = tempfile::tempdir()?;
        let data = DataDir::open(dir.path())?;
        let blocks = BlockDirs::open(&data);
        for (end_ms, ulid) in
            (1..).zip(["A", "B", "C"].map(|c| format!("01M7ZM6VDK4VPGZG2G1KK62D3{c}")))
        {
            std::fs::create_dir(dir.path().join(&ulid))?;
            let meta = format!(
                "{{\"minTime\":0,\"maxTime\":{end_ms}000,\"stats\":{{\"numSamples\":1}},\
                 \"compaction\":{{\"level\":1,\"sources\":[\"{ulid}\"]}}}}"
            );
            std::fs::write(dir.path().join(ulid).join("meta.json"), meta)?;
        }
        let file = dir.path().join("thanos.shipper.json");
        let list = "{\"version\":1,\"uploaded\":[\"01M7ZM6VDK4VPGZG2G1KK62D3C\"]}";
        std::fs::write(&file, list)?;
        let config = PinConfig { file, with_compacted: false };
        let ends = |waiting: Vec<String>| -> String {
            waiting.iter().filter_map(|w| w.chars().last()).collect()
        };
        for (retention_ms, is_full, all, pinned) in
            [(2000, false, "AB", "AB"), (2000, true, "AB", "B"), (0, true, "AB", "AB")]
        {
            let waiting = config.waiting(&blocks, retention_ms, is_full)?;
            assert_eq!((ends(waiting.all).as_str(), ends(waiting.pinned).as_str()), (all, pinned));
        }
        Ok(())
    }

    /// A block that cannot be read may be one that waits.
    #[test]
    fn what_cannot_be_read_is_pinned() -> Result<(), Box<dyn std::error::Error>> {
        let dir = tempfile::tempdir()?;
        let data = DataDir::open(dir.path())?;
        let blocks = BlockDirs::open(&data);
        let [damaged, unread] = ["A", "B"].map(|c| format!("01M7ZM6VDK4VPGZG2G1KK62D3{c}"));
        let file = dir.path().join("thanos.shipper.json");
        let config = PinConfig { file, with_compacted: false };

        // Damaged for good: it stays, and blocks nothing else.
        std::fs::create_dir(dir.path().join(&damaged))?;
        std::fs::write(dir.path().join(&damaged).join("meta.json"), b"{")?;
        let waiting = config.waiting(&blocks, 0, false)?;
        assert_eq!((&waiting.pinned, &waiting.all), (&vec![damaged.clone()], &vec![damaged]));

        // The system gives an error: a link to itself does, also for the superuser.
        std::fs::create_dir(dir.path().join(&unread))?;
        let meta = dir.path().join(&unread).join("meta.json");
        std::os::unix::fs::symlink("meta.json", &meta)?;
        let error = config.waiting(&blocks, 0, false).err().ok_or("it reads")?;
        assert!(error.to_string().contains(&unread), "{error}");
        std::fs::remove_file(meta)?;
        assert!(config.waiting(&blocks, 0, false).is_ok());

        // And one whose directory does not list.
        std::fs::remove_dir_all(dir.path())?;
        assert!(config.waiting(&blocks, 0, false).is_err());
        Ok(())
    }
}
