//! A disk in memory: it fails at a chosen call, is full, or loses what was not synced.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use tidepool_disk::fs::{Access, Disk, DiskEntry, DiskFile, Lock};

/// What a power cut leaves of bytes that were written and not synced.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Keeps {
    Nothing,
    Half,
    /// As after `kill -9`, together with all names.
    Everything,
}

#[derive(Clone, Default)]
pub(super) struct MemoryDisk {
    inner: Arc<Mutex<Inner>>,
    /// While a test has it, changes hang.
    gate: Arc<Mutex<()>>,
}

#[derive(Default)]
struct Inner {
    files: Vec<Content>,
    /// `None` for a directory, else an index into `files`.
    names: BTreeMap<PathBuf, Option<usize>>,
    durable_names: BTreeMap<PathBuf, Option<usize>>,
    /// Changes that succeed before some fail, and how many fail then.
    fault: Option<(usize, usize)>,
    /// Changes so far.
    changes: usize,
    bytes_max: Option<usize>,
    unreadable: Option<PathBuf>,
    has_no_links: bool,
}

#[derive(Clone, Default)]
struct Content {
    live: Vec<u8>,
    durable: Vec<u8>,
}

struct MemoryFile {
    disk: MemoryDisk,
    index: usize,
    path: PathBuf,
}

impl MemoryDisk {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap()
    }

    /// Lets changes hang until the guard is dropped.
    pub(super) fn hang(&self) -> MutexGuard<'_, ()> {
        self.gate.lock().unwrap()
    }

    /// Lets `times` changes fail after `after` ones that succeed.
    pub(super) fn fail(&self, after: usize, times: usize) {
        self.inner().fault = Some((after, times));
    }

    pub(super) fn heal(&self) {
        let mut inner = self.inner();
        (inner.fault, inner.bytes_max, inner.unreadable) = (None, None, None);
    }

    pub(super) fn changes(&self) -> usize {
        self.inner().changes
    }

    /// From now on the disk has room for this many bytes in all files.
    pub(super) fn limit(&self, bytes_max: usize) {
        self.inner().bytes_max = Some(bytes_max);
    }

    pub(super) fn make_unreadable(&self, path: &Path) {
        self.inner().unreadable = Some(path.to_owned());
    }

    pub(super) fn without_links(self) -> MemoryDisk {
        self.inner().has_no_links = true;
        self
    }

    pub(super) fn bytes_of(&self, path: &Path) -> Vec<u8> {
        let inner = self.inner();
        inner.files[inner.names[path].unwrap()].live.clone()
    }

    /// Makes a file, durable, with its directories.
    pub(super) fn put(&self, path: &Path, bytes: &[u8]) {
        let mut inner = self.inner();
        let content = Content { live: bytes.to_vec(), durable: bytes.to_vec() };
        inner.files.push(content);
        let index = inner.files.len() - 1;
        for dir in path.ancestors().skip(1) {
            inner.names.insert(dir.to_owned(), None);
            inner.durable_names.insert(dir.to_owned(), None);
        }
        inner.names.insert(path.to_owned(), Some(index));
        inner.durable_names.insert(path.to_owned(), Some(index));
    }

    /// Names of all files.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        let inner = self.inner();
        let files = inner.names.iter().filter(|(_, index)| index.is_some());
        files.map(|(path, _)| path.clone()).collect()
    }

    /// The disk as the next start finds it.
    pub(super) fn after_power_cut(&self, keeps: Keeps) -> MemoryDisk {
        let inner = self.inner();
        let files = inner.files.iter().map(|Content { live, durable }| {
            let left = match keeps {
                Keeps::Nothing => durable.clone(),
                Keeps::Everything => live.clone(),
                Keeps::Half if live.len() > durable.len() => {
                    live[..durable.len() + (live.len() - durable.len()) / 2].to_vec()
                }
                Keeps::Half => live.clone(),
            };
            Content { live: left.clone(), durable: left }
        });
        let names = match keeps {
            Keeps::Everything => &inner.names,
            _ => &inner.durable_names,
        };
        let has_parents = |path: &Path| {
            let mut parents = path.ancestors().skip(1);
            parents.all(|parent| parent == Path::new("/") || names.contains_key(parent))
        };
        let names: BTreeMap<_, _> = names
            .iter()
            .filter(|(path, _)| has_parents(path))
            .map(|(path, index)| (path.clone(), *index))
            .collect();
        let durable_names = names.clone();
        let files = files.collect();
        let inner = Inner { files, names, durable_names, ..Inner::default() };
        MemoryDisk { inner: Arc::new(Mutex::new(inner)), gate: Arc::default() }
    }

    /// Counts a change, which fails if it shall.
    fn change(&self) -> io::Result<MutexGuard<'_, Inner>> {
        drop(self.hang());
        let mut inner = self.inner();
        inner.changes += 1;
        match &mut inner.fault {
            Some((0, 0)) | None => Ok(inner),
            Some((0, times)) => {
                *times -= 1;
                Err(io::Error::other("a fault of the test"))
            }
            Some((after, _)) => {
                *after -= 1;
                Ok(inner)
            }
        }
    }
}

fn not_found() -> io::Error {
    io::Error::from(io::ErrorKind::NotFound)
}

impl Disk for MemoryDisk {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        if self.inner().names.contains_key(path) {
            return Ok(());
        }
        let mut inner = self.change()?;
        for dir in path.ancestors() {
            inner.names.entry(dir.to_owned()).or_insert(None);
        }
        Ok(())
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let mut inner = self.change()?;
        if inner.names.contains_key(path) {
            return Err(io::Error::from(io::ErrorKind::AlreadyExists));
        }
        if !inner.names.contains_key(path.parent().unwrap()) {
            return Err(not_found());
        }
        inner.files.push(Content::default());
        let index = inner.files.len() - 1;
        inner.names.insert(path.to_owned(), Some(index));
        Ok(Arc::new(MemoryFile { disk: self.clone(), index, path: path.to_owned() }))
    }

    fn open(&self, path: &Path, _access: Access) -> io::Result<Arc<dyn DiskFile>> {
        let index = self.inner().names.get(path).copied().flatten().ok_or_else(not_found)?;
        Ok(Arc::new(MemoryFile { disk: self.clone(), index, path: path.to_owned() }))
    }

    fn file_size(&self, path: &Path) -> io::Result<u64> {
        let inner = self.inner();
        let index = inner.names.get(path).copied().flatten().ok_or_else(not_found)?;
        Ok(inner.files[index].live.len() as u64)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<DiskEntry>> {
        let inner = self.inner();
        inner.names.get(dir).ok_or_else(not_found)?;
        let below = inner.names.iter().filter(|(path, _)| path.parent() == Some(dir));
        let entry = |(path, index): (&PathBuf, &Option<usize>)| DiskEntry {
            name: path.file_name().unwrap().to_owned(),
            is_dir: index.is_none(),
            size_bytes: index.map_or(0, |index| inner.files[index].live.len() as u64),
        };
        Ok(below.map(entry).collect())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut inner = self.change()?;
        let index = inner.names.remove(from).ok_or_else(not_found)?;
        inner.names.insert(to.to_owned(), index);
        Ok(())
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut inner = self.change()?;
        if inner.has_no_links {
            return Err(io::Error::from(io::ErrorKind::Unsupported));
        }
        let index = *inner.names.get(from).ok_or_else(not_found)?;
        inner.names.insert(to.to_owned(), index);
        Ok(())
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        let mut inner = self.change()?;
        inner.names.remove(path).map(drop).ok_or_else(not_found)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.remove_file(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        let mut inner = self.change()?;
        let is_in = |name: &Path| name.parent() == Some(path);
        let names = inner.names.clone();
        inner.durable_names.retain(|name, _| !is_in(name));
        inner.durable_names.extend(names.into_iter().filter(|(name, _)| is_in(name)));
        Ok(())
    }

    fn lock(&self, _path: &Path) -> io::Result<Option<Lock>> {
        Ok(Some(Arc::new(())))
    }

    fn free_bytes(&self, _dir: &Path) -> io::Result<u64> {
        Ok(u64::MAX)
    }
}

impl DiskFile for MemoryFile {
    fn size(&self) -> io::Result<u64> {
        Ok(self.disk.inner().files[self.index].live.len() as u64)
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let inner = self.disk.inner();
        if inner.unreadable.as_ref() == Some(&self.path) {
            return Err(io::Error::other("a bad sector of the test"));
        }
        let live = &inner.files[self.index].live;
        let bytes = live.get(offset as usize..offset as usize + out.len());
        out.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let changed = self.disk.change().map(drop);
        let mut inner = self.disk.inner();
        let used: usize = inner.files.iter().map(|file| file.live.len()).sum();
        let room = inner.bytes_max.map_or(bytes.len(), |max| max.saturating_sub(used));
        // A write that fails leaves a part.
        let count = if changed.is_err() { bytes.len() / 2 } else { bytes.len().min(room) };
        let live = &mut inner.files[self.index].live;
        let offset = offset as usize;
        live.resize(live.len().max(offset + count), 0);
        live[offset..offset + count].copy_from_slice(&bytes[..count]);
        changed?;
        match count == bytes.len() {
            true => Ok(()),
            false => Err(io::Error::from(io::ErrorKind::StorageFull)),
        }
    }

    fn set_len(&self, size_bytes: u64) -> io::Result<()> {
        self.disk.change()?.files[self.index].live.resize(size_bytes as usize, 0);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut inner = self.disk.change()?;
        let content = &mut inner.files[self.index];
        content.durable = content.live.clone();
        Ok(())
    }
}
