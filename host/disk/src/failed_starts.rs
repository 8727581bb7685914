//! Counts starts that have not become ready, and quarantines logs that cannot be replayed.
//!
//! ```text
//! failed-starts.2   number of failed starts in a row; content: progress of the furthest of them
//! starting          progress of the present start; exists until the start is ready or ends
//! ```
//!
//! The count is in a name, because a rename is atomic and needs no space on a full disk. The count
//! is durable. `starting` is not, since it is only read after a kill of the process; after a power
//! cut it has no meaning. Upstream's programs ignore both files.

use super::error::{Action, Result};
use super::fs::{Access, Disk, DiskFile, tree_bytes};
use super::head_caches::is_head_cache;
use super::{DataDir, OUT_OF_ORDER_WAL_DIR, WAL_DIR, wal};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const PREFIX: &str = "failed-starts.";
pub(super) const STARTING: &str = "starting";

/// Maximum number of bytes that are read from either file.
const TEXT_BYTES_MAX: u64 = 256;

/// Failed starts since the last start that became ready.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FailedStarts {
    pub count: u32,
    /// Records of the logs that the furthest start replayed; `None` if the number was not written.
    pub records: Option<u64>,
}

/// The file `starting` of the present start. Dropping the value removes the file.
pub struct StartNote {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    file: Arc<dyn DiskFile>,
}

impl StartNote {
    /// Replaces the text of the file by a text of the same length.
    pub fn say(&self, text: &str) -> Result<()> {
        self.file.write_at(0, text.as_bytes()).map_err(Action::Write.failed(&self.path))
    }
}

impl Drop for StartNote {
    fn drop(&mut self) {
        // If the file stays, the next start checks whether it was written since the system booted.
        let _ = self.disk.remove_file(&self.path);
    }
}

impl DataDir {
    /// Returns the number of failed starts and their progress.
    pub fn failed_starts(&self) -> Result<FailedStarts> {
        let Some(count) = self.failed_starts_files()?.into_iter().max() else {
            return Ok(FailedStarts::default());
        };
        let text = self.text_of(&self.failed_starts_path(count));
        Ok(FailedStarts { count, records: text.and_then(|text| text.trim().parse().ok()) })
    }

    /// Replaces count and progress durably; the progress only if the disk has space for it.
    pub fn set_failed_starts(&self, failed: FailedStarts) -> Result<()> {
        let FailedStarts { count, records } = failed;
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
        // tidepool keeps one such file; of several, the highest count wins at the next start.
        for other in found.into_iter().filter(|other| *other != count) {
            let path = self.failed_starts_path(other);
            self.disk.remove_file(&path).map_err(Action::Remove.failed(&path))?;
        }
        if count > 0
            && let Err(error) = self.write_records(&target, records)
        {
            let path = target.display();
            tracing::debug!(%path, %error, "could not record the progress of failed starts");
        }
        self.disk.sync_dir(&self.path).map_err(Action::Sync.failed(&self.path))
    }

    fn write_records(&self, path: &Path, records: Option<u64>) -> io::Result<()> {
        let file = self.disk.open(path, Access::Write)?;
        let text = records.map_or_else(String::new, |records| format!("{records}\n"));
        // The file is emptied first, so that an unknown progress is not read from an older text.
        file.set_len(0)?;
        file.write_at(0, text.as_bytes())?;
        file.sync_data()
    }

    /// Last text of the previous start, if that start neither became ready nor ended by itself.
    pub fn unfinished_start(&self) -> Option<String> {
        self.text_of(&self.path.join(STARTING))
    }

    /// Creates the file of the present start, replacing a file of an earlier start.
    pub fn begin_start(&self) -> Result<StartNote> {
        let path = self.path.join(STARTING);
        match self.disk.remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(Action::Remove.failed(&path)(error));
            }
            _ => {}
        }
        let file = self.disk.create(&path).map_err(Action::Create.failed(&path))?;
        Ok(StartNote { disk: self.disk(), path, file })
    }

    /// Reads a short text file; `None` if it cannot be read.
    fn text_of(&self, path: &Path) -> Option<String> {
        let file = self.disk.open(path, Access::Read).ok()?;
        let mut text = vec![0; file.size().ok()?.min(TEXT_BYTES_MAX) as usize];
        file.read_at(0, &mut text).ok()?;
        String::from_utf8(text).ok()
    }

    /// Moves both logs, and the caches made from them, to the quarantine. Returns the entry's path,
    /// or `None` if both logs were empty. After a crash, another call continues.
    pub fn set_logs_aside(&self) -> Result<Option<PathBuf>> {
        let found = self.disk.list(&self.path).map_err(Action::List.failed(&self.path))?;
        let dirs = found.iter().filter_map(|entry| entry.name());
        let mut names: Vec<String> =
            dirs.filter(|name| is_head_cache(name)).map(str::to_owned).collect();
        // The in-order log last: without it the out-of-order log is useless.
        for name in [OUT_OF_ORDER_WAL_DIR, WAL_DIR] {
            let is_there = found.iter().any(|entry| entry.name() == Some(name));
            // A log that was begun in place of a quarantined one is empty, and is not moved.
            let is_empty = || tree_bytes(&self.disk, &self.path.join(name)).is_ok_and(|b| b == 0);
            if is_there && !is_empty() {
                names.push(name.to_owned());
            }
        }
        let kept = self.quarantine.take_logs(&names)?;
        for name in [WAL_DIR, OUT_OF_ORDER_WAL_DIR] {
            let before = kept.as_ref().map(|kept| kept.join(name));
            let begun = wal::begin_behind(&self.disk, before.as_deref(), &self.path.join(name));
            // Only forwarding depends on the numbers, so the node starts nevertheless.
            begun.unwrap_or_else(|error| {
                tracing::warn!(
                    %error,
                    "the segment numbers of the new WAL may start at 0; some of its samples may \
                     not be forwarded"
                );
            });
        }
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
