//! `head_snapshot`: the head as it was at a clean stop, so that the next start need not read the
//! logs. Made by us for us; Prometheus does not look at a file of this name.
//!
//! ```text
//! stop:   logs synced ─▶ head_snapshot.tmp written, synced ─▶ renamed ─▶ directory synced
//! start:  are the logs as they were then? ─▶ read ─▶ removed ─▶ first write to the logs
//!                                    no ─▶ removed ─▶ logs replayed
//! ```
//!
//! The logs stay whole beside it, so nothing is lost with it. It says what the logs looked like
//! (see [`position`](super::wal::position)), and is of no use with any other: not after another
//! program worked in the directory, nor if a power cut brings it back after it was removed.
//!
//! ```text
//! ┌────────────┬─────────┬─────────┬──────────┬─────┐
//! │ "TIDEHEAD" │ version │ len u32 │ position │ CRC │
//! ├─────────┬─────┬───────┬────┬─────────┬──────────┘
//! │ len u32 │ CRC │ piece │ …  │ 0 │ CRC │    little-endian; CRC is CRC-32C
//! └─────────┴─────┴───────┴────┴─────────┘
//! ```
//!
//! The first checksum covers all before it, that of a piece the piece, the last one all lengths and
//! checksums before it. What a piece holds is the engine's (`engine/docs/format/head.md`).

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
/// What bears this name at start is swept.
const UNFINISHED_FILE: &str = "head_snapshot.tmp";
const MAGIC: &[u8; 8] = b"TIDEHEAD";
const VERSION: u32 = 1;

/// Longest piece. The engine returns about as much as it is asked for, and longer ones only where a
/// single series is longer.
const PIECE_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Bytes that must stay free on the device: a full one would stop the next start's log.
const RESERVE_BYTES: u64 = 64 * 1024 * 1024;

/// Why there is no head snapshot, or none of use.
#[derive(Debug, thiserror::Error)]
pub enum HeadSnapshotError {
    /// The disk failed.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The device would get too full.
    #[error("only {free_bytes} bytes are free on the device; {RESERVE_BYTES} must stay free")]
    NoRoom {
        /// Free bytes.
        free_bytes: u64,
    },
    /// It takes longer than a stop may.
    #[error("the device is too slow: {bytes} bytes took {:.1} s", time.as_secs_f64())]
    TooSlow {
        /// Bytes written so far.
        bytes: u64,
        /// How long that took.
        time: Duration,
    },
    /// A piece is longer than any should be.
    #[error("a piece of {bytes} bytes is longer than the {PIECE_BYTES_MAX} bytes allowed")]
    PieceTooLong {
        /// Its length.
        bytes: usize,
    },
    /// Another version wrote it.
    #[error("it has the unknown version {version}")]
    Version {
        /// Its version.
        version: u32,
    },
    /// Its bytes are not what was written.
    #[error("it is damaged at byte {offset}: {reason}")]
    Damaged {
        /// Where.
        offset: u64,
        /// What is wrong there.
        reason: &'static str,
    },
    /// Another program has worked in the directory since.
    #[error("the logs changed after it was written")]
    OtherLogs,
    /// Prometheus has worked in the directory.
    #[error("the data directory has a head cache of Prometheus")]
    OtherCaches,
}

/// Result type of the calls here.
pub type Result<T> = std::result::Result<T, HeadSnapshotError>;

impl DataDir {
    fn head_snapshot_path(&self) -> PathBuf {
        self.path().join(FILE)
    }

    /// Removes the head snapshot; none is fine. To be called before the first write to the logs.
    pub fn remove_head_snapshot(&self) -> std::result::Result<(), DiskError> {
        let (disk, path) = (self.disk(), self.head_snapshot_path());
        match disk.remove_file(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            removed => removed.map_err(Action::Remove.failed(&path))?,
        }
        disk.sync_dir(self.path()).map_err(Action::Sync.failed(self.path()))
    }
}
