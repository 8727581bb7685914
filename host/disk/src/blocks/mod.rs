//! Block directories: listing, reading, writing and deleting them, each change atomic.
//!
//! ```text
//! <ULID>.tmp-for-creation/ ── commit: sync files, sync directories, rename ──▶ <ULID>/
//! <ULID>/ ── delete: rename, sync ──▶ <ULID>.tmp-for-deletion/ ── remove ──▶ nothing
//! ```
//!
//! Invariants: a directory named by a ULID is complete and durable. Only its `tombstones` and
//! `meta.json` change, each as a whole (`tombstones.rs`); so blocks can share the other files
//! (`links.rs`) and reopen them (`open_files`). A [`BlockFile`] stays readable after its block is
//! deleted. A listing shows one point in time. This module does not interpret the files. Names and
//! layout are upstream's (`tsdb/docs/format` and `tsdb/db.go` in prometheus/prometheus).

use super::DataDir;
use super::error::{Action, DiskError, Result};
use super::fs::{Access, Disk, DiskFile, Lock, RealDisk, remove_tree, tree_bytes};
use super::write_accounts::{CountingDisk, WrittenFor};
use links::LinkedFile;
pub(super) use names::Names;
use open_files::OpenFile;
pub use open_files::{OpenFileFigures, OpenFiles};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use summaries::Summaries;
use ulid::Ulid;

mod adopt;
mod links;
mod names;
mod open_files;
mod summaries;
mod tombstones;

#[cfg(test)]
mod tests;

const META_FILE: &str = "meta.json";
const TOMBSTONES_FILE: &str = "tombstones";
const CHUNKS_DIR: &str = "chunks";
const CREATION_SUFFIX: &str = ".tmp-for-creation";
pub(super) const DELETION_SUFFIX: &str = ".tmp-for-deletion";
/// Maximum number of listings while another process deletes blocks.
const LIST_TRIES: usize = 100;
/// The largest time of a ULID: 48 bits of milliseconds.
const ULID_MS_MAX: u64 = (1 << 48) - 1;

/// The immutable blocks of one data directory. Cheap to clone, usable from any thread.
#[derive(Clone)]
pub struct BlockDirs {
    disk: CountingDisk,
    dir: PathBuf,
    is_read_only: bool,
    /// Whether existing blocks are hidden: see [`BlockDirs::new_only`].
    is_new_only: bool,
    summaries: Summaries,
    open_files: OpenFiles,
    names: Names,
    _lock: Lock,
}

/// One open file of a committed block. Cheap to clone, usable from any thread.
#[derive(Clone)]
pub struct BlockFile {
    content: Content,
    path: Arc<Path>,
    size_bytes: u64,
    summaries: Summaries,
}

#[derive(Clone)]
enum Content {
    /// A file that may be replaced: the old file's handle stays open until no one reads it.
    Replaceable(Arc<dyn DiskFile>),
    /// A file that never changes, so it can be closed and reopened.
    Immutable(Arc<OpenFile>),
}

/// A block being written. Dropping it without [`commit`](BlockWriter::commit) removes it.
pub struct BlockWriter {
    disk: Arc<dyn Disk>,
    parent: PathBuf,
    dir: PathBuf,
    id: String,
    files: BTreeMap<String, GrowingFile>,
    /// Files shared with other blocks, by the file's name in this block.
    linked: BTreeMap<String, LinkedFile>,
    has_chunks_dir: bool,
    committed: bool,
    names: Names,
    _lock: Lock,
}

struct GrowingFile {
    file: Arc<dyn DiskFile>,
    path: PathBuf,
    size_bytes: u64,
}

impl BlockDirs {
    pub fn open(data: &DataDir) -> BlockDirs {
        BlockDirs::in_dir(data, data.path().to_owned())
    }

    /// Opens the blocks of a directory within a data directory.
    pub(super) fn in_dir(data: &DataDir, dir: PathBuf) -> BlockDirs {
        BlockDirs {
            disk: data.disk.clone(),
            dir,
            is_read_only: data.is_read_only(),
            is_new_only: false,
            summaries: Summaries::default(),
            open_files: data.open_files.clone(),
            names: data.block_names.clone(),
            _lock: data.lock(),
        }
    }

    /// Returns no directory: it has no blocks, and none can be added.
    pub fn none() -> BlockDirs {
        BlockDirs {
            disk: CountingDisk::new(Arc::new(RealDisk)),
            dir: PathBuf::new(),
            is_read_only: true,
            is_new_only: true,
            summaries: Summaries::default(),
            open_files: OpenFiles::default(),
            names: Names::default(),
            _lock: Arc::new(()),
        }
    }

    /// Returns the same directory for callers that add blocks but neither see nor change others.
    pub fn new_only(&self) -> BlockDirs {
        BlockDirs { is_new_only: true, ..self.clone() }
    }

    /// Lists the names (ULIDs) of all committed blocks, ascending.
    pub fn list(&self) -> Result<Vec<String>> {
        self.listed(true)
    }

    /// A number that changes when this process adds or deletes a block, or replaces tombstones.
    pub fn changes(&self) -> u64 {
        self.names.changes()
    }

    /// Lists the directories that have the name of a block but no `meta.json`.
    pub fn incomplete(&self) -> Result<Vec<String>> {
        self.listed(false)
    }

    fn listed(&self, whole: bool) -> Result<Vec<String>> {
        if self.is_new_only {
            return Ok(Vec::new());
        }
        let look = self.names.look(&self.disk, &self.dir);
        if let Some(names) = look.kept(&self.dir).filter(|_| whole) {
            return Ok(names.to_vec());
        }
        let mut tries_left = LIST_TRIES;
        loop {
            tries_left -= 1;
            let Some((names, others)) = self.try_list(whole, tries_left == 0)? else { continue };
            // When an incomplete directory gets its `meta.json`, the time of this directory does
            // not change. So a listing without such a directory cannot be kept.
            if whole && others == 0 {
                look.keep(&self.dir, &names);
            }
            return Ok(names);
        }
    }

    /// Lists the blocks, or the incomplete directories if `whole` is false, and counts the others.
    /// Returns `None` if another process deleted a block meanwhile, because the listing may lack
    /// the block into which it was merged. With `is_last`, returns the listing nevertheless.
    fn try_list(&self, whole: bool, is_last: bool) -> Result<Option<(Vec<String>, usize)>> {
        let (mut names, mut others) = (Vec::new(), 0);
        // A listing needs a descriptor, and open block files may have used the last descriptor.
        let list = |dir: &Path| self.open_files.with_descriptor(|| self.disk.list(dir));
        for entry in list(&self.dir).map_err(Action::List.failed(&self.dir))? {
            let Some(name) = entry.name().filter(|name| entry.is_dir && is_block_name(name)) else {
                continue;
            };
            let dir = self.dir.join(name);
            let inside = match list(&dir) {
                Err(error) if error.kind() == io::ErrorKind::NotFound && is_last => continue,
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                inside => inside.map_err(Action::List.failed(&dir))?,
            };
            if inside.iter().any(|file| file.name() == Some(META_FILE) && !file.is_dir) == whole {
                names.push(name.to_owned());
            } else {
                others += 1;
            }
        }
        names.sort_unstable();
        Ok(Some((names, others)))
    }

    /// Opens a file of a block: `meta.json`, `index`, `tombstones` or `chunks/NNNNNN`. It stays
    /// readable after the block is deleted. `meta.json` and `tombstones` are opened now; other
    /// files are opened by their first read, and may be closed while others are read.
    pub fn open_file(&self, block: &str, file: &str) -> Result<BlockFile> {
        let path = self.file_path(block, file)?;
        let summaries = self.summaries.clone();
        let failed = |action: Action, error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => DiskError::NotFound { path: path.clone() },
            _ => action.failed(&path)(error),
        };
        let (content, size_bytes) = match file {
            META_FILE | TOMBSTONES_FILE => {
                // Opened now: a later open could find a replacement of another length.
                let open = || self.disk.open(&path, Access::Read);
                let opened = self.open_files.with_descriptor(open);
                let opened = opened.map_err(|error| failed(Action::Open, error))?;
                let size_bytes = opened.size().map_err(Action::Read.failed(&path))?;
                (Content::Replaceable(opened), size_bytes)
            }
            _ => {
                let dir = self.block_path(block)?;
                let file = self.open_files.file(&self.disk, &dir, file);
                let file = file.map_err(|error| failed(Action::Open, error))?;
                let size_bytes = file.size_bytes();
                (Content::Immutable(file), size_bytes)
            }
        };
        Ok(BlockFile { content, path: path.into(), size_bytes, summaries })
    }

    /// Lists the blocks with the times in their ULIDs, in milliseconds since the epoch.
    pub fn times_ms(&self) -> Result<Vec<(String, i64)>> {
        let time_ms = |id: &str| Ulid::from_string(id).map_or(0, |ulid| ulid.timestamp_ms() as i64);
        Ok(self.list()?.into_iter().map(|id| (id.clone(), time_ms(&id))).collect())
    }

    /// Begins a block whose new ULID has this time (milliseconds since the epoch).
    pub fn create(&self, now_ms: i64) -> Result<BlockWriter> {
        self.create_for(now_ms, WrittenFor::Other)
    }

    /// [`create`](BlockDirs::create), with the account to which written bytes are added.
    pub fn create_for(&self, now_ms: i64, account: WrittenFor) -> Result<BlockWriter> {
        self.check_writable()?;
        // A clock outside of the range of ULIDs must not prevent new blocks.
        let now_ms = u64::try_from(now_ms).unwrap_or(0).min(ULID_MS_MAX);
        let now = SystemTime::UNIX_EPOCH + Duration::from_millis(now_ms);
        let id = Ulid::from_datetime(now).to_string();
        let dir = self.dir.join(format!("{id}{CREATION_SUFFIX}"));
        self.disk.create_dir(&dir).map_err(Action::Create.failed(&dir))?;
        Ok(BlockWriter {
            disk: self.disk.with_account(account),
            parent: self.dir.clone(),
            dir,
            id,
            files: BTreeMap::new(),
            linked: BTreeMap::new(),
            has_chunks_dir: false,
            committed: false,
            names: self.names.clone(),
            _lock: Arc::clone(&self._lock),
        })
    }

    /// Deletes a block, which disappears from listings atomically. Its files are removed now, or as
    /// soon as no one reads them.
    pub fn delete(&self, block: &str) -> Result<()> {
        self.check_writable()?;
        let from = self.block_path(block)?;
        let doomed = self.dir.join(format!("{block}{DELETION_SUFFIX}"));
        let rename = || match self.names.rename(&self.disk, &from, &doomed) {
            // An earlier deletion left this directory, and someone has restored the block since.
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {
                remove_tree(&self.disk, &doomed)?;
                self.names.rename(&self.disk, &from, &doomed)
            }
            renamed => renamed,
        };
        let pinned = match self.open_files.rename(&self.disk, &from, &doomed, rename) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(DiskError::NotFound { path: from });
            }
            renamed => renamed.map_err(Action::Rename.failed(&from))?,
        };
        // Before files are removed, because a power cut could bring back an incomplete block.
        self.disk.sync_dir(&self.dir).map_err(Action::Sync.failed(&self.dir))?;
        pinned.remove_unread(self._lock.clone());
        Ok(())
    }

    pub fn size_bytes(&self, block: &str) -> Result<u64> {
        let path = self.block_path(block)?;
        match tree_bytes(&self.disk, &path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(DiskError::NotFound { path })
            }
            counted => counted.map_err(Action::Read.failed(&path)),
        }
    }

    pub fn size_bytes_total(&self) -> Result<u64> {
        let mut total = 0;
        for block in self.list()? {
            match self.size_bytes(&block) {
                // The block was deleted after the listing.
                Err(error) if error.is_not_found() => {}
                counted => total += counted?,
            }
        }
        Ok(total)
    }

    fn check_writable(&self) -> Result<()> {
        match self.is_read_only {
            true => Err(DiskError::ReadOnly { path: self.dir.clone() }),
            false => Ok(()),
        }
    }

    /// Path of a block's file, which need not exist.
    pub fn file_path(&self, block: &str, file: &str) -> Result<PathBuf> {
        check_file_name(file)?;
        Ok(self.block_path(block)?.join(file))
    }

    fn block_path(&self, block: &str) -> Result<PathBuf> {
        block_path(&self.dir, block)
    }
}

fn block_path(dir: &Path, block: &str) -> Result<PathBuf> {
    match is_block_name(block) {
        true => Ok(dir.join(block)),
        false => Err(DiskError::BlockName { name: block.to_owned() }),
    }
}

impl BlockFile {
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// The file's path at the time when it was opened.
    pub fn path(&self) -> &Arc<Path> {
        &self.path
    }

    /// Returns whether this is a file of chunks.
    pub fn has_chunks(&self) -> bool {
        self.path.parent().is_some_and(|dir| dir.ends_with(CHUNKS_DIR))
    }

    /// Reads exactly `len` bytes from `offset`.
    pub fn read_at(&self, offset: u64, len: u32) -> Result<Vec<u8>> {
        self.check_range(offset, u64::from(len))?;
        let mut bytes = vec![0; len as usize];
        self.fill(offset, &mut bytes)?;
        Ok(bytes)
    }

    pub fn read_into(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        self.check_range(offset, out.len() as u64)?;
        self.fill(offset, out)
    }

    fn fill(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        let filled = match &self.content {
            Content::Replaceable(file) => file.read_at(offset, out),
            Content::Immutable(file) => file.read_at(offset, out),
        };
        filled.map_err(Action::Read.failed(&*self.path))
    }

    /// Returns the summary of the file, if it is still in memory.
    pub fn summary(&self) -> Option<Vec<u8>> {
        self.summaries.of(&self.path)
    }

    /// Keeps a summary of the file in memory, until summaries of other files displace it.
    pub fn keep_summary(&self, summary: Vec<u8>) {
        self.summaries.keep(&self.path, summary);
    }

    /// Checks a range before any allocation, because the length comes from the guest.
    fn check_range(&self, offset: u64, len: u64) -> Result<()> {
        let size_bytes = self.size_bytes;
        match offset.checked_add(len) {
            Some(end) if end <= size_bytes => Ok(()),
            _ => {
                let path = self.path.to_path_buf();
                Err(DiskError::ReadPastEnd { path, offset, len, size_bytes })
            }
        }
    }
}

impl BlockWriter {
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Writes bytes at an offset of a file of the block. The first write creates the file. A write
    /// beyond the end is an error, since files have no holes.
    pub fn write_at(&mut self, file: &str, offset: u64, bytes: &[u8]) -> Result<()> {
        if self.linked.contains_key(file) {
            return Err(DiskError::LinkedFile { path: self.dir.join(file) });
        }
        if !self.files.contains_key(file) {
            let created = self.create_file(file, offset)?;
            self.files.insert(file.to_owned(), created);
        }
        let Some(target) = self.files.get_mut(file) else {
            return Err(DiskError::NotFound { path: self.dir.join(file) });
        };
        let (path, size_bytes) = (&target.path, target.size_bytes);
        if offset > size_bytes {
            return Err(DiskError::Hole { path: path.clone(), offset, size_bytes });
        }
        if let Err(source) = target.file.write_at(offset, bytes) {
            // The file is cut back, so that a retry after space was freed finds it unchanged.
            let _ = target.file.set_len(size_bytes);
            return Err(Action::Write.failed(path)(source));
        }
        target.size_bytes = size_bytes.max(offset + bytes.len() as u64);
        Ok(())
    }

    /// Makes the block durable and then visible, atomically.
    pub fn commit(mut self) -> Result<()> {
        if !self.files.contains_key(META_FILE) {
            return Err(DiskError::BlockWithoutMeta { block: self.id.clone() });
        }
        // The rename comes after all syncs: a visible block must be complete after a power cut.
        for file in self.files.values() {
            file.file.sync_data().map_err(Action::Sync.failed(&file.path))?;
        }
        self.linked.values().try_for_each(LinkedFile::sync)?;
        if self.has_chunks_dir {
            let chunks = self.dir.join(CHUNKS_DIR);
            self.disk.sync_dir(&chunks).map_err(Action::Sync.failed(&chunks))?;
        }
        self.disk.sync_dir(&self.dir).map_err(Action::Sync.failed(&self.dir))?;

        let target = self.parent.join(&self.id);
        self.names
            .rename(&*self.disk, &self.dir, &target)
            .map_err(Action::Rename.failed(&self.dir))?;
        if let Err(source) = self.disk.sync_dir(&self.parent) {
            // The caller treats this as a failure, so the block must not be listed. If the rename
            // cannot be undone durably, the block stays complete. Otherwise its files would be
            // removed while it is visible, or while a power cut could make it visible.
            let taken_back = self.names.rename(&*self.disk, &target, &self.dir);
            let is_gone = taken_back.and_then(|()| self.disk.sync_dir(&self.parent)).is_ok();
            self.committed = !is_gone;
            return Err(Action::Sync.failed(&self.parent)(source));
        }
        self.committed = true;
        Ok(())
    }

    fn create_chunks_dir(&mut self, file: &str) -> Result<()> {
        if file.starts_with(CHUNKS_DIR) && !self.has_chunks_dir {
            let chunks = self.dir.join(CHUNKS_DIR);
            self.disk.create_dir(&chunks).map_err(Action::Create.failed(&chunks))?;
            self.has_chunks_dir = true;
        }
        Ok(())
    }

    fn create_file(&mut self, file: &str, offset: u64) -> Result<GrowingFile> {
        check_file_name(file)?;
        let path = self.dir.join(file);
        if offset > 0 {
            return Err(DiskError::Hole { path, offset, size_bytes: 0 });
        }
        self.create_chunks_dir(file)?;
        let file = self.disk.create(&path).map_err(Action::Create.failed(&path))?;
        Ok(GrowingFile { file, path, size_bytes: 0 })
    }
}

impl Drop for BlockWriter {
    fn drop(&mut self) {
        if self.committed {
            return;
        }
        self.files.clear();
        self.linked.clear();
        if let Err(error) = remove_tree(&*self.disk, &self.dir) {
            let path = self.dir.display();
            tracing::warn!(
                %path, %error,
                "could not remove the files of an unfinished block; the next start removes them"
            );
        }
    }
}

/// Returns whether the name is that of a block: a ULID in its canonical spelling.
pub(super) fn is_block_name(name: &str) -> bool {
    Ulid::from_string(name).is_ok_and(|ulid| ulid.to_string() == name)
}

/// Accepts only these four forms of names, so that no name leads out of the block's directory.
fn check_file_name(file: &str) -> Result<()> {
    let known = match file.split_once('/') {
        None => matches!(file, META_FILE | TOMBSTONES_FILE | "index"),
        Some((CHUNKS_DIR, number)) => {
            number.len() == 6 && number.bytes().all(|byte| byte.is_ascii_digit())
        }
        Some(_) => false,
    };
    match known {
        true => Ok(()),
        false => Err(DiskError::BlockFileName { name: file.to_owned() }),
    }
}
