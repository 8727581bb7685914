//! Names of segments and checkpoints, and listings of a log's directory.
//!
//! The name of a segment is its number in eight digits (older versions used six, so any number of
//! digits is read). The name of a checkpoint is `checkpoint.` and the number of the last segment
//! that it replaces. Entries with other names do not belong to tidepool and stay untouched.

use crate::error::{Action, Result};
use crate::fs::{Disk, DiskEntry};
use std::path::{Path, PathBuf};

const CHECKPOINT_PREFIX: &str = "checkpoint.";
const UNFINISHED_SUFFIX: &str = ".tmp";

/// A segment found in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentFile {
    pub number: u32,
    pub path: PathBuf,
    /// Length in bytes when the directory was listed.
    pub size_bytes: u64,
}

/// A committed checkpoint found in the log's directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointDir {
    /// Number of the last segment that the checkpoint replaces.
    pub number: u32,
    pub path: PathBuf,
}

/// The entries of a log's directory, each list ascending by number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WalListing {
    pub segments: Vec<SegmentFile>,
    pub checkpoints: Vec<CheckpointDir>,
    /// Directories named like segments, and files named like checkpoints.
    pub strays: Vec<PathBuf>,
    /// The highest number in any name, including strays.
    pub number_max: Option<u32>,
}

impl WalListing {
    /// Lists the directory of a log or of a checkpoint.
    pub fn read(disk: &dyn Disk, dir: &Path) -> Result<WalListing> {
        let mut listing = WalListing::default();
        for entry in disk.list(dir).map_err(Action::List.failed(dir))? {
            listing.add(dir, &entry);
        }
        // If two names have the same number, the name with eight digits is used.
        let written_today = |found: &SegmentFile| found.path.ends_with(segment_name(found.number));
        listing.segments.sort_by_key(|found| (found.number, !written_today(found)));
        listing.segments.dedup_by(|later, first| {
            let same = later.number == first.number;
            if same {
                let path = later.path.display();
                tracing::warn!(%path, "ignored a second WAL segment with the same number");
            }
            same
        });
        listing.checkpoints.sort_by_key(|found| found.number);
        Ok(listing)
    }

    fn add(&mut self, dir: &Path, entry: &DiskEntry) {
        let Some(name) = entry.name() else { return };
        let path = dir.join(name);
        if let Some(number) = parse_number(name) {
            // Strays count, too: no new segment could be created with a stray's name.
            self.number_max = self.number_max.max(Some(number));
            match entry.is_dir {
                true => self.strays.push(path),
                false => {
                    let size_bytes = entry.size_bytes;
                    self.segments.push(SegmentFile { number, path, size_bytes });
                }
            }
        } else if let Some(number) = name.strip_prefix(CHECKPOINT_PREFIX).and_then(parse_number) {
            match entry.is_dir {
                true => {
                    self.number_max = self.number_max.max(Some(number));
                    self.checkpoints.push(CheckpointDir { number, path });
                }
                false => self.strays.push(path),
            }
        }
    }
}

pub fn segment_name(number: u32) -> String {
    format!("{number:08}")
}

pub fn checkpoint_name(last_segment: u32) -> String {
    format!("{CHECKPOINT_PREFIX}{last_segment:08}")
}

/// The name of a checkpoint that is being written.
pub fn unfinished_checkpoint_name(last_segment: u32) -> String {
    format!("{CHECKPOINT_PREFIX}{last_segment:08}{UNFINISHED_SUFFIX}")
}

/// Returns whether a directory has the name of a checkpoint that was never committed.
pub fn is_unfinished_checkpoint(name: &str) -> bool {
    name.starts_with(CHECKPOINT_PREFIX) && name.ends_with(UNFINISHED_SUFFIX)
}

fn parse_number(name: &str) -> Option<u32> {
    // `parse` alone would accept a sign, as in `+1`.
    let digits = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| name.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_digits_only() {
        assert_eq!(parse_number(&segment_name(12)), Some(12));
        assert_eq!(parse_number("000007"), Some(7));
        assert_eq!(parse_number("4294967295"), Some(u32::MAX));
        for name in ["", "+1", "-1", "1.repair", "4294967296", " 1", "0x1"] {
            assert_eq!(parse_number(name), None, "{name:?}");
        }
        assert_eq!(checkpoint_name(3), "checkpoint.00000003");
        assert!(is_unfinished_checkpoint(&unfinished_checkpoint_name(3)));
        assert!(!is_unfinished_checkpoint(&checkpoint_name(3)));
    }
}
