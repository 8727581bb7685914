//! Moves blocks from another directory into this directory.

use super::{BlockDirs, META_FILE};
use crate::error::{Action, Result};
use crate::fs::Disk as _;
use crate::replace::replace_file;

impl BlockDirs {
    /// Moves a block here from another directory of the same file system, and gives it a new
    /// `meta.json`. The block becomes visible as a whole or not at all. After a crash it may still
    /// be in the other directory, with either `meta.json`.
    pub fn adopt(&self, from: &BlockDirs, block: &str, meta: &[u8]) -> Result<()> {
        self.check_writable()?;
        from.check_writable()?;
        let (old, new) = (from.block_path(block)?, self.block_path(block)?);
        replace_file(&self.disk, &old, META_FILE, meta)?;
        self.disk.rename(&old, &new).map_err(Action::Rename.failed(&old))?;
        self.names.note_change();
        // The target first: a power cut between the syncs then leaves both names, not none.
        for dir in [&self.dir, &from.dir] {
            self.disk.sync_dir(dir).map_err(Action::Sync.failed(dir))?;
        }
        Ok(())
    }
}
