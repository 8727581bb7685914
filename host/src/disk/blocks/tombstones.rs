//! The files of a committed block that change: what was deleted, and how much that is.
//!
//! ```text
//! tombstones.tmp ─ write, sync ─ rename, sync directory ─▶ tombstones
//! meta.json.tmp  ─ write, sync ─ rename, sync directory ─▶ meta.json
//! ```
//!
//! The first says what reads leave out, the second only counts it; so a crash between the two
//! leaves a count that lags behind, and no reader that is wrong. What bears the temporary names at
//! start is swept.

use super::{BlockDirs, META_FILE};
use crate::disk::error::{Action, DiskError, Result};
use crate::disk::fs::Disk;
use std::io;
use std::path::Path;

/// Ends the name of a file of a block that is being replaced. Upstream's are the same.
const REPLACEMENT_SUFFIX: &str = ".tmp";

impl BlockDirs {
    /// Replaces the `tombstones` of a block, then its `meta.json`: each durably and in one step,
    /// for whoever opens it. Open handles and hard links keep the old content.
    pub fn replace_tombstones(&self, block: &str, tombstones: &[u8], meta: &[u8]) -> Result<()> {
        self.check_writable()?;
        let dir = self.block_path(block)?;
        self.replace_file(&dir, "tombstones", tombstones)?;
        self.replace_file(&dir, META_FILE, meta)
    }

    fn replace_file(&self, dir: &Path, name: &str, bytes: &[u8]) -> Result<()> {
        let (disk, path) = (&self.disk, dir.join(name));
        let temporary = dir.join(format!("{name}{REPLACEMENT_SUFFIX}"));
        let written = write_file(disk, &temporary, bytes).and_then(|()| {
            disk.rename(&temporary, &path).map_err(Action::Rename.failed(&temporary))
        });
        if let Err(error) = written {
            // If it stays, the next attempt or start removes it.
            let _ = disk.remove_file(&temporary);
            return Err(error);
        }
        disk.sync_dir(dir).map_err(Action::Sync.failed(dir))
    }

    /// Removes what a crash left of files that were being replaced.
    pub(in crate::disk) fn sweep_replacements(&self) -> Result<()> {
        for block in self.list()? {
            let dir = self.dir.join(block);
            for entry in self.disk.list(&dir).map_err(Action::List.failed(&dir))? {
                if !entry.is_dir && entry.name().is_some_and(|n| n.ends_with(REPLACEMENT_SUFFIX)) {
                    let path = dir.join(&entry.name);
                    self.disk.remove_file(&path).map_err(Action::Remove.failed(&path))?;
                    tracing::info!(path = %path.display(), "removed an unfinished deletion");
                }
            }
        }
        Ok(())
    }
}

fn write_file(disk: &dyn Disk, path: &Path, bytes: &[u8]) -> Result<()> {
    let created = match disk.create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            disk.remove_file(path).map_err(Action::Remove.failed(path))?;
            disk.create(path)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(DiskError::NotFound { path: path.to_owned() });
        }
        created => created,
    };
    let file = created.map_err(Action::Create.failed(path))?;
    file.write_at(0, bytes).map_err(Action::Write.failed(path))?;
    file.sync_data().map_err(Action::Sync.failed(path))
}
