//! Held segments: segments that the head no longer needs but forwarding still reads. They are moved
//! instead of deleted, together with the checkpoints that have their series.
//!
//! ```text
//! wal/00000007          ─▶ forward/held/wal/00000007
//! wal/checkpoint.000…4  ─▶ forward/held/wal/checkpoint.000…4
//! ```
//!
//! Upstream ignores `forward/`. Forwarding deletes segments by [`HeldSegments::release`].

use super::LogKind;
use super::segment::WalListing;
use crate::DataDir;
use crate::error::{Action, Result};
use crate::fs::{Disk, remove_tree, tree_bytes};
use crate::write_accounts::WrittenFor;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The directory with all files of forwarding.
pub const FORWARD_DIR: &str = "forward";

/// Suffix of the file in `forward` that stores a destination's position in the logs.
pub const POSITION_SUFFIX: &str = ".position";
const HELD_DIR: &str = "held";

/// Switch: if on, segments are held for forwarding instead of deleted. Clones share the switch.
#[derive(Clone, Debug)]
pub struct Holding {
    dir: PathBuf,
    /// Locked while a file is moved, so that no file is moved after the switch was turned off.
    is_on: Arc<Mutex<bool>>,
}

/// The segments that were moved to `forward/held`.
pub struct HeldSegments {
    disk: Arc<dyn Disk>,
    holding: Holding,
    wal: PathBuf,
}

impl Holding {
    pub(crate) fn new(data: &Path) -> Holding {
        Holding { dir: data.join(FORWARD_DIR).join(HELD_DIR), is_on: Arc::default() }
    }

    /// From now on, files of the logs are moved instead of deleted.
    pub fn turn_on(&self) {
        *self.lock() = true;
    }

    /// From now on, files of the logs are deleted. Waits for a move in progress.
    pub fn turn_off(&self) {
        *self.lock() = false;
    }

    pub(super) fn is_on(&self) -> bool {
        *self.lock()
    }

    fn lock(&self) -> MutexGuard<'_, bool> {
        self.is_on.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The directory for a log's held files.
    pub(super) fn dir(&self, log: LogKind) -> PathBuf {
        self.dir.join(match log {
            LogKind::InOrder => crate::WAL_DIR,
            LogKind::OutOfOrder => crate::OUT_OF_ORDER_WAL_DIR,
        })
    }

    /// Moves a segment or checkpoint of a log; returns whether it was moved.
    pub(super) fn take(&self, disk: &dyn Disk, path: &Path) -> Result<bool> {
        let is_on = self.lock();
        let (true, Some(log), Some(name)) =
            (*is_on, path.parent().and_then(Path::file_name), path.file_name())
        else {
            return Ok(false);
        };
        let dir = self.dir.join(log);
        disk.create_dir(&dir).map_err(Action::Create.failed(&dir))?;
        let to = dir.join(name);
        // An existing file of this name belongs to an earlier log, which was removed.
        let _ = disk.remove_file(&to);
        remove_tree(disk, &to).or_else(is_file).map_err(Action::Remove.failed(&to))?;
        disk.rename(path, &to).map_err(Action::Rename.failed(path))?;
        disk.sync_dir(&dir).map_err(Action::Sync.failed(&dir))?;
        Ok(true)
    }
}

fn is_file(error: io::Error) -> io::Result<()> {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Ok(()),
        _ => Err(error),
    }
}

impl DataDir {
    /// Turns holding on if a destination has stored a position.
    pub fn hold_for_readers(&self) -> Result<()> {
        let dir = self.path().join(FORWARD_DIR);
        let entries = match self.disk().list(&dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            entries => entries.map_err(Action::List.failed(&dir))?,
        };
        if entries.iter().any(|it| it.name().is_some_and(|it| it.ends_with(POSITION_SUFFIX))) {
            self.holding().turn_on();
        }
        Ok(())
    }
}

impl HeldSegments {
    /// Opens the held segments of a data directory.
    pub fn open(data: &DataDir) -> HeldSegments {
        let disk = data.disk_for(WrittenFor::Other);
        HeldSegments { disk, holding: data.holding().clone(), wal: data.wal_path() }
    }

    /// Total size of the held files.
    pub fn bytes(&self) -> u64 {
        tree_bytes(&*self.disk, &self.holding.dir).unwrap_or(0)
    }

    /// Number of the last held segment of a log.
    pub fn last(&self, log: LogKind) -> Option<u32> {
        self.segments(log).last().map(|(number, _)| *number)
    }

    /// Numbers and sizes of a log's held segments, oldest first; empty if they cannot be listed.
    pub fn segments(&self, log: LogKind) -> Vec<(u32, u64)> {
        let listing = listing(&*self.disk, &self.holding.dir(log)).unwrap_or_default();
        listing.segments.iter().map(|found| (found.number, found.size_bytes)).collect()
    }

    /// Deletes held files that no reader needs. Readers read each log from the given segment on,
    /// and need the series of earlier segments: from a checkpoint, and the segments after it. Rows
    /// of the out-of-order log may refer to series that newer checkpoints lack, so only checkpoints
    /// up to `series` are used. If there is none, the whole in-order log stays.
    pub fn release(&self, in_order: u32, out_of_order: u32, series: Option<u32>) -> Result<()> {
        let dir = self.holding.dir(LogKind::InOrder);
        let held = listing(&*self.disk, &dir)?;
        let live = listing(&*self.disk, &self.wal)?;
        let checkpoints = held.checkpoints.iter().chain(&live.checkpoints);
        let numbers = checkpoints
            .map(|found| found.number)
            .filter(|number| *number < in_order && Some(*number) <= series);
        // The base checkpoint stays, because it has the series of the segments that it covers.
        if let Some(base) = numbers.max() {
            for found in held.segments.iter().filter(|found| found.number <= base) {
                self.remove(&found.path)?;
            }
            for found in held.checkpoints.iter().filter(|found| found.number < base) {
                remove_tree(&*self.disk, &found.path)
                    .map_err(Action::Remove.failed(&found.path))?;
            }
        }
        // The out-of-order log has no series, so only the reader's position matters.
        let held = listing(&*self.disk, &self.holding.dir(LogKind::OutOfOrder))?;
        for found in held.segments.iter().filter(|found| found.number < out_of_order) {
            self.remove(&found.path)?;
        }
        Ok(())
    }

    /// Deletes all held files. Meant for when no reader is left.
    pub fn clear(&self) -> Result<()> {
        let dir = &self.holding.dir;
        remove_tree(&*self.disk, dir).map_err(Action::Remove.failed(dir))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.disk.remove_file(path).map_err(Action::Remove.failed(path))
    }
}

/// Lists a directory; empty if it does not exist.
pub(super) fn listing(disk: &dyn Disk, dir: &Path) -> Result<WalListing> {
    match disk.list(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(WalListing::default()),
        _ => WalListing::read(disk, dir),
    }
}
