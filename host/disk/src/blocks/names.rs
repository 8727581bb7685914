//! Serializes listings of blocks with changes. The system returns a directory's names one by one,
//! and a merge replaces several blocks by one, so a listing during a merge could miss all of them.
//!
//! [`Names::rename`] adds and removes blocks. A listing is kept for later callers until this
//! process changes the blocks, or the directory's time shows a change by another process.

use crate::fs::Disk;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};
use std::time::{Duration, SystemTime};

/// Two changes within this time may leave the directory with the same modification time.
const TIME_STEP: Duration = Duration::from_millis(100);

/// The names of one data directory's blocks; clones share them.
#[derive(Clone, Default)]
pub(crate) struct Names {
    turns: Arc<RwLock<()>>,
    changes: Arc<AtomicU64>,
    listed: Arc<Mutex<Option<Listed>>>,
}

/// A listing, and the state of the directory when it was made.
struct Listed {
    dir: PathBuf,
    changes: u64,
    changed_at: SystemTime,
    blocks: Arc<[String]>,
}

/// A lock that prevents changes by this process, and the time of the directory's last change.
pub(super) struct NamesGuard<'a> {
    names: &'a Names,
    changed_at: Option<SystemTime>,
    _turn: RwLockReadGuard<'a, ()>,
}

impl Names {
    /// Locks the names against changes during a listing.
    pub(super) fn look(&self, disk: &dyn Disk, dir: &Path) -> NamesGuard<'_> {
        let turn = self.turns.read().unwrap_or_else(PoisonError::into_inner);
        // Without a time no listing is kept, and every listing reads the directory.
        let changed_at = disk.names_changed_at(dir).ok().flatten();
        NamesGuard { names: self, changed_at, _turn: turn }
    }

    pub(super) fn rename(&self, disk: &dyn Disk, from: &Path, to: &Path) -> io::Result<()> {
        let _change = self.turns.write().unwrap_or_else(PoisonError::into_inner);
        let renamed = disk.rename(from, to);
        self.note_change();
        renamed
    }

    /// Notes that a block was added, removed or changed.
    pub(super) fn note_change(&self) {
        self.changes.fetch_add(1, SeqCst);
    }

    /// Number of changes by this process.
    pub(super) fn changes(&self) -> u64 {
        self.changes.load(SeqCst)
    }
}

impl NamesGuard<'_> {
    /// Returns the kept listing, if it is still valid.
    pub(super) fn kept(&self, dir: &Path) -> Option<Arc<[String]>> {
        let listed = self.names.listed.lock().unwrap_or_else(PoisonError::into_inner);
        let listed = listed.as_ref()?;
        let is_same = listed.dir == dir
            && Some(listed.changed_at) == self.changed_at
            && listed.changes == self.names.changes();
        is_same.then(|| Arc::clone(&listed.blocks))
    }

    /// Keeps a listing that was made under this lock.
    pub(super) fn keep(&self, dir: &Path, blocks: &[String]) {
        let Some(changed_at) = self.changed_at else { return };
        // Within this time the directory may change again without getting a new time.
        if changed_at.elapsed().is_ok_and(|age| age >= TIME_STEP) {
            let (dir, changes) = (dir.to_owned(), self.names.changes());
            let listed = Listed { dir, changes, changed_at, blocks: blocks.into() };
            *self.names.listed.lock().unwrap_or_else(PoisonError::into_inner) = Some(listed);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{BlockDirs, DataDir};
    use std::fs::{self, File};
    use std::path::Path;
    use std::time::{Duration, SystemTime};

    /// Sets a directory's time back, as if nothing had changed for a while.
    fn age(dir: &Path, at: SystemTime) {
        File::open(dir).and_then(|dir| dir.set_modified(at)).expect("a time of a directory");
    }

    fn put(blocks: &BlockDirs, now_ms: i64) -> String {
        let mut writer = blocks.create(now_ms).expect("a block");
        writer.write_at("meta.json", 0, b"{}").expect("a file");
        let id = writer.id().to_owned();
        writer.commit().expect("a whole block");
        id
    }

    #[test]
    fn a_kept_list_is_as_the_directory_is() {
        let root = tempfile::tempdir().expect("a directory");
        let dir = root.path();
        let data = DataDir::open(dir).expect("a fresh data directory");
        let blocks = BlockDirs::open(&data);
        let list = || blocks.list().expect("a list");
        let long_ago = SystemTime::now() - Duration::from_secs(100);
        let first = put(&blocks, 1_700_000_000_000);
        let is_kept = |changed_at| {
            let look = blocks.names.look(&blocks.disk, &blocks.dir);
            assert_eq!(look.changed_at, Some(changed_at));
            look.kept(&blocks.dir).is_some()
        };

        // What has just changed may change again at the same time.
        let now = SystemTime::now();
        age(dir, now);
        assert_eq!(list(), std::slice::from_ref(&first));
        assert!(!is_kept(now));
        age(dir, long_ago);
        assert_eq!((list(), is_kept(long_ago)), (vec![first.clone()], true));

        // This process changes something, and the directory's time does not tell.
        let second = put(&blocks, 1_700_000_001_000);
        age(dir, long_ago);
        assert!(!is_kept(long_ago));
        assert_eq!(list(), [first.clone(), second.clone()]);
        assert!(is_kept(long_ago));
        let before = blocks.changes();
        blocks.delete(&first).expect("it is there");
        assert_ne!(blocks.changes(), before);
        age(dir, long_ago);
        assert_eq!((list(), is_kept(long_ago)), (vec![second.clone()], true));
        let before = blocks.changes();
        blocks.replace_tombstones(&second, b"", b"{}").expect("it is there");
        assert_ne!(blocks.changes(), before);

        // Another process adds a block, and takes one away.
        let third = "01HF7YAT00000000000000000A";
        assert_eq!((list(), is_kept(long_ago)), (vec![second.clone()], true));
        fs::create_dir(dir.join(third)).expect("a directory");
        assert_eq!(list(), std::slice::from_ref(&second));
        // It is no block yet; what makes it one does not change this directory.
        let later = long_ago + Duration::from_secs(1);
        age(dir, later);
        assert_eq!((list(), is_kept(later)), (vec![second.clone()], false));
        fs::write(dir.join(third).join("meta.json"), "{}").expect("a file");
        let mut both = vec![second.clone(), third.to_owned()];
        both.sort();
        assert_eq!((list(), is_kept(later)), (both, true));
        fs::remove_dir_all(dir.join(&second)).expect("a directory");
        assert_eq!(list(), [third.to_owned()]);
    }
}
