//! File operations of Unix that the standard library's portable part lacks.

use super::Lock;
use rustix::fs::{FlockOperation, flock, statvfs};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time for which a busy lock is retried: a process that only checks the lock has it briefly.
const LOCK_TIMEOUT: Duration = Duration::from_millis(100);
const LOCK_PAUSE: Duration = Duration::from_millis(5);

pub fn free_bytes(dir: &Path) -> io::Result<u64> {
    let stat = statvfs(dir)?;
    // `f_bavail`, not `f_bfree`: only root may use the reserve of the file system.
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}

pub fn total_bytes(dir: &Path) -> io::Result<u64> {
    let stat = statvfs(dir)?;
    Ok(stat.f_blocks.saturating_mul(stat.f_frsize))
}

pub fn lock(path: &Path) -> io::Result<Option<Lock>> {
    let begun = Instant::now();
    loop {
        let mut options = OpenOptions::new();
        let opened = options.read(true).write(true).create(true).truncate(false).open(path);
        let file = match opened {
            // A file that may not be written can still be locked through a read-only handle.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                File::open(path).map_err(|_| error)?
            }
            opened => opened?,
        };
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) if begun.elapsed() < LOCK_TIMEOUT => {
                std::thread::sleep(LOCK_PAUSE);
                continue;
            }
            Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
            Err(errno) => return Err(errno.into()),
        }
        // Upstream removes its lock file when it ends. If that happens between the two calls, the
        // lock is on a file without a name, and excludes no process.
        let locked = file.metadata()?;
        let named = std::fs::metadata(path);
        if named.is_ok_and(|named| (named.dev(), named.ino()) == (locked.dev(), locked.ino())) {
            return Ok(Some(Arc::new(file)));
        }
    }
}

pub fn read_exact_at(file: &File, offset: u64, out: &mut [u8]) -> io::Result<()> {
    file.read_exact_at(out, offset)
}

pub fn write_all_at(file: &File, offset: u64, bytes: &[u8]) -> io::Result<()> {
    file.write_all_at(bytes, offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A command tested the lock of a directory, and a node that started at that moment was
    /// refused.
    #[test]
    fn a_look_at_a_lock_keeps_no_one_out() -> io::Result<()> {
        let directory = tempfile::tempdir()?;
        let path = directory.path().join("lock");
        let looks = File::create(&path)?;
        looks.lock_shared()?;
        let looking = std::thread::spawn(move || {
            std::thread::sleep(2 * LOCK_PAUSE);
            drop(looks);
        });
        let taken = lock(&path)?;
        assert!(taken.is_some());
        assert!(lock(&path)?.is_none(), "it is taken");
        assert!(looking.join().is_ok());
        Ok(())
    }
}
