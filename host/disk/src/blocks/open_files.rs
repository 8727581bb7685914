//! Files of blocks that are open now: whoever opens one of them again shares its descriptor, so a
//! process has each file open once, however many reads run at a time, and however many blocks it is
//! part of.

use crate::fs::DiskFile;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Closed files are swept when there are twice as many as were open after the last sweep, and this
/// many.
const SWEEP_MIN: usize = 64;

/// The open files of a data directory. Cheap to clone; clones share them.
#[derive(Clone, Default)]
pub(super) struct OpenFiles {
    files: Arc<Mutex<Files>>,
}

#[derive(Default)]
struct Files {
    /// By device and inode: an inode is not given to another file while this one is open, and a
    /// file that took the place of another under its name has one of its own.
    by_identity: HashMap<(u64, u64), Weak<dyn DiskFile>>,
    /// How many were open after the last sweep.
    swept: usize,
}

impl OpenFiles {
    /// A file that was just opened, or the same file as somebody else has it open.
    pub(super) fn share(
        &self,
        identity: Option<(u64, u64)>,
        file: Arc<dyn DiskFile>,
    ) -> Arc<dyn DiskFile> {
        let Some(identity) = identity else { return file };
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(first) = files.by_identity.get(&identity).and_then(Weak::upgrade) {
            return first;
        }
        files.by_identity.insert(identity, Arc::downgrade(&file));
        if files.by_identity.len() > SWEEP_MIN.max(2 * files.swept) {
            files.by_identity.retain(|_, file| file.strong_count() > 0);
            files.swept = files.by_identity.len();
        }
        file
    }
}

#[cfg(test)]
mod tests {
    use crate::{BlockDirs, DataDir};

    type TestResult = Result<(), Box<dyn std::error::Error>>;

    fn descriptors(of: &std::path::Path) -> std::io::Result<usize> {
        let mut count = 0;
        for entry in std::fs::read_dir("/proc/self/fd")? {
            let target = std::fs::read_link(entry?.path());
            count += usize::from(target.is_ok_and(|target| target.starts_with(of)));
        }
        Ok(count)
    }

    /// A query of two weeks opened each file of chunks for itself; ten at a time passed a usual
    /// limit of 1,024 open files, and were refused.
    #[test]
    fn a_file_is_open_once_however_many_read_it() -> TestResult {
        let root = tempfile::tempdir()?;
        let data = DataDir::open(root.path())?;
        let blocks = BlockDirs::open(&data);
        let mut writer = blocks.create(1)?;
        for file in ["index", "chunks/000001", "meta.json"] {
            writer.write_at(file, 0, b"bytes")?;
        }
        let id = writer.id().to_owned();
        writer.commit()?;
        let dir = root.path().join(&id);
        for file in ["index", "chunks/000001"] {
            let first = blocks.open_file(&id, file)?;
            let others = (0..10).map(|_| blocks.clone().open_file(&id, file));
            let others = others.collect::<Result<Vec<_>, _>>()?;
            assert_eq!(descriptors(&dir)?, 1);
            drop(first);
            assert_eq!(others.last().ok_or("none")?.read_at(0, 5)?, b"bytes");
            drop(others);
            assert_eq!(descriptors(&dir)?, 0, "the last one closes it");
            assert_eq!(blocks.open_file(&id, file)?.read_at(0, 5)?, b"bytes");
        }
        // What is replaced under its name is not shared.
        let before = blocks.open_file(&id, "meta.json")?;
        blocks.replace_tombstones(&id, b"", b"other")?;
        assert_eq!(blocks.open_file(&id, "meta.json")?.read_at(0, 5)?, b"other");
        assert_eq!(before.read_at(0, 5)?, b"bytes");
        Ok(())
    }
}
