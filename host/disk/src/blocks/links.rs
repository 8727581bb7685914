//! Hard links of files that several blocks share, because no block ever changes them.
//!
//! ```text
//! <parent>/chunks/000001 ── link ──▶ <ULID>.tmp-for-creation/chunks/000003 ── commit ──▶ <ULID>/…
//! ```
//!
//! A link is a further name of a file. The commit makes it durable together with the names of
//! written files. Deleting a block removes its names; the bytes are freed with the last name. Until
//! then each block counts them as its own.

use super::{BlockWriter, block_path, check_file_name};
use crate::copy::cannot_link;
use crate::error::{Action, DiskError, Result};
use crate::fs::{Access, DiskFile};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

pub(super) struct LinkedFile {
    file: Arc<dyn DiskFile>,
    path: PathBuf,
}

impl LinkedFile {
    /// Syncs the file, which may not be on the device yet if the block was copied here by hand.
    pub(super) fn sync(&self) -> Result<()> {
        self.file.sync_data().map_err(Action::Sync.failed(&self.path))
    }
}

impl BlockWriter {
    /// Links a file of a committed block into this block, under a name that is not used here.
    /// Returns whether the file system supports links; if not, nothing has changed.
    pub fn link_file(&mut self, block: &str, file: &str, new_file: &str) -> Result<bool> {
        check_file_name(file)?;
        check_file_name(new_file)?;
        let (from, to) = (block_path(&self.parent, block)?.join(file), self.dir.join(new_file));
        if self.linked.contains_key(new_file) || self.files.contains_key(new_file) {
            return Err(DiskError::LinkedFile { path: to });
        }
        // Opened before the link, so that the commit syncs this very file even if the name is
        // reused.
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
