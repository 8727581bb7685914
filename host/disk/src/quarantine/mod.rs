//! The quarantine: a directory of damaged segments as they were found, logs that could not be
//! replayed, and caches of damaged logs. Files are moved to it instead of being deleted.
//!
//! ```text
//! set-aside/
//! ├── 000001-20261121T140000Z-wal-00000007                     a segment
//! ├── 000002-20261121T140000Z-wal-checkpoint.00000006-00000000 a segment of a checkpoint
//! └── 000003-20261121T141500Z-logs/                            wal/, wbl/ and caches of them
//! ```
//!
//! The numbers ascend, even if the clock goes back. If the entries exceed the size limit, the
//! oldest are deleted. The newest entry and the newest `logs` entry always stay, so the directory
//! can exceed the limit by these two. Upstream's programs ignore the directory.

use super::copy::copy_file;
use super::error::{Action, Result};
use super::fs::{Disk, remove_tree, tree_bytes};
use super::{OUT_OF_ORDER_WAL_DIR, WAL_DIR};
use jiff::Timestamp;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

/// Name of the directory in the data directory.
pub const QUARANTINE_DIR: &str = "set-aside";

/// Default limit of the quarantine's size.
pub const QUARANTINE_BYTES_DEFAULT: u64 = 256 * 1024 * 1024;

const LOGS: &str = "logs";
/// Name of the `logs` entry until all of its directories are moved.
const UNFINISHED_LOGS: &str = "logs.unfinished";
const UNFINISHED_SUFFIX: &str = ".tmp";

/// The quarantine of a data directory; clones share it.
#[derive(Clone)]
pub struct Quarantine {
    disk: Arc<dyn Disk>,
    data: PathBuf,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    bytes_max: AtomicU64,
    segments: AtomicU64,
    damaged_places: AtomicU64,
    damaged_bytes: AtomicU64,
    logs: AtomicU64,
    now_ms: OnceLock<fn() -> i64>,
}

/// Figures of the quarantine since the process started. Counters only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuarantineStats {
    /// Segments and other entries of the logs' directories that were quarantined as they were
    /// found.
    pub segments: u64,
    pub damaged_places: u64,
    /// Bytes in the damaged places.
    pub damaged_bytes: u64,
    /// Entries with whole logs, which were quarantined because they could not be replayed.
    pub logs: u64,
}

/// An entry of the quarantine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuarantineEntry {
    pub name: String,
    pub path: PathBuf,
    pub is_dir: bool,
    pub size_bytes: u64,
    number: u64,
}

impl Quarantine {
    pub(super) fn new(disk: Arc<dyn Disk>, data: PathBuf) -> Quarantine {
        let state = State::default();
        state.bytes_max.store(QUARANTINE_BYTES_DEFAULT, Relaxed);
        Quarantine { disk, data, state: Arc::new(state) }
    }

    /// Sets the size limit. With a limit of 0, only logs that could not be replayed are kept.
    pub fn set_bytes_max(&self, bytes_max: u64) {
        self.state.bytes_max.store(bytes_max, Relaxed);
        self.trim();
    }

    /// Replaces the system's clock for the names of entries; `now_ms` returns milliseconds since
    /// the epoch. Only the first call has an effect.
    pub fn set_clock(&self, now_ms: fn() -> i64) {
        let _ = self.state.now_ms.set(now_ms);
    }

    fn now(&self) -> Timestamp {
        let now = self.state.now_ms.get().map(|now_ms| Timestamp::from_millisecond(now_ms()));
        now.and_then(|now| now.ok()).unwrap_or_else(Timestamp::now)
    }

    pub fn entries(&self) -> Result<Vec<QuarantineEntry>> {
        let dir = self.dir();
        let found = match self.disk.list(&dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            found => found.map_err(Action::List.failed(&dir))?,
        };
        let mut entries = Vec::new();
        for entry in found {
            let Some(name) = entry.name().filter(|name| !name.ends_with(UNFINISHED_SUFFIX)) else {
                continue;
            };
            let path = dir.join(name);
            // The size is 0 if another process deletes the entry meanwhile.
            let size_bytes = match entry.is_dir {
                true => tree_bytes(&*self.disk, &path).unwrap_or(0),
                false => entry.size_bytes,
            };
            let (name, is_dir, number) = (name.to_owned(), entry.is_dir, number_of(name));
            entries.push(QuarantineEntry { name, path, is_dir, size_bytes, number });
        }
        entries.sort_by(|a, b| (a.number, &a.name).cmp(&(b.number, &b.name)));
        Ok(entries)
    }

    /// Total size of all entries.
    pub fn size_bytes(&self) -> u64 {
        let entries = self.entries().unwrap_or_default();
        entries.iter().map(|entry| entry.size_bytes).sum()
    }

    pub fn stats(&self) -> QuarantineStats {
        QuarantineStats {
            segments: self.state.segments.load(Relaxed),
            damaged_places: self.state.damaged_places.load(Relaxed),
            damaged_bytes: self.state.damaged_bytes.load(Relaxed),
            logs: self.state.logs.load(Relaxed),
        }
    }

    pub(super) fn count_damage(&self, places: u64, bytes: u64) {
        self.state.damaged_places.fetch_add(places, Relaxed);
        self.state.damaged_bytes.fetch_add(bytes, Relaxed);
    }

    /// Keeps a damaged segment by a second name in the quarantine; the caller replaces the
    /// original. Returns the second name, or `None` if the limit is 0.
    pub(super) fn keep_segment(&self, path: &Path) -> Result<Option<PathBuf>> {
        if self.state.bytes_max.load(Relaxed) == 0 {
            return Ok(None);
        }
        let kept = self.place(&self.name_of(path))?;
        // A file system without hard links needs a copy.
        if self.disk.link(path, &kept).is_err() {
            self.copy(path, &kept)?;
        }
        self.sync(&self.dir())?;
        self.state.segments.fetch_add(1, Relaxed);
        Ok(Some(kept))
    }

    /// Moves a file or directory here and returns its new path; deletes it if the limit is 0.
    pub(super) fn take(&self, path: &Path) -> Result<Option<PathBuf>> {
        if self.state.bytes_max.load(Relaxed) == 0 {
            remove_any(&*self.disk, path).map_err(Action::Remove.failed(path))?;
            return Ok(None);
        }
        let what = self.name_of(path);
        let kept = self.place(&what)?;
        self.disk.rename(path, &kept).map_err(Action::Rename.failed(path))?;
        if [WAL_DIR, OUT_OF_ORDER_WAL_DIR].iter().any(|log| what.starts_with(log)) {
            self.state.segments.fetch_add(1, Relaxed);
        }
        self.sync(&self.dir())?;
        // The target first: a power cut between the syncs must not lose both names.
        if let Some(parent) = path.parent() {
            self.sync(parent)?;
        }
        self.trim();
        Ok(Some(kept))
    }

    /// Moves directories of the data directory, in the given order, into one entry, which can be
    /// opened as a data directory. A crash leaves each directory either here or there; another call
    /// with the remaining directories finishes the entry. Returns the entry's path, or `None` if
    /// there is nothing to move or to finish.
    pub(super) fn take_logs(&self, names: &[String]) -> Result<Option<PathBuf>> {
        let unfinished = self.dir().join(UNFINISHED_LOGS);
        if names.is_empty() && !self.exists(&self.dir(), UNFINISHED_LOGS) {
            return Ok(None);
        }
        // An unfinished call left a directory of this name, so its entry is finished first.
        if names.iter().any(|name| self.exists(&unfinished, name)) {
            self.finish_logs(&unfinished)?;
        }
        self.make_dir(&unfinished)?;
        for name in names {
            let from = self.data.join(name);
            let moved = self.disk.rename(&from, &unfinished.join(name));
            moved.map_err(Action::Rename.failed(&from))?;
        }
        // The target first: a power cut between the syncs then loses neither name of a directory.
        self.sync(&unfinished)?;
        self.sync(&self.data)?;
        let kept = self.finish_logs(&unfinished)?;
        self.state.logs.fetch_add(1, Relaxed);
        self.trim();
        Ok(Some(kept))
    }

    fn finish_logs(&self, unfinished: &Path) -> Result<PathBuf> {
        let kept = self.place(LOGS)?;
        self.disk.rename(unfinished, &kept).map_err(Action::Rename.failed(unfinished))?;
        self.sync(&self.dir())?;
        Ok(kept)
    }

    /// Deletes the oldest entries until the rest does not exceed the limit.
    pub(super) fn trim(&self) {
        let bytes_max = self.state.bytes_max.load(Relaxed);
        let entries = match self.entries() {
            Ok(entries) => entries,
            Err(error) => {
                tracing::warn!(%error, "could not list quarantined files");
                return;
            }
        };
        let newest = if bytes_max == 0 { None } else { entries.last().cloned() };
        let newest_logs = entries.iter().rfind(|entry| entry.is_logs()).cloned();
        let mut bytes: u64 = entries.iter().map(|entry| entry.size_bytes).sum();
        for entry in &entries {
            if bytes <= bytes_max {
                return;
            }
            let is_kept = [&newest, &newest_logs].into_iter().flatten().any(|kept| kept == entry);
            // tidepool did not make entries without a number, so it keeps them.
            if is_kept || entry.number == 0 {
                continue;
            }
            let path = entry.path.display();
            match remove_any(&*self.disk, &entry.path) {
                Ok(()) => {
                    bytes -= entry.size_bytes;
                    tracing::warn!(
                        %path, bytes = entry.size_bytes, bytes_max,
                        "deleted the oldest quarantined files (--quarantine-size)"
                    );
                }
                Err(error) => tracing::warn!(%path, %error, "could not delete quarantined files"),
            }
        }
    }

    fn dir(&self) -> PathBuf {
        self.data.join(QUARANTINE_DIR)
    }

    /// Name of the entry for a file or directory of the data directory.
    fn name_of(&self, path: &Path) -> String {
        let inside = path.strip_prefix(&self.data).unwrap_or(path);
        let parts = inside.components().map(|part| part.as_os_str().to_string_lossy());
        parts.collect::<Vec<_>>().join("-")
    }

    /// Path of a new entry with the next free number.
    fn place(&self, what: &str) -> Result<PathBuf> {
        let dir = self.dir();
        self.make_dir(&dir)?;
        let found = self.disk.list(&dir).map_err(Action::List.failed(&dir))?;
        let numbers = found.iter().filter_map(|entry| entry.name()).map(number_of);
        let number = numbers.max().unwrap_or(0) + 1;
        let now = self.now().strftime("%Y%m%dT%H%M%SZ");
        Ok(dir.join(format!("{number:06}-{now}-{what}")))
    }

    fn make_dir(&self, dir: &Path) -> Result<()> {
        self.disk.create_dir(dir).map_err(Action::Create.failed(dir))?;
        dir.parent().map_or(Ok(()), |parent| self.sync(parent))
    }

    fn copy(&self, from: &Path, to: &Path) -> Result<()> {
        let mut unfinished = to.as_os_str().to_owned();
        unfinished.push(UNFINISHED_SUFFIX);
        let unfinished = PathBuf::from(unfinished);
        let copied = copy_file(&*self.disk, from, &unfinished);
        let named = copied.and_then(|()| {
            self.disk.rename(&unfinished, to).map_err(Action::Rename.failed(&unfinished))
        });
        if named.is_err() {
            // Removed now, since its space may be needed; otherwise the next start removes it.
            let _ = self.disk.remove_file(&unfinished);
        }
        named
    }

    /// Removes incomplete copies that a crash left.
    pub(super) fn sweep(&self) -> Result<()> {
        let dir = self.dir();
        let found = match self.disk.list(&dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            found => found.map_err(Action::List.failed(&dir))?,
        };
        let is_unfinished = |name: &str| name.ends_with(UNFINISHED_SUFFIX);
        for entry in found.iter().filter(|entry| entry.name().is_some_and(is_unfinished)) {
            let path = dir.join(&entry.name);
            remove_any(&*self.disk, &path).map_err(Action::Remove.failed(&path))?;
        }
        Ok(())
    }

    fn exists(&self, dir: &Path, name: &str) -> bool {
        let found = self.disk.list(dir).unwrap_or_default();
        found.iter().any(|entry| entry.name() == Some(name))
    }

    fn sync(&self, dir: &Path) -> Result<()> {
        self.disk.sync_dir(dir).map_err(Action::Sync.failed(dir))
    }
}

impl QuarantineEntry {
    /// Returns whether the entry has whole logs, and so can be opened as a data directory.
    pub fn is_logs(&self) -> bool {
        self.is_dir && self.name.ends_with(&format!("-{LOGS}"))
    }

    /// Time at which the entry was made, by the clock at that time.
    pub fn time(&self) -> Option<&str> {
        self.name.split('-').nth(1)
    }
}

/// Number at the beginning of an entry's name; 0 if the name has none.
fn number_of(name: &str) -> u64 {
    name.split('-').next().and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

fn remove_any(disk: &dyn Disk, path: &Path) -> io::Result<()> {
    match disk.list(path) {
        Ok(_) => remove_tree(disk, path),
        Err(_) => disk.remove_file(path),
    }
}

#[cfg(test)]
mod tests;
