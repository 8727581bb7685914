//! The two files of a block that change: `tombstones`, and `meta.json` with the number of them.
//!
//! ```text
//! tombstones.tmp ─ write, sync ─ rename, sync directory ─▶ tombstones
//! meta.json.tmp  ─ write, sync ─ rename, sync directory ─▶ meta.json
//! ```
//!
//! Reads use only `tombstones`, so a crash between the two steps leaves a wrong number but no wrong
//! result. The next start removes files with the temporary names.

use super::{BlockDirs, META_FILE};
use crate::error::{Action, Result};
use crate::fs::Disk;
use crate::replace::{REPLACEMENT_SUFFIX, replace_file};

impl BlockDirs {
    /// Replaces the `tombstones` of a block, then its `meta.json`: each durably, and atomically for
    /// readers that open the file. Open handles and hard links keep the old content.
    pub fn replace_tombstones(&self, block: &str, tombstones: &[u8], meta: &[u8]) -> Result<()> {
        self.check_writable()?;
        let dir = self.block_path(block)?;
        let replaced = replace_file(&self.disk, &dir, "tombstones", tombstones)
            .and_then(|()| replace_file(&self.disk, &dir, META_FILE, meta));
        // Also after a failure, because the first of the two files may have been replaced.
        self.names.note_change();
        replaced
    }

    /// Removes temporary files of replacements that a crash interrupted.
    pub(crate) fn sweep_replacements(&self) -> Result<()> {
        for block in self.list()? {
            let dir = self.dir.join(block);
            for entry in self.disk.list(&dir).map_err(Action::List.failed(&dir))? {
                if !entry.is_dir && entry.name().is_some_and(|n| n.ends_with(REPLACEMENT_SUFFIX)) {
                    let path = dir.join(&entry.name);
                    self.disk.remove_file(&path).map_err(Action::Remove.failed(&path))?;
                    tracing::info!(path = %path.display(), "removed an unfinished tombstones file");
                }
            }
        }
        Ok(())
    }
}
