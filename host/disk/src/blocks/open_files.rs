//! Files of blocks that somebody reads, and which of them have a descriptor.
//!
//! ```text
//! BlockFile ──▶ OpenFile (name, descriptor while it is read) ──▶ PinnedBlock (directory)
//! ```
//!
//! A file has a descriptor from its first read on, one however many read it. Beyond a maximum those
//! that were not read for the longest time are closed, and opened again by their next read. So that
//! this works for a block that is deleted meanwhile, its directory stays under the name of one that
//! is being deleted until nobody reads the block any more.
//!
//! Only files that never change are read like this: `index` and the files of chunks.

use crate::error::is_shortage;
use crate::fs::{Access, Disk, DiskFile, Lock, remove_tree};
use crate::wear::CountingDisk;
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};

/// Files that may be open by default: half of a usual limit of 1,024.
const FILES_MAX_DEFAULT: usize = 512;

/// This part of the maximum is closed at a time, so that to look for them costs little.
const CLOSED_PART: usize = 8;

/// Blocks that nobody reads are swept when there are twice as many as were left by the last sweep,
/// and this many.
const SWEEP_MIN: usize = 64;

/// The open files of a data directory. Cheap to clone; clones share them.
#[derive(Clone, Default)]
pub struct OpenFiles(Arc<Shared>);

/// How many files of blocks are open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenFileFigures {
    /// Now.
    pub open: usize,
    /// At most.
    pub open_max: usize,
    /// How often a file was closed to make room for others, since the start.
    pub closed: u64,
}

struct Shared {
    open_max: AtomicUsize,
    open: AtomicUsize,
    closed: AtomicU64,
    /// Counts reads.
    reads: AtomicU64,
    blocks: Mutex<Blocks>,
    /// Those that have a descriptor; more may be dropped since.
    opened: Mutex<Vec<Weak<OpenFile>>>,
}

#[derive(Default)]
struct Blocks {
    by_dir: HashMap<PathBuf, Weak<PinnedBlock>>,
    /// How many were read after the last sweep.
    swept: usize,
}

/// A block that is read, or being deleted.
pub(super) struct PinnedBlock {
    disk: Arc<dyn Disk>,
    /// Where it is now. Taken for reading while a name in it is used.
    dir: RwLock<PathBuf>,
    files: Mutex<Vec<Weak<OpenFile>>>,
    /// Of a block that was deleted: keeps other processes out until its files are removed.
    deleted: Mutex<Option<Lock>>,
}

/// A file that is read.
pub(super) struct OpenFile {
    shared: Arc<Shared>,
    block: Arc<PinnedBlock>,
    name: String,
    size_bytes: u64,
    descriptor: Mutex<Option<Arc<Descriptor>>>,
    /// The read that used it last.
    read: AtomicU64,
}

struct Descriptor {
    file: Arc<dyn DiskFile>,
    _place: Place,
}

/// One of the files that may be open.
struct Place(Arc<Shared>);

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
    /// Sets how many files may be open, 1 at least. More are only while each of them is read.
    pub fn set_open_max(&self, open_max: usize) {
        self.0.open_max.store(open_max.max(1), Relaxed);
    }

    /// How many are open.
    pub fn figures(&self) -> OpenFileFigures {
        let Shared { open, open_max, closed, .. } = &*self.0;
        let (open, open_max) = (open.load(Relaxed), open_max.load(Relaxed));
        OpenFileFigures { open, open_max, closed: closed.load(Relaxed) }
    }

    /// A file of the block in a directory, to be read as long as this is kept.
    pub(super) fn file(
        &self,
        disk: &CountingDisk,
        dir: &Path,
        name: &str,
    ) -> io::Result<Arc<OpenFile>> {
        let block = self.block(disk, dir);
        let size_bytes = block.at(name, |path| block.disk.file_size(path))?;
        let mut files = lock(&block.files);
        let known: Vec<Arc<OpenFile>> = files.iter().filter_map(Weak::upgrade).collect();
        // Another size: it was put in the place of the one that is read.
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

    /// The block in a directory.
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

    /// Gives the directory of a block that is to be deleted another name; who reads the block goes
    /// on there.
    pub(super) fn rename(
        &self,
        disk: &CountingDisk,
        from: &Path,
        to: &Path,
        rename: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<Arc<PinnedBlock>> {
        let block = self.block(disk, from);
        let mut dir = block.dir.write().unwrap_or_else(PoisonError::into_inner);
        rename()?;
        to.clone_into(&mut dir);
        drop(dir);
        lock(&self.0.blocks).by_dir.remove(from);
        Ok(block)
    }

    /// Does what needs a descriptor. While the system has none left, files are closed for it.
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

    /// Takes a place, and closes files if there are more than may be open.
    fn place(self: &Arc<Shared>) -> Place {
        let open = self.open.fetch_add(1, Relaxed) + 1;
        let place = Place(Arc::clone(self));
        let open_max = self.open_max.load(Relaxed);
        if open > open_max {
            self.close(open - open_max + open_max / CLOSED_PART);
        }
        place
    }

    /// Closes so many files, those first that were not read for the longest time, but none that is
    /// being read. Returns how many it were.
    fn close(&self, count: usize) -> usize {
        let mut opened = lock(&self.opened);
        let mut files: Vec<Arc<OpenFile>> = opened.iter().filter_map(Weak::upgrade).collect();
        // Others read meanwhile.
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
        // Any of them may be the last of a deleted block, whose files are removed then.
        drop(opened);
        self.closed.fetch_add(closed.len() as u64, Relaxed);
        closed.len()
    }

    /// Notes a file that has just got its descriptor.
    fn note_opened(&self, file: &Arc<OpenFile>) {
        let mut opened = lock(&self.opened);
        opened.push(Arc::downgrade(file));
        if opened.len() > SWEEP_MIN.max(2 * self.open.load(Relaxed)) {
            opened.retain(|file| file.strong_count() > 0);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Relaxed);
    }
}

impl OpenFile {
    pub(super) fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// Fills `out` from `offset`.
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

    /// Closes it, unless it is being opened or read. Returns whether it did.
    fn close(&self) -> bool {
        let Ok(mut descriptor) = self.descriptor.try_lock() else { return false };
        let is_idle = descriptor.as_ref().is_some_and(|open| Arc::strong_count(open) == 1);
        if is_idle {
            *descriptor = None;
        }
        is_idle
    }
}

impl PinnedBlock {
    /// Does something with a file of it, which has this path meanwhile.
    fn at<T>(&self, name: &str, work: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
        let dir = self.dir.read().unwrap_or_else(PoisonError::into_inner);
        work(&dir.join(name))
    }

    /// Has its files removed once nobody reads them: it is deleted for good. The lock is held until
    /// then.
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
            // The block is gone for everybody; only its space is not free until the next start.
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
