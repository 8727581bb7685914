//! `head_snapshot`: the head as it was at a clean stop, so that the next start need not read the
//! logs. Only tidepool uses the file; Prometheus ignores a file of this name.
//!
//! ```text
//! stop:   logs synced ─▶ head_snapshot.tmp written, synced ─▶ renamed ─▶ directory synced
//! start:  are the logs as they were then? ─▶ read ─▶ removed ─▶ first write to the logs
//!                                    no ─▶ removed ─▶ logs replayed
//! ```
//!
//! The logs stay complete beside the file, so nothing is lost with it. The file stores the state of
//! the logs (see [`position`](super::wal::position)) and is useless with any other: after another
//! program worked in the directory, or if a power cut brings the file back after it was removed.
//!
//! ```text
//! ┌────────────┬─────────┬─────────┬──────────┬─────┐
//! │ "TIDEHEAD" │ version │ len u32 │ position │ CRC │
//! ├─────────┬─────┬───────┬────┬─────────┬──────────┘
//! │ len u32 │ CRC │ piece │ …  │ 0 │ CRC │    little-endian; CRC is CRC-32C
//! └─────────┴─────┴───────┴────┴─────────┘
//! ```
//!
//! The first checksum covers everything before it, the checksum of a piece covers the piece, and
//! the last one covers all lengths and checksums before it. The engine defines the content of a
//! piece (`engine/docs/format/head.md`).

mod reader;
#[cfg(test)]
mod tests;
mod writer;

pub use reader::HeadSnapshot;
pub use writer::HeadSnapshotWriter;

use super::DataDir;
use super::error::{Action, DiskError};
use std::io;
use std::path::PathBuf;
use std::time::Duration;

pub(super) const FILE: &str = "head_snapshot";
/// An unfinished snapshot. A file of this name is removed at a start.
const UNFINISHED_FILE: &str = "head_snapshot.tmp";
const MAGIC: &[u8; 8] = b"TIDEHEAD";
const VERSION: u32 = 1;

/// Longest accepted piece. The engine returns pieces of about the requested length; only a single
/// long series makes a longer one.
const PIECE_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Bytes that must stay free on the device: the next start needs room for its log.
const RESERVE_BYTES: u64 = 64 * 1024 * 1024;

/// Reason for which there is no usable head snapshot.
#[derive(Debug, thiserror::Error)]
pub enum HeadSnapshotError {
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// Writing would leave less than the reserve free on the device.
    #[error("only {free_bytes} bytes are free on the device; {RESERVE_BYTES} must stay free")]
    NoRoom {
        /// Free bytes of the device before the write.
        free_bytes: u64,
    },
    /// Writing takes longer than a stop may.
    #[error("the device is too slow: {bytes} bytes took {:.1} s", time.as_secs_f64())]
    TooSlow {
        bytes: u64,
        /// Time since the writing began.
        time: Duration,
    },
    /// The piece exceeds the limit.
    #[error("a piece of {bytes} bytes is longer than the {PIECE_BYTES_MAX} bytes allowed")]
    PieceTooLong {
        /// Length of the piece in bytes.
        bytes: usize,
    },
    /// An unknown version wrote the file.
    #[error("it has the unknown version {version}")]
    Version {
        /// Version number in the file's head.
        version: u32,
    },
    /// The bytes are not those that were written.
    #[error("it is damaged at byte {offset}: {reason}")]
    Damaged {
        /// Byte at which the damage was found.
        offset: u64,
        reason: &'static str,
    },
    /// Another program has written to the logs since.
    #[error("the logs changed after it was written")]
    OtherLogs,
    /// Prometheus has worked in the directory since.
    #[error("the data directory has a head cache of Prometheus")]
    OtherCaches,
}

pub type Result<T> = std::result::Result<T, HeadSnapshotError>;

impl DataDir {
    fn head_snapshot_path(&self) -> PathBuf {
        self.path().join(FILE)
    }

    /// Removes the head snapshot, if there is one. Must be called before the first write to the
    /// logs.
    pub fn remove_head_snapshot(&self) -> std::result::Result<(), DiskError> {
        let (disk, path) = (self.disk(), self.head_snapshot_path());
        match disk.remove_file(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            removed => removed.map_err(Action::Remove.failed(&path))?,
        }
        // Synced before the first write, so that a power cut cannot bring back a stale snapshot.
        disk.sync_dir(self.path()).map_err(Action::Sync.failed(self.path()))
    }
}
