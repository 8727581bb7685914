//! The calls of the simulated disk.

use super::file::{FileChange, FileNode};
use super::{DirNode, NAME_BYTES, Node, ROOT, SimDisk};
use std::ffi::OsString;
use std::io;
use std::path::{Component, Path};
use std::sync::Arc;
use tidepool_disk::fs::{Access, Disk, DiskEntry, DiskFile, Lock};

struct SimFile {
    disk: SimDisk,
    node: u64,
}

impl Disk for SimDisk {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        let mut state = self.lock_state();
        let about = || format!("create directory {}", path.display());
        let mut node = ROOT;
        let mut parts = path.components();
        let mut is_new = false;
        for part in parts.by_ref() {
            let Component::Normal(name) = part else { continue };
            node = match state.dir(node)?.seen.get(name) {
                Some(found) => *found,
                None => {
                    if !is_new {
                        state.change(about)?;
                        is_new = true;
                    }
                    state.check_room(NAME_BYTES)?;
                    let new = state.add(Node::Dir(DirNode::default()));
                    state.rename_in(node, vec![(name.to_owned(), Some(new))])?;
                    new
                }
            };
        }
        state.dir(node)?;
        if is_new {
            state.remember(about);
        }
        Ok(())
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let mut state = self.lock_state();
        let about = || format!("create {}", path.display());
        state.change(about)?;
        let (dir, name) = state.place(path)?;
        if state.dir(dir)?.seen.contains_key(&name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        state.check_room(NAME_BYTES)?;
        let node = state.add(Node::File(FileNode::default()));
        state.rename_in(dir, vec![(name, Some(node))])?;
        state.remember(about);
        drop(state);
        Ok(Arc::new(SimFile { disk: self.clone(), node }))
    }

    fn open(&self, path: &Path, _: Access) -> io::Result<Arc<dyn DiskFile>> {
        let mut state = self.lock_state();
        state.read(|| format!("open {}", path.display()))?;
        let node = state.find(path)?;
        state.file(node)?;
        drop(state);
        Ok(Arc::new(SimFile { disk: self.clone(), node }))
    }

    fn file_size(&self, path: &Path) -> io::Result<u64> {
        let mut state = self.lock_state();
        state.read(|| format!("size of {}", path.display()))?;
        let node = state.find(path)?;
        Ok(state.file(node)?.seen.len() as u64)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<DiskEntry>> {
        let mut state = self.lock_state();
        state.read(|| format!("list {}", path.display()))?;
        let dir = state.dir(state.find(path)?)?;
        let entry = |(name, node): (&OsString, &u64)| {
            let file = state.file(*node);
            let size_bytes = file.as_ref().map_or(0, |file| file.seen.len() as u64);
            DiskEntry { name: name.clone(), is_dir: file.is_err(), size_bytes }
        };
        Ok(dir.seen.iter().map(entry).collect())
    }

    /// Only within one directory: the tests need nothing else.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.lock_state();
        let about = || format!("rename {} to {}", from.display(), to.display());
        state.change(about)?;
        let ((dir, old), (to_dir, new)) = (state.place(from)?, state.place(to)?);
        if dir != to_dir {
            return Err(io::ErrorKind::CrossesDevices.into());
        }
        let names = &state.dir(dir)?.seen;
        let node = *names.get(&old).ok_or(io::ErrorKind::NotFound)?;
        if let Some(replaced) = names.get(&new)
            && state.dir(*replaced).is_ok_and(|dir| !dir.seen.is_empty())
        {
            return Err(io::ErrorKind::DirectoryNotEmpty.into());
        }
        state.rename_in(dir, vec![(old, None), (new, Some(node))])?;
        state.remember(about);
        Ok(())
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.lock_state();
        let about = || format!("link {} to {}", from.display(), to.display());
        state.change(about)?;
        let node = state.find(from)?;
        state.file(node)?;
        let (dir, name) = state.place(to)?;
        if state.dir(dir)?.seen.contains_key(&name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        state.check_room(NAME_BYTES)?;
        state.rename_in(dir, vec![(name, Some(node))])?;
        state.remember(about);
        Ok(())
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        let mut state = self.lock_state();
        let about = || format!("remove {}", path.display());
        state.change(about)?;
        let (dir, name) = state.place(path)?;
        state.file(state.find(path)?)?;
        state.rename_in(dir, vec![(name, None)])?;
        state.remember(about);
        Ok(())
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        let mut state = self.lock_state();
        let about = || format!("remove directory {}", path.display());
        state.change(about)?;
        let (dir, name) = state.place(path)?;
        if !state.dir(state.find(path)?)?.seen.is_empty() {
            return Err(io::ErrorKind::DirectoryNotEmpty.into());
        }
        state.rename_in(dir, vec![(name, None)])?;
        state.remember(about);
        Ok(())
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        let mut state = self.lock_state();
        let about = || format!("sync directory {}", path.display());
        state.change(about)?;
        let node = state.find(path)?;
        state.dir(node)?;
        state.remember(about);
        if state.ignores_syncs {
            return Ok(());
        }
        let dir = state.dir_mut(node)?;
        dir.unsynced.clear();
        dir.durable = dir.seen.clone();
        Ok(())
    }

    fn lock(&self, path: &Path) -> io::Result<Option<Lock>> {
        if self.lock_state().find(path).is_err() {
            self.create(path)?;
        }
        let mut state = self.lock_state();
        let node = state.find(path)?;
        if state.locks.get(&node).is_some_and(|held| held.strong_count() > 0) {
            return Ok(None);
        }
        let held = Arc::new(());
        state.locks.insert(node, Arc::downgrade(&held));
        Ok(Some(held))
    }

    fn free_bytes(&self, _: &Path) -> io::Result<u64> {
        Ok(self.lock_state().room_bytes())
    }
}

impl DiskFile for SimFile {
    fn size(&self) -> io::Result<u64> {
        Ok(self.disk.lock_state().file(self.node)?.seen.len() as u64)
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let mut state = self.disk.lock_state();
        state.read(|| format!("read at {offset}"))?;
        let file = state.file(self.node)?;
        let from = file.seen.get(offset as usize..).unwrap_or_default();
        let bytes = from.get(..out.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        out.copy_from_slice(bytes);
        Ok(())
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.disk.lock_state();
        let about = || format!("write {} bytes at {offset}", bytes.len());
        let offset = offset as usize;
        let len = state.file(self.node)?.seen.len();
        let growth = (offset + bytes.len()).saturating_sub(len) as u64;
        let written = state.change(about).and_then(|()| state.check_room(growth));
        let kept = match &written {
            Ok(()) => bytes.len(),
            Err(error) if error.kind() == io::ErrorKind::StorageFull => {
                let room = state.room_bytes().min(bytes.len() as u64);
                // A fault may say so although there is room.
                state.random.below(room + 1) as usize
            }
            Err(_) => state.random.below(bytes.len() as u64 + 1) as usize,
        };
        let change = FileChange::Write { offset, bytes: bytes[..kept].into() };
        state.file_mut(self.node)?.change(change);
        state.remember(about);
        written
    }

    fn set_len(&self, size_bytes: u64) -> io::Result<()> {
        let mut state = self.disk.lock_state();
        let about = || format!("set length {size_bytes}");
        state.change(about)?;
        let (before, len) = (state.file(self.node)?.seen.len(), size_bytes as usize);
        state.check_room(len.saturating_sub(before) as u64)?;
        let from = before.min(len);
        state.file_mut(self.node)?.change(FileChange::SetLen { len, from });
        state.remember(about);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.disk.lock_state();
        let about = || "sync a file".to_owned();
        let synced = state.change(about);
        state.remember(about);
        if state.ignores_syncs {
            return synced;
        }
        let mut random = state.random.clone();
        let file = state.file_mut(self.node)?;
        match synced {
            Ok(()) => file.sync(),
            Err(_) => {
                file.durable = Arc::new(file.survivor(&mut random));
                file.unsynced.clear();
            }
        }
        state.random = random;
        synced
    }
}
