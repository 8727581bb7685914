//! The last list of a server, or answer of the DNS, kept in a file for the next start.

use super::list::{ListError, Raw};
use crate::memory::MemoryBound;
use std::fs::File;
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Lists that were begun: two jobs may ask one server.
static BEGUN: AtomicU64 = AtomicU64::new(0);

/// Where one list is.
#[derive(Clone)]
pub(super) struct Saved {
    directory: PathBuf,
    name: String,
}

impl Saved {
    /// The file for a URL, or what else tells which list it is.
    pub fn new(directory: &Path, key: &str) -> Saved {
        let name = format!("{:08x}-{}.json", crc32c::crc32c(key.as_bytes()), key.len());
        Saved { directory: directory.to_owned(), name }
    }

    /// The list, if one is there.
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

    /// Keeps a list, beside the threads of the network. One that is there is whole at any moment.
    pub async fn write(&self, list: Vec<u8>) -> io::Result<()> {
        let saved = self.clone();
        let written = tokio::task::spawn_blocking(move || saved.write_now(&list)).await;
        written.map_err(io::Error::other)?
    }

    /// The same, on this thread.
    pub fn write_now(&self, list: &[u8]) -> io::Result<()> {
        std::fs::create_dir_all(&self.directory)?;
        let number = BEGUN.fetch_add(1, Relaxed);
        let staged = self.directory.join(format!("{}.{number}.tmp", self.name));
        let mut file = File::create(&staged)?;
        file.write_all(list)?;
        file.sync_all()?;
        std::fs::rename(&staged, self.directory.join(&self.name))
    }
}
