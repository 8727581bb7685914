//! Segments that the head no longer needs but a destination still reads: they are moved instead of
//! deleted, together with the checkpoints that introduce their series.
//!
//! ```text
//! wal/00000007          ─▶ forward/held/wal/00000007
//! wal/checkpoint.000…4  ─▶ forward/held/wal/checkpoint.000…4
//! ```
//!
//! Upstream looks at nothing in `forward/`. Their readers delete them: see
//! [`HeldSegments::release`].

use super::LogKind;
use super::segment::WalListing;
use crate::DataDir;
use crate::error::{Action, Result};
use crate::fs::{Disk, remove_tree, tree_bytes};
use crate::wear::WrittenFor;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The directory of all that forwarding keeps.
pub const FORWARD_DIR: &str = "forward";

/// Ends the name of a file in it that says where a destination stands in the logs.
pub const POSITION_SUFFIX: &str = ".position";

/// In it, that of segments which only forwarding reads.
const HELD_DIR: &str = "held";

/// Whether what is deleted of the logs is kept for others; clones share it.
#[derive(Clone, Debug)]
pub struct Holding {
    dir: PathBuf,
    /// Locked while something is moved, so that nothing comes once it is turned off.
    is_on: Arc<Mutex<bool>>,
}

/// The segments that were moved.
pub struct HeldSegments {
    disk: Arc<dyn Disk>,
    holding: Holding,
    wal: PathBuf,
}

impl Holding {
    pub(crate) fn new(data: &Path) -> Holding {
        Holding { dir: data.join(FORWARD_DIR).join(HELD_DIR), is_on: Arc::default() }
    }

    /// From now on nothing of the logs is deleted, but moved.
    pub fn turn_on(&self) {
        *self.lock() = true;
    }

    /// From now on what is deleted of the logs is deleted. Waits for what is being moved.
    pub fn turn_off(&self) {
        *self.lock() = false;
    }

    pub(super) fn is_on(&self) -> bool {
        *self.lock()
    }

    fn lock(&self) -> MutexGuard<'_, bool> {
        self.is_on.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where what is moved of a log goes.
    pub(super) fn dir(&self, log: LogKind) -> PathBuf {
        self.dir.join(match log {
            LogKind::InOrder => crate::WAL_DIR,
            LogKind::OutOfOrder => crate::OUT_OF_ORDER_WAL_DIR,
        })
    }

    /// Moves a segment or a checkpoint of a log; returns whether it is gone from there.
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
        // What has that name was left by a life whose log was taken away since.
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
    /// Keeps what is deleted of the logs from now on if a destination stands anywhere in them.
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
    /// Those of a data directory.
    pub fn open(data: &DataDir) -> HeldSegments {
        let disk = data.disk_for(WrittenFor::Other);
        HeldSegments { disk, holding: data.holding().clone(), wal: data.wal_path() }
    }

    /// Bytes they take.
    pub fn bytes(&self) -> u64 {
        tree_bytes(&*self.disk, &self.holding.dir).unwrap_or(0)
    }

    /// The number of the last one of a log.
    pub fn last(&self, log: LogKind) -> Option<u32> {
        self.segments(log).last().map(|(number, _)| *number)
    }

    /// Numbers and bytes of a log's, the oldest first; none if they cannot be listed.
    pub fn segments(&self, log: LogKind) -> Vec<(u32, u64)> {
        let listing = listing(&*self.disk, &self.holding.dir(log)).unwrap_or_default();
        listing.segments.iter().map(|found| (found.number, found.size_bytes)).collect()
    }

    /// Deletes what is not needed by a reader that reads each log from the given segment on, and
    /// needs to know the series of what comes before: a checkpoint, and the segments behind it.
    /// Rows of the out-of-order log may name series that a newer checkpoint no longer has, so the
    /// checkpoint is none after `series`; without one, all of the in-order log stays.
    pub fn release(&self, in_order: u32, out_of_order: u32, series: Option<u32>) -> Result<()> {
        let dir = self.holding.dir(LogKind::InOrder);
        let held = listing(&*self.disk, &dir)?;
        let live = listing(&*self.disk, &self.wal)?;
        let checkpoints = held.checkpoints.iter().chain(&live.checkpoints);
        let numbers = checkpoints
            .map(|found| found.number)
            .filter(|number| *number < in_order && Some(*number) <= series);
        if let Some(base) = numbers.max() {
            for found in held.segments.iter().filter(|found| found.number <= base) {
                self.remove(&found.path)?;
            }
            for found in held.checkpoints.iter().filter(|found| found.number < base) {
                remove_tree(&*self.disk, &found.path)
                    .map_err(Action::Remove.failed(&found.path))?;
            }
        }
        let held = listing(&*self.disk, &self.holding.dir(LogKind::OutOfOrder))?;
        for found in held.segments.iter().filter(|found| found.number < out_of_order) {
            self.remove(&found.path)?;
        }
        Ok(())
    }

    /// Deletes all of it, once there is no reader any more.
    pub fn clear(&self) -> Result<()> {
        let dir = &self.holding.dir;
        remove_tree(&*self.disk, dir).map_err(Action::Remove.failed(dir))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.disk.remove_file(path).map_err(Action::Remove.failed(path))
    }
}

/// The entries of a directory; none if it does not exist.
pub(super) fn listing(disk: &dyn Disk, dir: &Path) -> Result<WalListing> {
    match disk.list(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(WalListing::default()),
        _ => WalListing::read(disk, dir),
    }
}
