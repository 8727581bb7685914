//! What WASI has beyond the standard library's portable part, and what it lacks.
//!
//! A component sees neither locks nor the room on a device. So nothing keeps another process out of
//! the directory from here: the program that runs the component locks the file `lock`, as
//! `host/standalone/README.md` says.

use super::Lock;
use rustix::io::{Errno, pread, pwrite};
use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// WASI does not say: it has no end.
pub fn free_bytes(_dir: &Path) -> io::Result<u64> {
    Ok(u64::MAX)
}

pub fn total_bytes(_dir: &Path) -> io::Result<u64> {
    Ok(u64::MAX)
}

/// Makes the file and keeps it open; it excludes no other process.
pub fn lock(path: &Path) -> io::Result<Option<Lock>> {
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create(true).truncate(false).open(path)?;
    Ok(Some(Arc::new(file)))
}

pub fn read_exact_at(file: &File, mut offset: u64, out: &mut [u8]) -> io::Result<()> {
    let mut rest = out;
    while !rest.is_empty() {
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
        let written = match pwrite(file, rest, offset) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Err(Errno::INTR) => continue,
            written => written?,
        };
        (rest, offset) = (rest.split_at(written).1, offset + written as u64);
    }
    Ok(())
}
