//! Saves the last list of a server, or the last DNS answer, in a file for the next start.

use super::list::{ListError, Raw};
use crate::memory::MemoryBound;
use std::fs::File;
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Numbers the temporary files, because two jobs may save the list of the same server.
static BEGUN: AtomicU64 = AtomicU64::new(0);

/// File of one saved list.
#[derive(Clone)]
pub(super) struct Saved {
    directory: PathBuf,
    name: String,
}

impl Saved {
    /// Returns the file for a key: the URL of a list, or a text with type and name of a lookup.
    pub fn new(directory: &Path, key: &str) -> Saved {
        // The length distinguishes most keys whose checksums are equal.
        let name = format!("{:08x}-{}.json", crc32c::crc32c(key.as_bytes()), key.len());
        Saved { directory: directory.to_owned(), name }
    }

    /// Reads the saved list; returns `None` if the file does not exist.
    pub fn read(&self, memory: &MemoryBound) -> Result<Option<Raw>, ListError> {
        let file = match File::open(self.directory.join(&self.name)) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(ListError::wrong(error)),
        };
        let mut raw = Raw::new(memory);
        raw.read(file)?;
        Ok(Some(raw))
    }

    /// Saves a list on another thread. The file is replaced atomically.
    pub async fn write(&self, list: Vec<u8>) -> io::Result<()> {
        let saved = self.clone();
        let written = tokio::task::spawn_blocking(move || saved.write_now(&list)).await;
        written.map_err(io::Error::other)?
    }

    /// Saves a list on this thread.
    pub fn write_now(&self, list: &[u8]) -> io::Result<()> {
        std::fs::create_dir_all(&self.directory)?;
        let number = BEGUN.fetch_add(1, Relaxed);
        let staged = self.directory.join(format!("{}.{number}.tmp", self.name));
        let mut file = File::create(&staged)?;
        file.write_all(list)?;
        // Before the rename, so that a crash leaves the old or the new list.
        file.sync_all()?;
        std::fs::rename(&staged, self.directory.join(&self.name))
    }
}
