//! The journal of all changes below a directory, as `tests/shim/disk_faults.c` writes it.

use std::io;
use std::path::{Path, PathBuf};

/// A change in the order in which all changes were done.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Position of the entry in the journal.
    pub offset: u64,
    pub change: Change,
    /// Path of the file or directory at that time.
    pub path: PathBuf,
    /// Inode number of the file.
    pub inode: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Bytes were written to a file.
    Write {
        /// Offset of the bytes in the file.
        offset: u64,
        data: Vec<u8>,
    },
    /// The length was set to this number of bytes.
    Truncate(u64),
    /// A sync of the file ended.
    SyncFile {
        /// Whether it failed: pending changes are then on the device in part, and no later sync
        /// writes the rest.
        failed: bool,
    },
    /// A sync of the directory ended.
    SyncDirectory {
        /// Whether the sync returned an error.
        failed: bool,
    },
    /// An empty file was made.
    Create,
    MakeDirectory,
    /// The file or directory was renamed to this path, replacing what had it.
    Rename(PathBuf),
    /// The file got this path as an additional name.
    Link(PathBuf),
    /// The name of a file or of an empty directory was removed.
    Remove,
}

/// Reads all entries of a journal.
pub fn read(path: &Path) -> io::Result<Vec<Entry>> {
    let bytes = std::fs::read(path)?;
    let mut rest = bytes.as_slice();
    let mut entries = Vec::new();
    while !rest.is_empty() {
        let offset = (bytes.len() - rest.len()) as u64;
        let length = u32::from_le_bytes(take(&mut rest)?) as usize;
        let (mut body, behind) = rest.split_at_checked(length).ok_or_else(truncated)?;
        rest = behind;
        entries.push(entry(offset, &mut body)?);
    }
    Ok(entries)
}

fn entry(offset: u64, body: &mut &[u8]) -> io::Result<Entry> {
    let [operation] = take(body)?;
    let inode = u64::from_le_bytes(take(body)?);
    let number = u64::from_le_bytes(take(body)?);
    let path_bytes = u16::from_le_bytes(take(body)?).into();
    let other_bytes = u16::from_le_bytes(take(body)?).into();
    let path = text(body, path_bytes)?;
    let other = text(body, other_bytes)?;
    let change = match operation {
        b'w' => Change::Write { offset: number, data: body.to_vec() },
        b't' => Change::Truncate(number),
        b'S' => Change::SyncFile { failed: number != 0 },
        b'D' => Change::SyncDirectory { failed: number != 0 },
        b'c' => Change::Create,
        b'm' => Change::MakeDirectory,
        b'r' => Change::Rename(other),
        b'l' => Change::Link(other),
        b'u' | b'd' => Change::Remove,
        _ => return Err(io::Error::other(format!("operation {operation}"))),
    };
    // Programs sometimes open directories with a slash at the end of the path.
    let path = path.components().collect();
    Ok(Entry { offset, change, path, inode })
}

fn take<const N: usize>(bytes: &mut &[u8]) -> io::Result<[u8; N]> {
    let (first, rest) = bytes.split_first_chunk().ok_or_else(truncated)?;
    *bytes = rest;
    Ok(*first)
}

fn text(bytes: &mut &[u8], length: usize) -> io::Result<PathBuf> {
    let (text, rest) = bytes.split_at_checked(length).ok_or_else(truncated)?;
    *bytes = rest;
    String::from_utf8(text.to_vec()).map(PathBuf::from).map_err(io::Error::other)
}

fn truncated() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the journal ends inside an entry")
}
