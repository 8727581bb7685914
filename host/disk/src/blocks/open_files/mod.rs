//! Block files that are being read, and their descriptors.
//!
//! ```text
//! BlockFile ──▶ OpenFile (name, descriptor while it is read) ──▶ PinnedBlock (directory)
//! ```
//!
//! A file gets a descriptor at its first read, shared by all readers. Above a limit, the least
//! recently read files are closed, and their next read reopens them. To make this possible for a
//! deleted block, its directory is only renamed, and removed once no one reads the block any more.
//!
//! Only files that never change are read in this way: `index` and the files of chunks.

use crate::error::is_shortage;
use crate::fs::{Access, Disk, DiskFile, Lock, remove_tree};
use crate::write_accounts::CountingDisk;
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};

/// Default limit of open files: half of 1,024, a common limit per process.
const FILES_MAX_DEFAULT: usize = 512;

/// Divisor for the number of files that are closed at a time: several, so that searches are rare.
const CLOSED_PART: usize = 8;

/// Minimum number of entries for a sweep of blocks that no one reads. A sweep also requires twice
/// as many entries as after the last sweep.
const SWEEP_MIN: usize = 64;

/// The open files of a data directory. Cheap to clone; clones share the descriptors.
#[derive(Clone, Default)]
pub struct OpenFiles(Arc<Shared>);

/// Figures of the open files of blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenFileFigures {
    pub open: usize,
    pub open_max: usize,
    /// Number of files closed to make room for other files, since the start.
    pub closed: u64,
}

struct Shared {
    open_max: AtomicUsize,
    open: AtomicUsize,
    closed: AtomicU64,
    /// Number of reads so far, which serves as the clock of least-recently-used order.
    reads: AtomicU64,
    blocks: Mutex<Blocks>,
    /// Files that have got a descriptor; some of the files may be dropped by now.
    opened: Mutex<Vec<Weak<OpenFile>>>,
}

#[derive(Default)]
struct Blocks {
    by_dir: HashMap<PathBuf, Weak<PinnedBlock>>,
    /// Number of entries after the last sweep.
    swept: usize,
}

/// A block that is being read or deleted.
pub(super) struct PinnedBlock {
    disk: Arc<dyn Disk>,
    /// The present directory. Locked for reading while a path in the directory is used.
    dir: RwLock<PathBuf>,
    files: Mutex<Vec<Weak<OpenFile>>>,
    /// The data directory's lock, if the block was deleted. It keeps other processes out until the
    /// files are removed.
    deleted: Mutex<Option<Lock>>,
}

pub(super) struct OpenFile {
    shared: Arc<Shared>,
    block: Arc<PinnedBlock>,
    name: String,
    size_bytes: u64,
    descriptor: Mutex<Option<Arc<Descriptor>>>,
    /// Value of `Shared::reads` at the last read of this file.
    read: AtomicU64,
}

struct Descriptor {
    file: Arc<dyn DiskFile>,
    _place: OpenFileSlot,
}

/// Counts as one open file until dropped.
struct OpenFileSlot(Arc<Shared>);

impl Default for Shared {
    fn default() -> Shared {
        Shared {
            open_max: AtomicUsize::new(FILES_MAX_DEFAULT),
            open: AtomicUsize::new(0),
            closed: AtomicU64::new(0),
            reads: AtomicU64::new(0),
            blocks: Mutex::default(),
            opened: Mutex::default(),
        }
    }
}

impl OpenFiles {
    /// Sets the limit of open files, at least 1. The limit is exceeded only while every open file
    /// is being read.
    pub fn set_open_max(&self, open_max: usize) {
        self.0.open_max.store(open_max.max(1), Relaxed);
    }

    pub fn figures(&self) -> OpenFileFigures {
        let Shared { open, open_max, closed, .. } = &*self.0;
        let (open, open_max) = (open.load(Relaxed), open_max.load(Relaxed));
        OpenFileFigures { open, open_max, closed: closed.load(Relaxed) }
    }

    /// Returns a file of the block in a directory. Keeping the value keeps the file readable.
    pub(super) fn file(
        &self,
        disk: &CountingDisk,
        dir: &Path,
        name: &str,
    ) -> io::Result<Arc<OpenFile>> {
        let block = self.block(disk, dir);
        let size_bytes = block.at(name, |path| block.disk.file_size(path))?;
        // If the size differs, the path does not name the file of the known readers any more.
        let mut files = lock(&block.files);
        let known: Vec<Arc<OpenFile>> = files.iter().filter_map(Weak::upgrade).collect();
        // Same name and size: a file of another size has replaced the file that is being read.
        let is_same = |file: &&Arc<OpenFile>| file.name == name && file.size_bytes == size_bytes;
        if let Some(file) = known.iter().find(is_same) {
            return Ok(Arc::clone(file));
        }
        let file = Arc::new(OpenFile {
            shared: Arc::clone(&self.0),
            block: Arc::clone(&block),
            name: name.to_owned(),
            size_bytes,
            descriptor: Mutex::default(),
            read: AtomicU64::new(0),
        });
        files.retain(|file| file.strong_count() > 0);
        files.push(Arc::downgrade(&file));
        Ok(file)
    }

    /// Returns the state that all readers of the block in a directory share.
    fn block(&self, disk: &CountingDisk, dir: &Path) -> Arc<PinnedBlock> {
        let mut blocks = lock(&self.0.blocks);
        if let Some(block) = blocks.by_dir.get(dir).and_then(Weak::upgrade) {
            return block;
        }
        let block = Arc::new(PinnedBlock {
            disk: Arc::new(disk.clone()),
            dir: RwLock::new(dir.to_owned()),
            files: Mutex::default(),
            deleted: Mutex::default(),
        });
        blocks.by_dir.insert(dir.to_owned(), Arc::downgrade(&block));
        if blocks.by_dir.len() > SWEEP_MIN.max(2 * blocks.swept) {
            blocks.by_dir.retain(|_, block| block.strong_count() > 0);
            blocks.swept = blocks.by_dir.len();
        }
        block
    }

    /// Renames the directory of a block that is being deleted; its readers use the new name.
    pub(super) fn rename(
        &self,
        disk: &CountingDisk,
        from: &Path,
        to: &Path,
        rename: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<Arc<PinnedBlock>> {
        let block = self.block(disk, from);
        // Waits until no reader is opening a file by its old path.
        let mut dir = block.dir.write().unwrap_or_else(PoisonError::into_inner);
        rename()?;
        to.clone_into(&mut dir);
        drop(dir);
        lock(&self.0.blocks).by_dir.remove(from);
        Ok(block)
    }

    /// Runs `work`, which needs a descriptor. While the system has none left, closes files and
    /// retries.
    pub(super) fn with_descriptor<T>(&self, work: impl FnMut() -> io::Result<T>) -> io::Result<T> {
        self.0.with_descriptor(work)
    }
}

impl Shared {
    fn with_descriptor<T>(&self, mut work: impl FnMut() -> io::Result<T>) -> io::Result<T> {
        loop {
            match work() {
                Err(error) if is_shortage(&error) => {
                    let some = self.open.load(Relaxed).div_ceil(CLOSED_PART);
                    if self.close(some) == 0 {
                        return Err(error);
                    }
                }
                done => return done,
            }
        }
    }

    /// Counts a further open file, and closes other files if the limit is exceeded.
    fn place(self: &Arc<Shared>) -> OpenFileSlot {
        let open = self.open.fetch_add(1, Relaxed) + 1;
        let place = OpenFileSlot(Arc::clone(self));
        let open_max = self.open_max.load(Relaxed);
        if open > open_max {
            self.close(open - open_max + open_max / CLOSED_PART);
        }
        place
    }

    /// Closes up to `count` files that are not being read, the least recently read ones first.
    /// Returns the number of closed files.
    fn close(&self, count: usize) -> usize {
        let mut opened = lock(&self.opened);
        let mut files: Vec<Arc<OpenFile>> = opened.iter().filter_map(Weak::upgrade).collect();
        // Cached, because concurrent reads change the keys during the sort.
        files.sort_by_cached_key(|file| file.read.load(Relaxed));
        let mut left = count;
        let closed: Vec<Arc<OpenFile>> = files
            .extract_if(.., |file| {
                let is_closed = left > 0 && file.close();
                left -= usize::from(is_closed);
                is_closed
            })
            .collect();
        *opened = files.iter().map(Arc::downgrade).collect();
        // Unlocked before the files are dropped: a file may be the last reader of a deleted block,
        // whose directory is then removed.
        drop(opened);
        self.closed.fetch_add(closed.len() as u64, Relaxed);
        closed.len()
    }

    /// Adds a file that has just got its descriptor.
    fn note_opened(&self, file: &Arc<OpenFile>) {
        let mut opened = lock(&self.opened);
        opened.push(Arc::downgrade(file));
        if opened.len() > SWEEP_MIN.max(2 * self.open.load(Relaxed)) {
            opened.retain(|file| file.strong_count() > 0);
        }
    }
}

impl Drop for OpenFileSlot {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Relaxed);
    }
}

impl OpenFile {
    pub(super) fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    pub(super) fn read_at(self: &Arc<OpenFile>, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.descriptor()?.file.read_at(offset, out)
    }

    fn descriptor(self: &Arc<OpenFile>) -> io::Result<Arc<Descriptor>> {
        self.read.store(self.shared.reads.fetch_add(1, Relaxed), Relaxed);
        let mut descriptor = lock(&self.descriptor);
        if let Some(descriptor) = &*descriptor {
            return Ok(Arc::clone(descriptor));
        }
        let place = self.shared.place();
        let block = &self.block;
        let open = |path: &Path| block.disk.open(path, Access::Read);
        let file = self.shared.with_descriptor(|| block.at(&self.name, open))?;
        let opened = Arc::new(Descriptor { file, _place: place });
        *descriptor = Some(Arc::clone(&opened));
        self.shared.note_opened(self);
        Ok(opened)
    }

    /// Closes the file, unless it is being opened or read. Returns whether it was closed.
    fn close(&self) -> bool {
        // Not `lock`: a reader that has this lock may wait for the list of open files, which the
        // caller has locked.
        let Ok(mut descriptor) = self.descriptor.try_lock() else { return false };
        let is_idle = descriptor.as_ref().is_some_and(|open| Arc::strong_count(open) == 1);
        if is_idle {
            *descriptor = None;
        }
        is_idle
    }
}

impl PinnedBlock {
    /// Runs `work` on the path of a file. The block is not renamed during the call.
    fn at<T>(&self, name: &str, work: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
        let dir = self.dir.read().unwrap_or_else(PoisonError::into_inner);
        work(&dir.join(name))
    }

    /// Marks a deleted block, so that its files are removed once no one reads them. Until then the
    /// block keeps `data`, the lock of the data directory.
    pub(super) fn remove_unread(self: Arc<PinnedBlock>, data: Lock) {
        *lock(&self.deleted) = Some(data);
    }
}

impl Drop for PinnedBlock {
    fn drop(&mut self) {
        let dir = self.dir.get_mut().unwrap_or_else(PoisonError::into_inner);
        if lock(&self.deleted).is_none() {
            return;
        }
        if let Err(error) = remove_tree(&*self.disk, dir) {
            // The block is invisible already; only its space remains in use until the next start.
            let path = dir.display();
            tracing::warn!(
                %path, %error,
                "could not remove the files of a deleted block; the next start removes them"
            );
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
