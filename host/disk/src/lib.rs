//! The data directory on plain files: its lock, the segments of the write-ahead log, the files of
//! blocks, and the quarantine of damaged files. The engine defines the content of records and
//! blocks (`engine/src/wal`, `engine/src/block`); this crate knows neither WebAssembly nor HTTP.
//!
//! ```text
//! DIR/
//! ├── lock                           locked (flock) while a process works here; never removed
//! ├── wal/
//! │   ├── 00000007                   segments, ascending without gaps
//! │   └── checkpoint.00000006/       replaces segments up to 6; has segments of its own
//! ├── wbl/                           the same for out-of-order samples, without checkpoints
//! ├── chunks_head/                   a cache that Prometheus left, removed: see `head_caches`
//! ├── head_snapshot                  the head at the last clean stop: see `head_snapshot`
//! ├── wal-by-columns                 the log has column records: see `record_format`
//! ├── set-aside/                     damaged files, as they were found: see `quarantine`
//! ├── failed-starts.2, starting      during a start: number of failed starts: see `failed_starts`
//! ├── thanos.shipper.json            blocks copied to object storage: see `ship`
//! ├── snapshots/<name>/              blocks as of one point in time, for backups
//! └── 01J…ULID/                      one committed block
//!     ├── meta.json  index  tombstones
//!     └── chunks/000001
//! ```
//!
//! This is a Prometheus data directory (`tsdb/docs/format` in prometheus/prometheus), including the
//! lock. Either program can open a directory of the other, except for records that only one of them
//! reads (`record_format`), but never both at once. Debian's build of Prometheus locks only if
//! started with `--storage.tsdb.use-lockfile`.
//!
//! Names that end in `.tmp`, `.tmp-for-creation` or `.tmp-for-deletion` are unfinished work. A
//! rename finishes the work, so entries that still have such a name at a start are removed.
//!
//! Read on in [`fs`] (assumptions about disks), [`wal`], [`blocks`], [`write_accounts`], [`error`].

#![deny(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

pub mod blocks;
mod copy;
pub mod error;
mod failed_starts;
pub mod fs;
mod head_caches;
pub mod head_snapshot;
pub mod quarantine;
mod record_format;
mod replace;
mod snapshot;
mod staging;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
pub mod wal;
pub mod write_accounts;

pub use blocks::{BlockDirs, BlockFile, BlockWriter, OpenFileFigures, OpenFiles};
pub use error::{DiskError, Result};
pub use failed_starts::{FailedStarts, StartNote};
pub use quarantine::{QUARANTINE_BYTES_DEFAULT, Quarantine, QuarantineStats};
pub use record_format::{FormatReason, RecordFormat};
pub use replace::replace_file;
pub use snapshot::SnapshotWriter;
pub use staging::Staging;
pub use wal::{Compression, ReplayBatch, SyncPolicy, Wal, WalOptions};
pub use write_accounts::{WriteAccounts, WrittenFor};

use error::Action;
use fs::{Disk, Lock, RealDisk};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use write_accounts::CountingDisk;

const LOCK_FILE: &str = "lock";
const WAL_DIR: &str = "wal";
const OUT_OF_ORDER_WAL_DIR: &str = "wbl";
const SNAPSHOTS_DIR: &str = "snapshots";

/// Folder of the journal of alerts, of positions of receivers and of silences.
pub const ALERTS_DIR: &str = "alerts";
/// Upstream's suffixes of a new block, of a deleted block, and of a new block in older versions.
const UNFINISHED_BLOCK_SUFFIXES: [&str; 3] = [".tmp-for-creation", ".tmp-for-deletion", ".tmp"];

/// A data directory that only this process works in.
///
/// Clones share the lock with each other and with logs and blocks that were opened from them. The
/// lock is released when the last of these values is dropped.
#[derive(Clone)]
pub struct DataDir {
    disk: CountingDisk,
    path: PathBuf,
    lock: Lock,
    quarantine: Quarantine,
    holding: wal::Holding,
    committed: wal::CommittedLogs,
    block_names: blocks::Names,
    open_files: OpenFiles,
    is_read_only: bool,
}

impl DataDir {
    /// Creates the directory if it is missing, locks it, and removes unfinished work of earlier
    /// runs.
    pub fn open(path: impl Into<PathBuf>) -> Result<DataDir> {
        DataDir::open_on(Arc::new(RealDisk), path)
    }

    pub fn open_on(disk: Arc<dyn Disk>, path: impl Into<PathBuf>) -> Result<DataDir> {
        let (path, disk) = (path.into(), CountingDisk::new(disk));
        let wal = path.join(WAL_DIR);
        disk.create_dir(&path).map_err(Action::Create.failed(&path))?;
        // The lock comes first, because everything below removes or moves files of this directory.
        let lock_path = path.join(LOCK_FILE);
        let Some(lock) = disk.lock(&lock_path).map_err(Action::Lock.failed(&lock_path))? else {
            return Err(DiskError::Locked { path: lock_path });
        };
        let quarantine = Quarantine::new(disk.with_account(WrittenFor::Other), path.clone());
        make_wal_dir(&disk, &wal, &quarantine)?;
        // Before the sweep: a rename to a `.tmp` name may not be durable yet. A power cut during
        // the sweep would then bring back an incomplete directory under its old name.
        for dir in [&wal, &path] {
            disk.sync_dir(dir).map_err(Action::Sync.failed(dir))?;
        }
        sweep(&disk, &path, is_unfinished, |name| name.ends_with(".tmp"))?;
        sweep(&disk, &wal, wal::is_unfinished_checkpoint, |_| false)?;
        let snapshots = path.join(SNAPSHOTS_DIR);
        if has_dir(&disk, &path, SNAPSHOTS_DIR)? {
            sweep(&disk, &snapshots, snapshot::is_unfinished, |_| false)?;
        }
        // The directory and its parents may be new. A name that was not synced may vanish in a
        // power cut, with everything below it.
        for parent in path.ancestors().skip(1) {
            let is_here = parent.as_os_str().is_empty();
            sync_parent(&disk, if is_here { Path::new(".") } else { parent })?;
        }
        // Unfinished files in the quarantine only use space, so an error does not stop the start.
        quarantine.sweep().unwrap_or_else(|error| {
            tracing::warn!(%error, "could not remove unfinished files of an earlier run");
        });
        let (holding, committed) = (wal::Holding::new(&path), wal::CommittedLogs::default());
        let data = DataDir {
            disk,
            path,
            lock,
            quarantine,
            holding,
            committed,
            block_names: blocks::Names::default(),
            open_files: OpenFiles::default(),
            is_read_only: false,
        };
        // A crash may have left `.tmp` files in blocks, which the sweep above does not search.
        BlockDirs::open(&data).sweep_replacements()?;
        Ok(data)
    }

    /// Opens a directory for reading while another process may work in it: nothing is created,
    /// locked or removed, and its blocks cannot be changed.
    pub fn open_read_only(path: impl Into<PathBuf>) -> Result<DataDir> {
        let (path, disk) = (path.into(), CountingDisk::new(Arc::new(RealDisk)));
        // Listing distinguishes a missing directory from a directory without blocks.
        match disk.list(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(DiskError::NotFound { path });
            }
            listed => drop(listed.map_err(Action::List.failed(&path))?),
        }
        let quarantine = Quarantine::new(disk.with_account(WrittenFor::Other), path.clone());
        let (holding, committed) = (wal::Holding::new(&path), wal::CommittedLogs::default());
        Ok(DataDir {
            disk,
            path,
            // Not locked: otherwise a node that starts at this moment would be refused.
            lock: Arc::new(()),
            quarantine,
            holding,
            committed,
            block_names: blocks::Names::default(),
            open_files: OpenFiles::default(),
            is_read_only: true,
        })
    }

    /// Returns whether a process works in the directory now; meant for directories opened for
    /// reading. Briefly locks an existing lock file, and creates nothing.
    pub fn is_in_use(&self) -> Result<bool> {
        let lock_path = self.path.join(LOCK_FILE);
        fs::is_locked(&lock_path).map_err(Action::Lock.failed(&lock_path))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn wal_path(&self) -> PathBuf {
        self.path.join(WAL_DIR)
    }

    pub fn out_of_order_wal_path(&self) -> PathBuf {
        self.path.join(OUT_OF_ORDER_WAL_DIR)
    }

    pub fn quarantine(&self) -> &Quarantine {
        &self.quarantine
    }

    pub fn open_files(&self) -> &OpenFiles {
        &self.open_files
    }

    /// Switch that keeps segments for forwarding that the head no longer needs.
    pub fn holding(&self) -> &wal::Holding {
        &self.holding
    }

    /// Positions up to which this process has written each log.
    pub(crate) fn committed(&self) -> &wal::CommittedLogs {
        &self.committed
    }

    pub fn has_out_of_order_wal(&self) -> Result<bool> {
        has_dir(&self.disk, &self.path, OUT_OF_ORDER_WAL_DIR)
    }

    /// Total size of the directory, without snapshots, which share most of their bytes with blocks
    /// and belong to the user, and without deleted blocks that are still being read. Walks the
    /// directory.
    pub fn size_bytes(&self) -> Result<u64> {
        let mut bytes = 0;
        for entry in self.disk.list(&self.path).map_err(Action::List.failed(&self.path))? {
            bytes += match entry.name() {
                Some(SNAPSHOTS_DIR) => 0,
                Some(name) if name.ends_with(blocks::DELETION_SUFFIX) => 0,
                _ if !entry.is_dir => entry.size_bytes,
                _ => {
                    let dir = self.path.join(&entry.name);
                    match fs::tree_bytes(&self.disk, &dir) {
                        // A block can be deleted between the listing above and this walk.
                        Err(error) if error.kind() == std::io::ErrorKind::NotFound => 0,
                        counted => counted.map_err(Action::List.failed(&dir))?,
                    }
                }
            };
        }
        Ok(bytes)
    }

    /// Removes the directory if it contains only the files that opening it creates. For work that
    /// failed in a directory made for it.
    pub fn remove_if_empty(&self) -> Result<()> {
        let (wal, lock) = (self.wal_path(), self.path.join(LOCK_FILE));
        let listed = |dir: &Path| self.disk.list(dir).map_err(Action::List.failed(dir));
        let is_made = |name: Option<&str>| matches!(name, Some(LOCK_FILE | WAL_DIR));
        let is_empty = listed(&wal)?.is_empty();
        if !is_empty || !listed(&self.path)?.iter().all(|entry| is_made(entry.name())) {
            return Ok(());
        }
        self.disk.remove_dir(&wal).map_err(Action::Remove.failed(&wal))?;
        // Last, because without the lock another process could open the directory meanwhile.
        self.disk.remove_file(&lock).map_err(Action::Remove.failed(&lock))?;
        self.disk.remove_dir(&self.path).map_err(Action::Remove.failed(&self.path))
    }

    /// Free bytes of the file system that are available to this process.
    pub fn free_bytes(&self) -> Result<u64> {
        self.disk.free_bytes(&self.path).map_err(Action::List.failed(&self.path))
    }

    pub fn total_bytes(&self) -> Result<u64> {
        self.disk.total_bytes(&self.path).map_err(Action::List.failed(&self.path))
    }

    /// Bytes written to the directory since it was opened.
    pub fn wear(&self) -> Arc<WriteAccounts> {
        self.disk.wear()
    }

    pub(crate) fn disk(&self) -> Arc<dyn Disk> {
        self.disk_for(WrittenFor::Other)
    }

    /// Returns the disk with writes counted for a purpose.
    pub(crate) fn disk_for(&self, account: WrittenFor) -> Arc<dyn Disk> {
        self.disk.with_account(account)
    }

    pub(crate) fn is_read_only(&self) -> bool {
        self.is_read_only
    }

    pub(crate) fn lock(&self) -> Lock {
        Arc::clone(&self.lock)
    }
}

/// Syncs one ancestor of the data directory. Ignores errors: an ancestor may be inaccessible to
/// this process or on a read-only file system, and a component has no access above the directory
/// that it was given.
fn sync_parent(disk: &dyn Disk, dir: &Path) -> Result<()> {
    use std::io::ErrorKind::*;

    let Err(error) = disk.sync_dir(dir) else { return Ok(()) };
    match error.kind() {
        NotFound | PermissionDenied | InvalidInput | Unsupported | ReadOnlyFilesystem => {
            tracing::debug!(path = %dir.display(), %error, "parent directory not synced");
            Ok(())
        }
        _ => Err(Action::Sync.failed(dir)(error)),
    }
}

/// Creates the log's directory, after quarantining a file of the same name.
fn make_wal_dir(disk: &dyn Disk, wal: &Path, quarantine: &Quarantine) -> Result<()> {
    let Err(error) = disk.create_dir(wal) else { return Ok(()) };
    match error.kind() {
        std::io::ErrorKind::AlreadyExists | std::io::ErrorKind::NotADirectory => {
            let kept = quarantine.take(wal)?;
            tracing::warn!(
                path = %wal.display(), ?kept,
                "a file had the name of the WAL directory; replaced it by a directory"
            );
            disk.create_dir(wal).map_err(Action::Create.failed(wal))
        }
        _ => Err(Action::Create.failed(wal)(error)),
    }
}

fn has_dir(disk: &dyn Disk, path: &Path, name: &str) -> Result<bool> {
    let found = disk.list(path).map_err(Action::List.failed(path))?;
    Ok(found.iter().any(|entry| entry.is_dir && entry.name() == Some(name)))
}

fn is_unfinished(name: &str) -> bool {
    let mut suffixes = UNFINISHED_BLOCK_SUFFIXES.iter();
    suffixes.any(|suffix| name.strip_suffix(suffix).is_some_and(blocks::is_block_name))
        || head_caches::is_unfinished_head_cache(name)
}

/// Removes directories and files in `dir` whose names mark them as unfinished work.
fn sweep(
    disk: &dyn Disk,
    dir: &Path,
    is_leftover_dir: fn(&str) -> bool,
    is_leftover_file: fn(&str) -> bool,
) -> Result<()> {
    for entry in disk.list(dir).map_err(Action::List.failed(dir))? {
        let path = dir.join(&entry.name);
        let removed = match (entry.name(), entry.is_dir) {
            (Some(name), true) if is_leftover_dir(name) => fs::remove_tree(disk, &path),
            (Some(name), false) if is_leftover_file(name) => disk.remove_file(&path),
            _ => continue,
        };
        removed.map_err(Action::Remove.failed(&path))?;
        tracing::info!(path = %path.display(), "removed unfinished files of an earlier run");
    }
    Ok(())
}
