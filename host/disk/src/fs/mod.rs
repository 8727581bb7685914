//! The only access to the file system: the trait of a disk, and its implementation on real files.
//!
//! The rest of the crate accesses files through [`Disk`], so that a test can supply a disk that
//! fails at the Nth call, becomes full, or loses bytes that were not synced. Assumptions:
//!
//! - only `sync_data` makes a file's bytes and length survive a power cut;
//! - a name that was created, renamed or removed survives once its directory is synced;
//! - a rename within one directory is atomic; a write is not, and may be torn at any byte;
//! - an open file stays readable after its name is removed.

use std::ffi::OsString;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

#[cfg(unix)]
mod unix;
#[cfg(unix)]
use unix as platform;
#[cfg(target_os = "wasi")]
mod wasi;
#[cfg(target_os = "wasi")]
use wasi as platform;

/// Returns whether another process has locked a file exclusively. A missing file is not locked, nor
/// is any file on a platform without locks.
pub fn is_locked(path: &Path) -> io::Result<bool> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        opened => opened?,
    };
    // Shared, so that two processes that only check the lock do not exclude each other.
    match file.try_lock_shared() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// The operations of a file system that this crate needs.
pub trait Disk: Send + Sync {
    /// Creates the directory and its parents; succeeds if the directory exists.
    fn create_dir(&self, path: &Path) -> io::Result<()>;

    /// Creates an empty file for reading and writing. `AlreadyExists` if the name is taken.
    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>>;

    /// Opens an existing file for reading or, with `Access::Write`, for reading and writing.
    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn DiskFile>>;

    fn file_size(&self, path: &Path) -> io::Result<u64>;

    /// Lists the entries of a directory, in no particular order.
    fn list(&self, dir: &Path) -> io::Result<Vec<DiskEntry>>;

    /// Time of the last change to the names in a directory; `None` if the disk does not provide it.
    fn names_changed_at(&self, _dir: &Path) -> io::Result<Option<SystemTime>> {
        Ok(None)
    }

    /// Renames a file or directory, atomically.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Gives a file a second name by a hard link; the name must be free.
    fn link(&self, from: &Path, to: &Path) -> io::Result<()>;

    fn remove_file(&self, path: &Path) -> io::Result<()>;

    fn remove_dir(&self, path: &Path) -> io::Result<()>;

    /// Makes the names in a directory survive a power cut.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;

    /// Locks a file exclusively, and creates it if it is missing. Returns `None` if another process
    /// has locked the file.
    fn lock(&self, path: &Path) -> io::Result<Option<Lock>>;

    /// Free bytes of a directory's file system that are available to this process.
    fn free_bytes(&self, dir: &Path) -> io::Result<u64>;

    /// Size of a directory's file system in bytes; `u64::MAX` if the system does not report it.
    fn total_bytes(&self, _dir: &Path) -> io::Result<u64> {
        Ok(u64::MAX)
    }
}

/// One open file. Reads and writes have an offset, so threads can share a handle.
pub trait DiskFile: Send + Sync {
    fn size(&self) -> io::Result<u64>;

    /// Fills `out` from `offset`. `UnexpectedEof` if the file ends earlier.
    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()>;

    /// Writes all bytes at `offset`. After an error any part of the bytes may have been written.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Truncates the file, or extends it with zero bytes.
    fn set_len(&self, size_bytes: u64) -> io::Result<()>;

    /// Makes bytes and length survive a power cut (`fdatasync`).
    fn sync_data(&self) -> io::Result<()>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    Read,
    Write,
}

/// One name in a directory. Symbolic links are not followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskEntry {
    pub name: OsString,
    pub is_dir: bool,
    /// Length of a file in bytes; meaningless for a directory.
    pub size_bytes: u64,
}

/// An exclusive lock, released when the last clone is dropped.
pub type Lock = Arc<dyn Send + Sync>;

#[derive(Clone, Copy, Debug, Default)]
pub struct RealDisk;

impl DiskEntry {
    /// The name as text; `None` if it is not UTF-8. This crate uses no such names.
    pub fn name(&self) -> Option<&str> {
        self.name.to_str()
    }
}

/// Removes a directory with its content, deepest entries first. A missing directory is no error.
pub fn remove_tree(disk: &dyn Disk, dir: &Path) -> io::Result<()> {
    let entries = match disk.list(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        listed => listed?,
    };
    for entry in entries {
        let path = dir.join(&entry.name);
        match entry.is_dir {
            true => remove_tree(disk, &path)?,
            false => disk.remove_file(&path)?,
        }
    }
    disk.remove_dir(dir)
}

/// Total size of the files in a directory and below it. Files that vanish meanwhile count as zero.
pub fn tree_bytes(disk: &dyn Disk, dir: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in disk.list(dir)? {
        bytes += match entry.is_dir {
            false => entry.size_bytes,
            true => match tree_bytes(disk, &dir.join(&entry.name)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
                below => below?,
            },
        };
    }
    Ok(bytes)
}

impl Disk for RealDisk {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        std::fs::create_dir_all(path)
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
        Ok(Arc::new(file))
    }

    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn DiskFile>> {
        let write = access == Access::Write;
        Ok(Arc::new(OpenOptions::new().read(true).write(write).open(path)?))
    }

    fn file_size(&self, path: &Path) -> io::Result<u64> {
        Ok(std::fs::metadata(path)?.len())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<DiskEntry>> {
        let mut entries = Vec::new();
        for entry in std::fs::read_dir(dir)? {
            let entry = entry?;
            let meta = match entry.metadata() {
                // The file was removed between the two calls, for example with a block.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                meta => meta?,
            };
            let (is_dir, size_bytes) = (meta.is_dir(), meta.len());
            entries.push(DiskEntry { name: entry.file_name(), is_dir, size_bytes });
        }
        Ok(entries)
    }

    fn names_changed_at(&self, dir: &Path) -> io::Result<Option<SystemTime>> {
        std::fs::metadata(dir)?.modified().map(Some)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::hard_link(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_dir(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }

    fn free_bytes(&self, dir: &Path) -> io::Result<u64> {
        platform::free_bytes(dir)
    }

    fn total_bytes(&self, dir: &Path) -> io::Result<u64> {
        platform::total_bytes(dir)
    }

    fn lock(&self, path: &Path) -> io::Result<Option<Lock>> {
        platform::lock(path)
    }
}

impl DiskFile for File {
    fn size(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        platform::read_exact_at(self, offset, out)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        platform::write_all_at(self, offset, bytes)
    }

    fn set_len(&self, size_bytes: u64) -> io::Result<()> {
        File::set_len(self, size_bytes)
    }

    fn sync_data(&self) -> io::Result<()> {
        File::sync_data(self)
    }
}
