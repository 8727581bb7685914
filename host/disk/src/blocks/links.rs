//! Files that several blocks share: hard links to what no block ever changes.
//!
//! ```text
//! <parent>/chunks/000001 ── link ──▶ <ULID>.tmp-for-creation/chunks/000003 ── commit ──▶ <ULID>/…
//! ```
//!
//! A link is one name more, which the commit makes durable with the names of the files that were
//! written. Deleting a block removes its names; the bytes go with the last of them. Until then each
//! block counts them as its own.

use super::{BlockWriter, block_path, check_file_name};
use crate::copy::cannot_link;
use crate::error::{Action, DiskError, Result};
use crate::fs::{Access, DiskFile};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// A file of another block.
pub(super) struct LinkedFile {
    file: Arc<dyn DiskFile>,
    path: PathBuf,
}

impl LinkedFile {
    /// A block that was copied here by hand may not be on the device yet.
    pub(super) fn sync(&self) -> Result<()> {
        self.file.sync_data().map_err(Action::Sync.failed(&self.path))
    }
}

impl BlockWriter {
    /// Makes a file of a committed block a file of this block, too, under a name that is free here.
    /// Returns whether it did: not every file system has hard links, and then nothing has happened.
    pub fn link_file(&mut self, block: &str, file: &str, new_file: &str) -> Result<bool> {
        check_file_name(file)?;
        check_file_name(new_file)?;
        let (from, to) = (block_path(&self.parent, block)?.join(file), self.dir.join(new_file));
        if self.linked.contains_key(new_file) || self.files.contains_key(new_file) {
            return Err(DiskError::LinkedFile { path: to });
        }
        let file = match self.disk.open(&from, Access::Read) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(DiskError::NotFound { path: from });
            }
            opened => opened.map_err(Action::Open.failed(&from))?,
        };
        self.create_chunks_dir(new_file)?;
        match self.disk.link(&from, &to) {
            Ok(()) => {}
            Err(error) if cannot_link(&error) => return Ok(false),
            // The block was deleted since the file was opened.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(DiskError::NotFound { path: from });
            }
            Err(error) => return Err(Action::Link.failed(&to)(error)),
        }
        self.linked.insert(new_file.to_owned(), LinkedFile { file, path: to });
        Ok(true)
    }
}
