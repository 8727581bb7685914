//! The only access to the file system: the trait of a disk, and the real one.
//!
//! Everything else here reaches files through [`Disk`], so that a test can put a disk in its place
//! that fails at the Nth call, runs full, or loses what was not synced. Assumed of a disk:
//!
//! - `sync_data` makes a file's bytes and length survive a power cut, nothing else does;
//! - a name created, renamed or removed survives once its directory was synced;
//! - a rename within one directory is atomic; a write is not, it may be torn at any byte;
//! - an open file stays readable after its name was removed.

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

/// Whether another process holds the exclusive lock on a file. A file that is missing is not
/// locked, nor is any where there are no locks.
pub fn is_locked(path: &Path) -> io::Result<bool> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        opened => opened?,
    };
    match file.try_lock_shared() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// A file system, as far as this room needs one.
pub trait Disk: Send + Sync {
    /// Creates the directory and its parents; one that exists is fine.
    fn create_dir(&self, path: &Path) -> io::Result<()>;

    /// Creates an empty file for reading and writing. `AlreadyExists` if the name is taken.
    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>>;

    /// Opens a file that exists, for reading and, if asked, writing.
    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn DiskFile>>;

    /// Length of a file in bytes.
    fn file_size(&self, path: &Path) -> io::Result<u64>;

    /// The entries of a directory, in no particular order.
    fn list(&self, dir: &Path) -> io::Result<Vec<DiskEntry>>;

    /// When names in a directory came or went last; nothing, if the disk does not say.
    fn names_changed_at(&self, _dir: &Path) -> io::Result<Option<SystemTime>> {
        Ok(None)
    }

    /// Gives a file or directory a new name, atomically.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Gives a file a second name, which must be free.
    fn link(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file's name.
    fn remove_file(&self, path: &Path) -> io::Result<()>;

    /// Removes an empty directory.
    fn remove_dir(&self, path: &Path) -> io::Result<()>;

    /// Makes the names in a directory survive a power cut.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;

    /// Takes an exclusive lock on a file, which is created if it is missing. `None` if another
    /// process holds it.
    fn lock(&self, path: &Path) -> io::Result<Option<Lock>>;

    /// Bytes that the file system of a directory still has for this process.
    fn free_bytes(&self, dir: &Path) -> io::Result<u64>;

    /// Bytes of the whole file system of a directory; one that does not say has no end.
    fn total_bytes(&self, _dir: &Path) -> io::Result<u64> {
        Ok(u64::MAX)
    }
}

/// One open file. Reads and writes name their offset, so a handle can be shared freely.
pub trait DiskFile: Send + Sync {
    /// Length in bytes.
    fn size(&self) -> io::Result<u64>;

    /// Fills `out` from `offset`. `UnexpectedEof` if the file ends before.
    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()>;

    /// Writes all bytes at `offset`. After an error any part of them may have been written.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Cuts the file, or extends it with zero bytes.
    fn set_len(&self, size_bytes: u64) -> io::Result<()>;

    /// Makes bytes and length survive a power cut (`fdatasync`).
    fn sync_data(&self) -> io::Result<()>;
}

/// How an opened file is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reading only.
    Read,
    /// Reading and writing.
    Write,
}

/// One name in a directory. Symbolic links are not followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskEntry {
    /// The name, without the directory.
    pub name: OsString,
    /// Whether it is a directory.
    pub is_dir: bool,
    /// Length of a file in bytes; meaningless for a directory.
    pub size_bytes: u64,
}

/// A lock, held until the last clone of this is dropped.
pub type Lock = Arc<dyn Send + Sync>;

/// The machine's own file system.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealDisk;

impl DiskEntry {
    /// The name as text; other names are not used here.
    pub fn name(&self) -> Option<&str> {
        self.name.to_str()
    }
}

/// Removes a directory with everything in it, deepest first. Nothing to remove is fine.
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

/// Bytes of all files in a directory and below it. What vanishes meanwhile counts as nothing.
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
                // Removed between the two calls: a block's deletion beside a walk for its size.
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
