//! Copies of files where the file system has no hard links.

use crate::error::{Action, DiskError, Result};
use crate::fs::{Access, Disk};
use std::io;
use std::path::Path;

/// Size of a copy's buffer in bytes.
pub(crate) const COPY_BYTES: usize = 1024 * 1024;

/// Returns whether a failed link means that the file system has no hard links, allows no further
/// link to the file, or forbids a link because this process may not write the file.
pub(crate) fn cannot_link(error: &io::Error) -> bool {
    use io::ErrorKind::{CrossesDevices, PermissionDenied, TooManyLinks, Unsupported};
    matches!(error.kind(), CrossesDevices | PermissionDenied | TooManyLinks | Unsupported)
}

/// Copies a file and syncs the copy, replacing an existing target. Errors may leave a partial copy.
pub(crate) fn copy_file(disk: &dyn Disk, from: &Path, to: &Path) -> Result<()> {
    let source = disk.open(from, Access::Read).map_err(Action::Open.failed(from))?;
    let size_bytes = source.size().map_err(Action::Open.failed(from))?;
    match disk.remove_file(to) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(DiskError::Io { action: Action::Remove, path: to.into(), source: error });
        }
        _ => {}
    }
    let target = disk.create(to).map_err(Action::Create.failed(to))?;
    let mut buffer = vec![0; COPY_BYTES];
    let mut at = 0;
    // Only up to the size at the start, so that a growing source cannot prolong the copy.
    while at < size_bytes {
        let part = &mut buffer[..(size_bytes - at).min(COPY_BYTES as u64) as usize];
        source.read_at(at, part).map_err(Action::Read.failed(from))?;
        target.write_at(at, part).map_err(Action::Write.failed(to))?;
        at += part.len() as u64;
    }
    target.sync_data().map_err(Action::Sync.failed(to))
}
