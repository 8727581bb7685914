//! File operations of WASI that the standard library's portable part lacks.
//!
//! A component sees neither locks nor the free space of a device, so this platform cannot keep
//! another process out of the directory: the program that runs the component locks the file `lock`,
//! as `host/standalone/README.md` says.

use super::Lock;
use rustix::io::{Errno, pread, pwrite};
use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// WASI does not tell the free space, so the device counts as unlimited.
pub fn free_bytes(_dir: &Path) -> io::Result<u64> {
    Ok(u64::MAX)
}

pub fn total_bytes(_dir: &Path) -> io::Result<u64> {
    Ok(u64::MAX)
}

/// Creates the lock file and keeps it open. Excludes no other process.
pub fn lock(path: &Path) -> io::Result<Option<Lock>> {
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create(true).truncate(false).open(path)?;
    Ok(Some(Arc::new(file)))
}

pub fn read_exact_at(file: &File, mut offset: u64, out: &mut [u8]) -> io::Result<()> {
    let mut rest = out;
    while !rest.is_empty() {
        // One call may read less than it was asked for.
        let read = match pread(file, &mut *rest, offset) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Err(Errno::INTR) => continue,
            read => read?,
        };
        (rest, offset) = (rest.split_at_mut(read).1, offset + read as u64);
    }
    Ok(())
}

pub fn write_all_at(file: &File, mut offset: u64, bytes: &[u8]) -> io::Result<()> {
    let mut rest = bytes;
    while !rest.is_empty() {
        // One call may write less than it was given.
        let written = match pwrite(file, rest, offset) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Err(Errno::INTR) => continue,
            written => written?,
        };
        (rest, offset) = (rest.split_at(written).1, offset + written as u64);
    }
    Ok(())
}
