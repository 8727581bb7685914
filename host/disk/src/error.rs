//! Why something on disk could not be done. Damage found while reading the log is no error: it is
//! skipped, counted and logged by the reader.

use std::io;
use std::path::PathBuf;

/// Result type of the calls of this crate.
pub type Result<T> = std::result::Result<T, DiskError>;

/// Everything that can go wrong in the data directory.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    /// Another process works in the data directory.
    #[error(
        "the data directory is in use by another process: {path} is locked; stop that process, or \
         choose another directory"
    )]
    Locked {
        /// The lock file.
        path: PathBuf,
    },
    /// A file operation failed.
    #[error("could not {action} {path}: {source}{}", advice(source))]
    Io {
        /// The operation.
        action: Action,
        /// The file or directory.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A batch of records could not be written to the log; nothing of it was kept.
    #[error(
        "could not write {bytes} bytes at byte {offset} of WAL segment {segment:08} ({path}): \
         {source}; nothing of the batch was kept{}{}",
        if *abandoned { ", and the segment takes no more records" } else { "" },
        advice(source)
    )]
    WalWrite {
        /// The segment's file.
        path: PathBuf,
        /// The segment's number.
        segment: u32,
        /// Where the batch would have begun.
        offset: u64,
        /// The length of the batch as framed.
        bytes: u64,
        /// Whether even cutting the file back failed, so that the next batch goes to a new segment.
        abandoned: bool,
        /// The error of the operating system.
        source: io::Error,
    },
    /// Records that were gathered in memory could not be written; they are still there.
    #[error(
        "could not write {bytes} bytes of buffered records to WAL segment {segment:08} ({path}): \
         {source}; they stay in memory, and new records are refused until they are written{}",
        advice(source)
    )]
    WalHeld {
        /// The segment's file.
        path: PathBuf,
        /// The segment's number.
        segment: u32,
        /// How many bytes wait.
        bytes: u64,
        /// The error of the operating system.
        source: io::Error,
    },
    /// What was written to a segment since its last sync may not survive a power cut.
    #[error(
        "could not sync WAL segment {segment:08} ({path}): {source}; records written to it since \
         the last sync may be lost in a power cut; the next batch goes to a new segment; if this \
         repeats, check the disk"
    )]
    WalSync {
        /// The segment's file.
        path: PathBuf,
        /// The segment's number.
        segment: u32,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A sync failed before, and syncing again could not make up for it.
    #[error(
        "an earlier sync of WAL segment {segment:08} failed, so its last records may be lost in a \
         power cut; if this repeats, check the disk"
    )]
    WalSyncFailedBefore {
        /// The segment's number.
        segment: u32,
    },
    /// The log was written to before it was read to its end.
    #[error("the WAL must be replayed to its end before it can be written to")]
    WalNotReplayed,
    /// A record is too long to be stored.
    #[error("a WAL record of {bytes} bytes is longer than the {bytes_max} bytes allowed")]
    RecordTooLong {
        /// The record's length.
        bytes: u64,
        /// The limit.
        bytes_max: u64,
    },
    /// The compressor refused a record.
    #[error("could not compress a WAL record of {bytes} bytes: {reason}")]
    Compress {
        /// The record's length.
        bytes: u64,
        /// The error of the compressor.
        reason: String,
    },
    /// The segment size is not a positive multiple of the page size.
    #[error("the WAL segment size of {bytes} bytes is not a positive multiple of {page_bytes}")]
    SegmentSize {
        /// The size asked for.
        bytes: u64,
        /// The page size.
        page_bytes: u64,
    },
    /// Segment numbers are used up.
    #[error("{dir} holds a WAL segment with the highest number possible; remove or rename it")]
    SegmentNumbersExhausted {
        /// The log's directory.
        dir: PathBuf,
    },
    /// A checkpoint cannot end with this segment.
    #[error(
        "a checkpoint cannot end with WAL segment {last_segment:08}: it must end after the last \
         checkpoint ({}) and before the segment being written ({current_segment:08})",
        newest_checkpoint.map_or("none".to_owned(), |number| format!("{number:08}"))
    )]
    CheckpointRange {
        /// The last segment to be covered.
        last_segment: u32,
        /// The segment being written.
        current_segment: u32,
        /// The newest checkpoint's number.
        newest_checkpoint: Option<u32>,
    },
    /// A second checkpoint was begun beside the first.
    #[error("a checkpoint is being written already")]
    CheckpointBusy,
    /// A change was asked for in a directory that was opened to be looked at.
    #[error("{path} was opened for reading only")]
    ReadOnly {
        /// The data directory.
        path: PathBuf,
    },
    /// There is no such block or file.
    #[error("{path} does not exist")]
    NotFound {
        /// The block or file.
        path: PathBuf,
    },
    /// A name that no block can have.
    #[error("{name:?} is not the name of a block (a ULID)")]
    BlockName {
        /// The name given.
        name: String,
    },
    /// A name that no file of a block can have.
    #[error("{name:?} is not a file of a block (meta.json, index, tombstones, chunks/NNNNNN)")]
    BlockFileName {
        /// The name given.
        name: String,
    },
    /// A write would have left a hole in a file.
    #[error("a write at byte {offset} of {path} would leave a hole after its {size_bytes} bytes")]
    Hole {
        /// The file.
        path: PathBuf,
        /// Where the write would have begun.
        offset: u64,
        /// How long the file is.
        size_bytes: u64,
    },
    /// A read asked for more than the file holds.
    #[error("cannot read {len} bytes at byte {offset} of {path}: the file has {size_bytes} bytes")]
    ReadPastEnd {
        /// The file.
        path: PathBuf,
        /// Where the read would have begun.
        offset: u64,
        /// How many bytes it asked for.
        len: u64,
        /// How long the file is.
        size_bytes: u64,
    },
    /// A file of a block that is being written was to be a link, or was one.
    #[error("{path} is there already, or is shared with another block: it cannot be written")]
    LinkedFile {
        /// The file.
        path: PathBuf,
    },
    /// A block without `meta.json` would be invisible.
    #[error("block {block} has no meta.json and cannot be committed")]
    BlockWithoutMeta {
        /// The block.
        block: String,
    },
}

/// A file operation, for errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Creating a file or directory.
    Create,
    /// Opening a file.
    Open,
    /// Reading.
    Read,
    /// Writing.
    Write,
    /// Listing a directory.
    List,
    /// Renaming.
    Rename,
    /// Giving a file a second name.
    Link,
    /// Removing.
    Remove,
    /// Syncing a file or directory.
    Sync,
    /// Locking.
    Lock,
}

impl std::fmt::Display for Action {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Action::Create => "create",
            Action::Open => "open",
            Action::Read => "read",
            Action::Write => "write",
            Action::List => "list",
            Action::Rename => "rename",
            Action::Link => "hard link",
            Action::Remove => "remove",
            Action::Sync => "sync",
            Action::Lock => "lock",
        })
    }
}

impl Action {
    /// Turns an operating system's error into this room's, for use with `map_err`.
    pub(super) fn failed(self, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> DiskError {
        move |source| DiskError::Io { action: self, path: path.into(), source }
    }
}

impl DiskError {
    /// Whether the cause is a full disk or an exhausted quota; nothing of the call took effect.
    pub fn is_no_space(&self) -> bool {
        match self {
            DiskError::Io { source, .. }
            | DiskError::WalWrite { source, .. }
            | DiskError::WalHeld { source, .. } => no_space(source),
            _ => false,
        }
    }

    /// Whether only a person can cure this: rights, and what was asked for.
    pub fn is_for_a_person(&self) -> bool {
        use io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
        match self {
            DiskError::Io { source, .. } => {
                matches!(source.kind(), PermissionDenied | ReadOnlyFilesystem)
            }
            DiskError::Locked { .. } | DiskError::SegmentSize { .. } => true,
            _ => false,
        }
    }

    /// Whether the process or the system lacks something that it may have again later.
    pub fn is_shortage(&self) -> bool {
        matches!(self, DiskError::Io { source, .. } if is_shortage(source))
    }

    /// Whether the block or file asked for does not exist, or cannot exist under this name.
    pub fn is_not_found(&self) -> bool {
        use DiskError::{BlockFileName, BlockName, NotFound};
        matches!(self, NotFound { .. } | BlockName { .. } | BlockFileName { .. })
    }
}

pub(super) fn is_shortage(error: &io::Error) -> bool {
    use rustix::io::Errno;
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE | Errno::NOMEM))
}

fn no_space(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

fn advice(error: &io::Error) -> &'static str {
    use io::ErrorKind::*;
    match error.kind() {
        StorageFull | QuotaExceeded => "; free space on the device, or shorten the retention",
        PermissionDenied => {
            "; check the owner of the data directory, or choose another with --data-dir"
        }
        ReadOnlyFilesystem => {
            "; the file system is mounted read-only, which may mean it is failing"
        }
        _ => "",
    }
}
