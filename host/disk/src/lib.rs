//! The data directory on plain files: its lock, the segments of the write-ahead log, the files of
//! blocks, and what is quarantined. What a record or a block contains is the engine's
//! (`engine/src/wal`, `engine/src/block`); neither WebAssembly nor HTTP is known here.
//!
//! ```text
//! DIR/
//! ├── lock                           held (flock) while a process works here; never removed
//! ├── wal/
//! │   ├── 00000007                   segments, ascending without gaps
//! │   └── checkpoint.00000006/       stands for segments up to 6, segments of its own inside
//! ├── wbl/                           the same for out-of-order samples, without checkpoints
//! ├── chunks_head/                   a cache that Prometheus left, removed: see `head_caches`
//! ├── head_snapshot                  the head at the last clean stop: see `head_snapshot`
//! ├── wal-by-columns                 tidepool's own log holds columns: see `record_format`
//! ├── set-aside/                     what was damaged, as it was found: see `quarantine`
//! ├── failed-starts.2, starting      while starting: how many starts failed: see `failed_starts`
//! ├── thanos.shipper.json            blocks copied to object storage: see `ship`
//! ├── snapshots/<name>/              blocks as they were at some moment, for backups
//! └── 01J…ULID/                      one committed block
//!     ├── meta.json  index  tombstones
//!     └── chunks/000001
//! ```
//!
//! This is a Prometheus data directory (`tsdb/docs/format` in prometheus/prometheus), down to the
//! lock: either program can open what the other left, but for records that only one of them reads
//! (`record_format`), and never both at once (but Debian's build of
//! Prometheus locks only when started with `--storage.tsdb.use-lockfile`).
//!
//! Names that end in `.tmp`, `.tmp-for-creation` or `.tmp-for-deletion` are unfinished work. Work
//! is finished by a rename, so what has such a name at a start is unfinished and is removed.
//!
//! Read on in [`fs`] (what is assumed of a disk), [`wal`], [`blocks`], [`wear`], [`error`].

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
pub mod wear;

pub use blocks::{BlockDirs, BlockFile, BlockWriter, OpenFileFigures, OpenFiles};
pub use error::{DiskError, Result};
pub use failed_starts::{FailedStarts, StartNote};
pub use quarantine::{QUARANTINE_BYTES_DEFAULT, Quarantine, QuarantineStats};
pub use record_format::{FormatReason, RecordFormat};
pub use snapshot::SnapshotWriter;
pub use staging::Staging;
pub use wal::{Compression, ReplayBatch, SyncPolicy, Wal, WalOptions};
pub use wear::{Wear, WrittenFor};

use error::Action;
use fs::{Disk, Lock, RealDisk};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wear::CountingDisk;

const LOCK_FILE: &str = "lock";
const WAL_DIR: &str = "wal";
const OUT_OF_ORDER_WAL_DIR: &str = "wbl";
const SNAPSHOTS_DIR: &str = "snapshots";
/// What upstream calls a block being made, in this and in older versions, and one being deleted.
const UNFINISHED_BLOCK_SUFFIXES: [&str; 3] = [".tmp-for-creation", ".tmp-for-deletion", ".tmp"];

/// A data directory that this process alone works in.
///
/// Clones share the lock, as do the log and the blocks opened from it: it is released when the
/// last of them is dropped.
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
    /// Creates the directory if need be, locks it, and removes what earlier runs left unfinished.
    pub fn open(path: impl Into<PathBuf>) -> Result<DataDir> {
        DataDir::open_on(Arc::new(RealDisk), path)
    }

    /// [`DataDir::open`] on any disk.
    pub fn open_on(disk: Arc<dyn Disk>, path: impl Into<PathBuf>) -> Result<DataDir> {
        let (path, disk) = (path.into(), CountingDisk::new(disk));
        let wal = path.join(WAL_DIR);
        disk.create_dir(&path).map_err(Action::Create.failed(&path))?;
        let lock_path = path.join(LOCK_FILE);
        let Some(lock) = disk.lock(&lock_path).map_err(Action::Lock.failed(&lock_path))? else {
            return Err(DiskError::Locked { path: lock_path });
        };
        let quarantine = Quarantine::new(disk.with_account(WrittenFor::Other), path.clone());
        make_wal_dir(&disk, &wal, &quarantine)?;
        // Before the sweep: the name by which something is swept may be newer than the last sync,
        // and a power cut in the middle would bring back what is left under the name before.
        for dir in [&wal, &path] {
            disk.sync_dir(dir).map_err(Action::Sync.failed(dir))?;
        }
        sweep(&disk, &path, is_unfinished, |name| name.ends_with(".tmp"))?;
        sweep(&disk, &wal, wal::is_unfinished_checkpoint, |_| false)?;
        let snapshots = path.join(SNAPSHOTS_DIR);
        if has_dir(&disk, &path, SNAPSHOTS_DIR)? {
            sweep(&disk, &snapshots, snapshot::is_unfinished, |_| false)?;
        }
        for parent in path.ancestors().skip(1) {
            let is_here = parent.as_os_str().is_empty();
            sync_parent(&disk, if is_here { Path::new(".") } else { parent })?;
        }
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
        BlockDirs::open(&data).sweep_replacements()?;
        Ok(data)
    }

    /// A directory to read while another process may work in it: nothing is created, locked or
    /// removed, and its blocks cannot be changed.
    pub fn open_read_only(path: impl Into<PathBuf>) -> Result<DataDir> {
        let (path, disk) = (path.into(), CountingDisk::new(Arc::new(RealDisk)));
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
            lock: Arc::new(()),
            quarantine,
            holding,
            committed,
            block_names: blocks::Names::default(),
            open_files: OpenFiles::default(),
            is_read_only: true,
        })
    }

    /// Whether a process works in it at this moment: for one that is opened only to be looked at.
    /// An existing lock is tried for that moment; nothing is created.
    pub fn is_in_use(&self) -> Result<bool> {
        let lock_path = self.path.join(LOCK_FILE);
        fs::is_locked(&lock_path).map_err(Action::Lock.failed(&lock_path))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where its write-ahead log is.
    pub fn wal_path(&self) -> PathBuf {
        self.path.join(WAL_DIR)
    }

    /// The out-of-order log.
    pub fn out_of_order_wal_path(&self) -> PathBuf {
        self.path.join(OUT_OF_ORDER_WAL_DIR)
    }

    /// Where what is damaged is kept.
    pub fn quarantine(&self) -> &Quarantine {
        &self.quarantine
    }

    /// The files of its blocks that are open.
    pub fn open_files(&self) -> &OpenFiles {
        &self.open_files
    }

    /// Whether segments that the head needs no more are kept for others.
    pub fn holding(&self) -> &wal::Holding {
        &self.holding
    }

    /// How far this process has written the logs.
    pub(crate) fn committed(&self) -> &wal::CommittedLogs {
        &self.committed
    }

    /// Whether there is an out-of-order log.
    pub fn has_out_of_order_wal(&self) -> Result<bool> {
        has_dir(&self.disk, &self.path, OUT_OF_ORDER_WAL_DIR)
    }

    /// Bytes that everything in the directory takes but for snapshots, which share most of theirs
    /// with blocks and are not tidepool's to drop, and for deleted blocks that are still read.
    /// Walks it.
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
                        Err(error) if error.kind() == std::io::ErrorKind::NotFound => 0,
                        counted => counted.map_err(Action::List.failed(&dir))?,
                    }
                }
            };
        }
        Ok(bytes)
    }

    /// Takes the directory away if it holds nothing but what opening it made; for work that failed
    /// in a directory that was made for it.
    pub fn remove_if_empty(&self) -> Result<()> {
        let (wal, lock) = (self.wal_path(), self.path.join(LOCK_FILE));
        let listed = |dir: &Path| self.disk.list(dir).map_err(Action::List.failed(dir));
        let is_made = |name: Option<&str>| matches!(name, Some(LOCK_FILE | WAL_DIR));
        let is_empty = listed(&wal)?.is_empty();
        if !is_empty || !listed(&self.path)?.iter().all(|entry| is_made(entry.name())) {
            return Ok(());
        }
        self.disk.remove_dir(&wal).map_err(Action::Remove.failed(&wal))?;
        // Last, so that no other process opens the directory meanwhile.
        self.disk.remove_file(&lock).map_err(Action::Remove.failed(&lock))?;
        self.disk.remove_dir(&self.path).map_err(Action::Remove.failed(&self.path))
    }

    /// Bytes that the file system still has for this process.
    pub fn free_bytes(&self) -> Result<u64> {
        self.disk.free_bytes(&self.path).map_err(Action::List.failed(&self.path))
    }

    /// Bytes of the whole file system.
    pub fn total_bytes(&self) -> Result<u64> {
        self.disk.total_bytes(&self.path).map_err(Action::List.failed(&self.path))
    }

    /// The bytes written here since this was opened.
    pub fn wear(&self) -> Arc<Wear> {
        self.disk.wear()
    }

    pub(crate) fn disk(&self) -> Arc<dyn Disk> {
        self.disk_for(WrittenFor::Other)
    }

    /// The disk, counting what is written for a purpose.
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

/// Syncs one of the names that lead to the data directory, which may all be new. Those further up
/// may be out of bounds for this process, or on a file system that is never written to; a component
/// sees nothing above the directory it was given.
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

/// Makes the log's directory; a file that has its name goes out of the way.
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

/// Removes the directories and the files of `dir` that are leftovers by their names.
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
