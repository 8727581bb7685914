//! Names: of segments and checkpoints, and finding those that exist.
//!
//! A segment is named by its number in eight digits (older versions used six, so any run of digits
//! is read), a checkpoint `checkpoint.` and the number of the last segment it stands for. Names of
//! other names are not tidepool's and stay untouched.

use crate::error::{Action, Result};
use crate::fs::{Disk, DiskEntry};
use std::path::{Path, PathBuf};

const CHECKPOINT_PREFIX: &str = "checkpoint.";
const UNFINISHED_SUFFIX: &str = ".tmp";

/// A segment found in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentFile {
    /// Its number.
    pub number: u32,
    /// Its file.
    pub path: PathBuf,
    /// Its length when it was found.
    pub size_bytes: u64,
}

/// A committed checkpoint found in the log's directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointDir {
    /// The last segment it stands for.
    pub number: u32,
    /// Its directory.
    pub path: PathBuf,
}

/// The content of the log's directory, each list ascending by number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WalListing {
    /// Segments.
    pub segments: Vec<SegmentFile>,
    /// Checkpoints.
    pub checkpoints: Vec<CheckpointDir>,
    /// Directories named like segments, and files named like checkpoints.
    pub strays: Vec<PathBuf>,
    /// The highest number that any name stands for, usable or not.
    pub number_max: Option<u32>,
}

impl WalListing {
    /// Looks through a directory: the log's, or a checkpoint's.
    pub fn read(disk: &dyn Disk, dir: &Path) -> Result<WalListing> {
        let mut listing = WalListing::default();
        for entry in disk.list(dir).map_err(Action::List.failed(dir))? {
            listing.add(dir, &entry);
        }
        // Two spellings of one number: the eight digits that are written today win.
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

/// The name of a segment.
pub fn segment_name(number: u32) -> String {
    format!("{number:08}")
}

/// The name of a checkpoint.
pub fn checkpoint_name(last_segment: u32) -> String {
    format!("{CHECKPOINT_PREFIX}{last_segment:08}")
}

/// The name of a checkpoint while it is written.
pub fn unfinished_checkpoint_name(last_segment: u32) -> String {
    format!("{CHECKPOINT_PREFIX}{last_segment:08}{UNFINISHED_SUFFIX}")
}

/// Whether a directory in the log's is a checkpoint that was never committed.
pub fn is_unfinished_checkpoint(name: &str) -> bool {
    name.starts_with(CHECKPOINT_PREFIX) && name.ends_with(UNFINISHED_SUFFIX)
}

fn parse_number(name: &str) -> Option<u32> {
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
