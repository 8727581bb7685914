//! `head_snapshot`: a file with the head at a clean stop, so that the next start need not read the
//! logs. Only tidepool uses the file; Prometheus ignores it.
//!
//! ```text
//! stop:   logs synced ─▶ head_snapshot.tmp written, synced ─▶ renamed ─▶ directory synced
//! start:  logs unchanged since the stop?   ─▶ read ─▶ removed ─▶ first write to the logs
//!                                    no ─▶ removed ─▶ logs replayed
//! ```
//!
//! The logs stay complete, so losing the file loses no data. The file stores the state of the logs
//! (see [`position`](super::wal::position)) and is useless with logs in another state: after
//! another program has written to them, or if a power cut brings back the removed file.
//!
//! ```text
//! ┌────────────┬─────────┬─────────┬──────────┬─────┐
//! │ "TIDEHEAD" │ version │ len u32 │ position │ CRC │
//! ├─────────┬─────┬───────┬────┬─────────┬──────────┘
//! │ len u32 │ CRC │ piece │ …  │ 0 │ CRC │    little-endian; CRC is CRC-32C
//! └─────────┴─────┴───────┴────┴─────────┘
//! ```
//!
//! The first checksum covers all bytes before it, the checksum of a piece covers the piece, and the
//! last checksum covers all lengths and checksums before it. The engine defines the content of a
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
/// Name of an unfinished snapshot. A start removes a file with this name.
const UNFINISHED_FILE: &str = "head_snapshot.tmp";
const MAGIC: &[u8; 8] = b"TIDEHEAD";
const VERSION: u32 = 1;

/// Length of the longest accepted piece. The engine returns pieces of about the requested length,
/// but a single long series is one piece.
const PIECE_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Bytes that must stay free on the device for the log of the next start.
const RESERVE_BYTES: u64 = 64 * 1024 * 1024;

/// Reason for which no head snapshot can be used or written.
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
    /// Writing takes longer than the time limit of a stop.
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
    /// The file has a version that this program does not know.
    #[error("it has the unknown version {version}")]
    Version {
        /// Version number in the file's head.
        version: u32,
    },
    /// The file's bytes are not the bytes that were written.
    #[error("it is damaged at byte {offset}: {reason}")]
    Damaged {
        /// Byte at which the damage was found.
        offset: u64,
        reason: &'static str,
    },
    /// Another program has written to the logs since the file was written.
    #[error("the logs changed after it was written")]
    OtherLogs,
    /// Prometheus has worked in the directory since the file was written.
    #[error("the data directory has a head cache of Prometheus")]
    OtherCaches,
}

pub type Result<T> = std::result::Result<T, HeadSnapshotError>;

impl DataDir {
    fn head_snapshot_path(&self) -> PathBuf {
        self.path().join(FILE)
    }

    /// Removes the head snapshot, if one exists. Must be called before the first write to the logs.
    pub fn remove_head_snapshot(&self) -> std::result::Result<(), DiskError> {
        let (disk, path) = (self.disk(), self.head_snapshot_path());
        match disk.remove_file(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            removed => removed.map_err(Action::Remove.failed(&path))?,
        }
        // Synced before the first write: a power cut must not bring back an old snapshot.
        disk.sync_dir(self.path()).map_err(Action::Sync.failed(self.path()))
    }
}
