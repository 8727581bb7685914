//! Checkpoints: a checkpoint is a shorter log that replaces all segments up to a number.
//!
//! ```text
//! checkpoint.00000006.tmp/00000000…   written, synced
//!   └─ rename, sync directory ──▶ checkpoint.00000006/     from here on, it counts
//!        └─ remove segments up to 6 and older checkpoints, oldest first
//! ```
//!
//! A crash before the rename leaves the old log, a crash after it the new log. Replay ignores
//! replaced files that remain after a crash, and the next checkpoint removes them. The oldest files
//! are removed first, so that the remaining segments have no gap, which upstream would refuse.

use super::removal::Removal;
use super::segment::{WalListing, checkpoint_name, unfinished_checkpoint_name};
use super::writer::{SegmentWriter, WriterOptions};
use crate::error::{Action, DiskError, Result};
use crate::fs::{Disk, Lock, remove_tree};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A checkpoint that is being written next to the log. Dropping it before
/// [`commit`](CheckpointWriter::commit) removes all of its files.
pub struct CheckpointWriter {
    disk: Arc<dyn Disk>,
    wal_dir: PathBuf,
    dir: PathBuf,
    last_segment: u32,
    /// Whether the checkpoint has its final name already, by an earlier commit that failed later.
    is_named: bool,
    writer: SegmentWriter,
    removal: Arc<Removal>,
    committed: bool,
    _busy: BusyFlag,
    _lock: Lock,
}

/// Marks that a checkpoint is being written, until this value is dropped.
pub(super) struct BusyFlag(Arc<AtomicBool>);

impl BusyFlag {
    pub fn raise(flag: &Arc<AtomicBool>) -> Result<BusyFlag> {
        match flag.swap(true, Ordering::AcqRel) {
            true => Err(DiskError::CheckpointBusy),
            false => Ok(BusyFlag(Arc::clone(flag))),
        }
    }
}

impl Drop for BusyFlag {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl CheckpointWriter {
    /// Begins a checkpoint; the caller has checked the number.
    pub(super) fn begin(
        removal: Arc<Removal>,
        wal_dir: PathBuf,
        last_segment: u32,
        is_named: bool,
        options: WriterOptions,
        busy: BusyFlag,
        lock: Lock,
    ) -> Result<CheckpointWriter> {
        let disk = Arc::clone(&removal.disk);
        let dir = wal_dir.join(unfinished_checkpoint_name(last_segment));
        // An earlier attempt of this process may have failed to remove this directory.
        remove_tree(&*disk, &dir).map_err(Action::Remove.failed(&dir))?;
        disk.create_dir(&dir).map_err(Action::Create.failed(&dir))?;
        let writer = SegmentWriter::new(Arc::clone(&disk), dir.clone(), Some(0), options);
        let (_busy, _lock) = (busy, lock);
        let committed = false;
        Ok(CheckpointWriter {
            disk,
            wal_dir,
            dir,
            last_segment,
            is_named,
            writer,
            removal,
            committed,
            _busy,
            _lock,
        })
    }

    /// Appends all records or none. Records must be in the order of replay.
    pub fn append<R: AsRef<[u8]>>(&mut self, records: &[R]) -> Result<()> {
        match self.is_named {
            // The existing checkpoint contains these records, so `commit` only has to finish it.
            true => Ok(()),
            false => self.writer.append(records).map(drop),
        }
    }

    /// Makes the checkpoint durable, then deletes the files that it replaces.
    pub fn commit(mut self) -> Result<()> {
        if !self.is_named {
            self.write_and_name()?;
        }
        // A power cut before this sync may undo the rename, so nothing may be deleted before.
        self.disk.sync_dir(&self.wal_dir).map_err(Action::Sync.failed(&self.wal_dir))?;
        self.removal.counters.checkpoints.fetch_add(1, Ordering::Relaxed);
        if let Err(error) = self.remove_replaced() {
            tracing::warn!(
                %error,
                "wrote a WAL checkpoint, but could not remove the segments that it replaces; the \
                 next checkpoint removes them"
            );
        }
        Ok(())
    }

    fn write_and_name(&mut self) -> Result<()> {
        self.writer.finish()?;
        self.disk.sync_dir(&self.dir).map_err(Action::Sync.failed(&self.dir))?;
        let target = self.wal_dir.join(checkpoint_name(self.last_segment));
        // Only a checkpoint without segments can have this name: see `Wal::checkpoint`.
        remove_tree(&*self.disk, &target).map_err(Action::Remove.failed(&target))?;
        self.disk.rename(&self.dir, &target).map_err(Action::Rename.failed(&self.dir))?;
        self.committed = true;
        Ok(())
    }

    fn remove_replaced(&self) -> Result<()> {
        let listing = WalListing::read(&*self.disk, &self.wal_dir)?;
        self.removal.remove_segments(&listing, self.last_segment)?;
        for found in listing.checkpoints.iter().filter(|found| found.number < self.last_segment) {
            self.removal.remove_checkpoint(&found.path)?;
        }
        self.disk.sync_dir(&self.wal_dir).map_err(Action::Sync.failed(&self.wal_dir))
    }
}

impl Drop for CheckpointWriter {
    fn drop(&mut self) {
        if self.committed {
            return;
        }
        if let Err(error) = remove_tree(&*self.disk, &self.dir) {
            let path = self.dir.display();
            tracing::warn!(
                %path, %error,
                "could not remove an unfinished checkpoint; the next start removes it"
            );
        }
    }
}
