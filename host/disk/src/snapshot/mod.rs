//! Snapshots for backups: directories with the blocks as of one point in time.
//!
//! ```text
//! snapshots/<name>.tmp/<ULID>/… ── commit: sync directories, rename ──▶ snapshots/<name>/
//! ```
//!
//! The files of blocks are hard links. A block's files are replaced, never rewritten, so the
//! snapshot keeps its content while the block changes, and needs no space until the block is
//! dropped. Without hard links the files are copied, as those of alerts always are, so that a node
//! that is restored knows what receivers were told of. The next start removes unfinished snapshots
//! by their suffix.

use super::blocks::BlockDirs;
use super::copy::{cannot_link, copy_file};
use super::error::{Action, DiskError, Result};
use super::fs::{Disk, Lock, remove_tree};
use super::{ALERTS_DIR, DataDir, SNAPSHOTS_DIR};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const UNFINISHED_SUFFIX: &str = ".tmp";

/// A snapshot being made. Dropping it without [`commit`](SnapshotWriter::commit) removes it.
pub struct SnapshotWriter {
    disk: Arc<dyn Disk>,
    data: DataDir,
    name: String,
    dir: PathBuf,
    committed: bool,
    /// Free bytes of the device that copies must leave.
    reserve_bytes: u64,
    _lock: Lock,
}

impl SnapshotWriter {
    /// Begins a snapshot. The name must be new and valid as a file name. If files have to be
    /// copied, the copies leave `reserve_bytes` of the device free.
    pub fn begin(data: &DataDir, name: &str, reserve_bytes: u64) -> Result<SnapshotWriter> {
        let disk = data.disk();
        let snapshots = data.path().join(SNAPSHOTS_DIR);
        let dir = snapshots.join(format!("{name}{UNFINISHED_SUFFIX}"));
        disk.create_dir(&dir).map_err(Action::Create.failed(&dir))?;
        let writer = SnapshotWriter {
            disk,
            data: data.clone(),
            name: name.to_owned(),
            dir,
            committed: false,
            reserve_bytes,
            _lock: data.lock(),
        };
        // The directory `snapshots` itself may be new, too.
        writer.sync(data.path())?;
        Ok(writer)
    }

    /// Adds a committed block as it is now.
    pub fn add_block(&self, block: &str) -> Result<()> {
        let (from, to) = (self.data.path().join(block), self.dir.join(block));
        for dir in ["", "chunks"] {
            self.link_files(&from.join(dir), &to.join(dir))?;
        }
        self.sync(&to)
    }

    /// The snapshot's directory, to which further blocks can be added.
    pub fn blocks(&self) -> BlockDirs {
        BlockDirs::in_dir(&self.data, self.dir.clone())
    }

    /// Makes the snapshot durable and, atomically, visible; returns its directory.
    pub fn commit(mut self) -> Result<PathBuf> {
        self.copy_folder(&self.data.path().join(ALERTS_DIR), &self.dir.join(ALERTS_DIR))?;
        self.sync(&self.dir)?;
        let snapshots = self.data.path().join(SNAPSHOTS_DIR);
        let target = snapshots.join(&self.name);
        self.disk.rename(&self.dir, &target).map_err(Action::Rename.failed(&self.dir))?;
        self.committed = true;
        // Set before the sync: the snapshot is visible, so an error here must not remove it.
        self.sync(&snapshots)?;
        Ok(target)
    }

    fn link_files(&self, from: &Path, to: &Path) -> Result<()> {
        self.disk.create_dir(to).map_err(Action::Create.failed(to))?;
        for entry in self.disk.list(from).map_err(Action::List.failed(from))? {
            // The block's tombstones may be in replacement now, which uses a temporary file.
            let is_unfinished = entry.name().is_none_or(is_unfinished);
            if !entry.is_dir && !is_unfinished {
                let (path, link) = (from.join(&entry.name), to.join(&entry.name));
                match self.disk.link(&path, &link) {
                    Err(error) if cannot_link(&error) => {
                        self.copy(&path, &link, entry.size_bytes)?
                    }
                    linked => linked.map_err(Action::Link.failed(&link))?,
                }
            }
        }
        self.sync(to)
    }

    /// Copies a folder whose files are written on, and which may be absent.
    fn copy_folder(&self, from: &Path, to: &Path) -> Result<()> {
        let entries = match self.disk.list(from) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            listed => listed.map_err(Action::List.failed(from))?,
        };
        self.disk.create_dir(to).map_err(Action::Create.failed(to))?;
        for entry in entries {
            let (path, copy) = (from.join(&entry.name), to.join(&entry.name));
            if entry.is_dir {
                self.copy_folder(&path, &copy)?;
            } else if !entry.name().is_none_or(is_unfinished) {
                match self.copy(&path, &copy, entry.size_bytes) {
                    // Removed or replaced meanwhile.
                    Err(DiskError::Io { source, .. })
                        if source.kind() == io::ErrorKind::NotFound => {}
                    copied => copied?,
                }
            }
        }
        self.sync(to)
    }

    fn copy(&self, from: &Path, to: &Path, size_bytes: u64) -> Result<()> {
        // Checked for each file, since other writers may fill the device meanwhile.
        let free_bytes = self.disk.free_bytes(&self.dir).map_err(Action::Open.failed(&self.dir))?;
        if free_bytes < size_bytes.saturating_add(self.reserve_bytes) {
            let full = format!(
                "a copy needs {size_bytes} bytes, since the file system has no hard links, of \
                 {free_bytes} that are free, and {} must stay",
                self.reserve_bytes
            );
            let full = io::Error::new(io::ErrorKind::StorageFull, full);
            return Err(Action::Create.failed(to)(full));
        }
        copy_file(&*self.disk, from, to)
    }

    fn sync(&self, dir: &Path) -> Result<()> {
        self.disk.sync_dir(dir).map_err(Action::Sync.failed(dir))
    }
}

impl Drop for SnapshotWriter {
    fn drop(&mut self) {
        if !self.committed
            && let Err(error) = remove_tree(&*self.disk, &self.dir)
        {
            let path = self.dir.display();
            tracing::warn!(
                %path, %error,
                "could not remove an unfinished snapshot; the next start removes it"
            );
        }
    }
}

pub(super) fn is_unfinished(name: &str) -> bool {
    name.ends_with(UNFINISHED_SUFFIX)
}

#[cfg(test)]
mod tests;
