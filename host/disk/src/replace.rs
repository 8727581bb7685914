//! Replaces a small file: writes a temporary file, syncs it, and renames it over the old one.

use super::error::{Action, DiskError, Result};
use super::fs::Disk;
use super::{DataDir, write_accounts::WrittenFor};
use std::io;
use std::path::Path;

/// Suffix of a file that will replace another file. Upstream uses the same suffix.
pub(super) const REPLACEMENT_SUFFIX: &str = ".tmp";

impl DataDir {
    /// Replaces a file of the data directory, durably and atomically for readers that open it.
    pub fn replace_file(&self, name: &str, bytes: &[u8]) -> Result<()> {
        replace_file(&*self.disk_for(WrittenFor::Other), self.path(), name, bytes)
    }
}

/// Replaces a file of a directory, durably and atomically for readers that open it.
pub fn replace_file(disk: &dyn Disk, dir: &Path, name: &str, bytes: &[u8]) -> Result<()> {
    let path = dir.join(name);
    let temporary = dir.join(format!("{name}{REPLACEMENT_SUFFIX}"));
    let written = write_file(disk, &temporary, bytes)
        .and_then(|()| disk.rename(&temporary, &path).map_err(Action::Rename.failed(&temporary)));
    if let Err(error) = written {
        // If this fails, the next attempt or the next start removes the file.
        let _ = disk.remove_file(&temporary);
        return Err(error);
    }
    // A rename is durable only after a sync of its directory.
    disk.sync_dir(dir).map_err(Action::Sync.failed(dir))
}

fn write_file(disk: &dyn Disk, path: &Path, bytes: &[u8]) -> Result<()> {
    let created = match disk.create(path) {
        // A crash left the temporary file of an earlier attempt.
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
    // Before the rename, because a power cut could leave the name of a file without its bytes.
    file.sync_data().map_err(Action::Sync.failed(path))
}
