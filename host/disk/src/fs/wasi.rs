//! File operations of WASI that the standard library's portable part lacks.
//!
//! A component has no access to locks or to the free space of a device, so it cannot keep another
//! process out of the directory. The program that runs the component locks the file `lock`, as
//! `host/standalone/README.md` describes.

use super::Lock;
use rustix::io::{Errno, pread, pwrite};
use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// WASI does not report the free space, so the device counts as unlimited.
pub fn free_bytes(_dir: &Path) -> io::Result<u64> {
    Ok(u64::MAX)
}

pub fn total_bytes(_dir: &Path) -> io::Result<u64> {
    Ok(u64::MAX)
}

/// Creates the lock file and keeps it open. That does not exclude other processes.
pub fn lock(path: &Path) -> io::Result<Option<Lock>> {
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create(true).truncate(false).open(path)?;
    Ok(Some(Arc::new(file)))
}

pub fn read_exact_at(file: &File, mut offset: u64, out: &mut [u8]) -> io::Result<()> {
    let mut rest = out;
    while !rest.is_empty() {
        // One call may read fewer bytes than requested.
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
        // One call may write fewer bytes than requested.
        let written = match pwrite(file, rest, offset) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Err(Errno::INTR) => continue,
            written => written?,
        };
        (rest, offset) = (rest.split_at(written).1, offset + written as u64);
    }
    Ok(())
}
