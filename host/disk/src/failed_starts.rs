//! Counting starts that did not become ready, and setting the logs aside that will not be replayed.
//!
//! The count is the name of an empty file, `failed-starts.N`: it is there while the log is replayed,
//! and gone once the store is ready. A name needs no room on a full disk, a rename is atomic, and
//! upstream's programs ignore it.

use super::error::{Action, Result};
use super::fs::Disk;
use super::head_caches::is_head_cache;
use super::{DataDir, LATE_WAL_DIR, WAL_DIR};
use std::path::PathBuf;

const PREFIX: &str = "failed-starts.";

impl DataDir {
    /// How many starts in a row did not become ready, if nobody is starting right now.
    pub fn failed_starts(&self) -> Result<u32> {
        Ok(self.failed_starts_files()?.into_iter().max().unwrap_or(0))
    }

    /// Changes the count, durably.
    pub fn set_failed_starts(&self, count: u32) -> Result<()> {
        let mut found = self.failed_starts_files()?;
        found.sort_unstable();
        let target = self.failed_starts_path(count);
        match found.pop() {
            Some(last) if last == count => {}
            Some(last) => {
                let from = self.failed_starts_path(last);
                match count {
                    0 => self.disk.remove_file(&from).map_err(Action::Remove.failed(&from))?,
                    _ => self.disk.rename(&from, &target).map_err(Action::Rename.failed(&from))?,
                }
            }
            None if count == 0 => return Ok(()),
            None => drop(self.disk.create(&target).map_err(Action::Create.failed(&target))?),
        }
        // Others are nobody's doing here; they must not speak up later.
        for other in found.into_iter().filter(|other| *other != count) {
            let path = self.failed_starts_path(other);
            self.disk.remove_file(&path).map_err(Action::Remove.failed(&path))?;
        }
        self.disk.sync_dir(&self.path).map_err(Action::Sync.failed(&self.path))
    }

    /// Moves both logs, and what was made from them, out of the way; gives where to, if there
    /// is anything in them. A crash meanwhile is met by calling this again.
    pub fn set_logs_aside(&self) -> Result<Option<PathBuf>> {
        let found = self.disk.list(&self.path).map_err(Action::List.failed(&self.path))?;
        let dirs = found.iter().filter_map(|entry| entry.name());
        let mut names: Vec<String> =
            dirs.filter(|name| is_head_cache(name)).map(str::to_owned).collect();
        // The late log means nothing without the other, so it goes first.
        for name in [LATE_WAL_DIR, WAL_DIR] {
            let is_there = found.iter().any(|entry| entry.name() == Some(name));
            let is_empty = || self.disk.list(&self.path.join(name)).is_ok_and(|l| l.is_empty());
            if is_there && !is_empty() {
                names.push(name.to_owned());
            }
        }
        let kept = self.set_aside.take_logs(&names)?;
        let wal = self.wal_path();
        self.disk.create_dir(&wal).map_err(Action::Create.failed(&wal))?;
        self.disk.sync_dir(&self.path).map_err(Action::Sync.failed(&self.path))?;
        Ok(kept)
    }

    fn failed_starts_files(&self) -> Result<Vec<u32>> {
        let found = self.disk.list(&self.path).map_err(Action::List.failed(&self.path))?;
        let counts = found.iter().filter(|entry| !entry.is_dir).filter_map(|entry| entry.name());
        Ok(counts.filter_map(|name| name.strip_prefix(PREFIX)?.parse().ok()).collect())
    }

    fn failed_starts_path(&self, count: u32) -> PathBuf {
        self.path.join(format!("{PREFIX}{count}"))
    }
}
