//! A directory next to the blocks, in which several blocks are made before any becomes visible.
//!
//! The directory's name marks unfinished work, so the next start removes it after a crash.
//! Upstream's programs remove it as well.

use super::error::{Action, Result};
use super::fs::remove_tree;
use super::{BlockDirs, DataDir, UNFINISHED_BLOCK_SUFFIXES};
use std::path::{Path, PathBuf};
use ulid::Ulid;

/// A directory of new blocks that are not visible yet. Dropping this value removes blocks that
/// [`publish`](Staging::publish) has not moved.
pub struct Staging {
    data: DataDir,
    dir: PathBuf,
}

impl Staging {
    pub fn new(data: &DataDir) -> Result<Staging> {
        let [suffix, ..] = UNFINISHED_BLOCK_SUFFIXES;
        let dir = data.path().join(format!("{}{suffix}", Ulid::generate()));
        data.disk().create_dir(&dir).map_err(Action::Create.failed(&dir))?;
        Ok(Staging { data: data.clone(), dir })
    }

    /// The directory, for other files of the same work.
    pub fn path(&self) -> &Path {
        &self.dir
    }

    pub fn blocks(&self) -> BlockDirs {
        BlockDirs::in_dir(&self.data, self.dir.clone())
    }

    /// Makes all of the blocks visible, oldest first, and returns their names. A crash meanwhile
    /// leaves some blocks visible; repeating the same work is harmless.
    pub fn publish(self) -> Result<Vec<String>> {
        let disk = self.data.disk();
        let blocks = self.blocks().list()?;
        for block in &blocks {
            let from = self.dir.join(block);
            let to = self.data.path().join(block);
            disk.rename(&from, &to).map_err(Action::Rename.failed(&from))?;
            // Synced one by one: readers of a block assume that all older blocks are visible.
            let root = self.data.path();
            disk.sync_dir(root).map_err(Action::Sync.failed(root))?;
        }
        Ok(blocks)
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if let Err(error) = remove_tree(&*self.data.disk(), &self.dir) {
            let path = self.dir.display();
            // The next start removes the directory, so a failure only costs space until then.
            tracing::warn!(%path, %error, "could not delete unfinished files; the next start deletes them");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_seen_together_or_not_at_all()
    -> std::result::Result<(), Box<dyn std::error::Error>> {
        let root = tempfile::tempdir()?;
        let data = DataDir::open(root.path())?;
        let make = |staging: &Staging| -> Result<()> {
            for now_ms in [1, 2] {
                let mut writer = staging.blocks().create(now_ms)?;
                writer.write_at("meta.json", 0, b"{}")?;
                writer.commit()?;
            }
            Ok(())
        };
        let dropped = Staging::new(&data)?;
        make(&dropped)?;
        assert_eq!(BlockDirs::open(&data).list()?, Vec::<String>::new());
        drop(dropped);
        let names = |dir: &Path| std::fs::read_dir(dir).map(|entries| entries.count());
        assert_eq!(names(root.path())?, 2, "lock and wal");

        let kept = Staging::new(&data)?;
        make(&kept)?;
        let published = kept.publish()?;
        assert_eq!((published.len(), BlockDirs::open(&data).list()?), (2, published));
        assert_eq!(names(root.path())?, 4);

        // What a crash leaves is swept.
        std::mem::drop(data);
        let left = root.path().join("01ARZ3NDEKTSV4RRFFQ69G5FAV.tmp-for-creation");
        std::fs::create_dir_all(left.join("01ARZ3NDEKTSV4RRFFQ69G5FAW"))?;
        DataDir::open(root.path())?;
        assert!(!left.exists());
        Ok(())
    }
}
