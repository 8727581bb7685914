//! Errors of operations on the data directory. Damage in the log is no error: the log's reader
//! skips, counts and logs it.

use std::io;
use std::path::PathBuf;

pub type Result<T> = std::result::Result<T, DiskError>;

#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    #[error(
        "the data directory is in use by another process: {path} is locked; stop that process, or \
         choose another directory"
    )]
    Locked {
        /// Path of the lock file, which is never removed.
        path: PathBuf,
    },
    #[error("could not {action} {path}: {source}{}", advice(source))]
    Io {
        action: Action,
        /// File or directory of the failed operation.
        path: PathBuf,
        source: io::Error,
    },
    /// A batch of records could not be written to the log; no part of the batch was kept.
    #[error(
        "could not write {bytes} bytes at byte {offset} of WAL segment {segment:08} ({path}): \
         {source}; nothing of the batch was kept{}{}",
        if *abandoned { ", and the segment takes no more records" } else { "" },
        advice(source)
    )]
    WalWrite {
        path: PathBuf,
        segment: u32,
        /// Byte at which the batch would have begun.
        offset: u64,
        /// Length of the batch in bytes, including framing.
        bytes: u64,
        /// Whether cutting the file back failed too. The next batch then goes to a new segment.
        abandoned: bool,
        source: io::Error,
    },
    /// Records that are buffered in memory could not be written; they stay buffered.
    #[error(
        "could not write {bytes} bytes of buffered records to WAL segment {segment:08} ({path}): \
         {source}; they stay in memory, and new records are refused until they are written{}",
        advice(source)
    )]
    WalHeld {
        path: PathBuf,
        segment: u32,
        /// Number of buffered bytes.
        bytes: u64,
        source: io::Error,
    },
    /// After a failed sync: records since the last sync may not survive a power cut.
    #[error(
        "could not sync WAL segment {segment:08} ({path}): {source}; records written to it since \
         the last sync may be lost in a power cut; the next batch goes to a new segment; if this \
         repeats, check the disk"
    )]
    WalSync {
        path: PathBuf,
        /// Number of the segment, to which no more records are written.
        segment: u32,
        source: io::Error,
    },
    /// An earlier sync failed, and no later sync can make its records durable.
    #[error(
        "an earlier sync of WAL segment {segment:08} failed, so its last records may be lost in a \
         power cut; if this repeats, check the disk"
    )]
    WalSyncFailedBefore {
        /// Number of the segment whose sync failed.
        segment: u32,
    },
    /// The log was written to before its replay had ended.
    #[error("the WAL must be replayed to its end before it can be written to")]
    WalNotReplayed,
    /// A record is longer than the limit.
    #[error("a WAL record of {bytes} bytes is longer than the {bytes_max} bytes allowed")]
    RecordTooLong {
        bytes: u64,
        /// The limit in bytes, which applies to reading as well.
        bytes_max: u64,
    },
    #[error("could not compress a WAL record of {bytes} bytes: {reason}")]
    Compress {
        bytes: u64,
        /// Message of the compression library, as text.
        reason: String,
    },
    /// The segment size is not a positive multiple of the page size.
    #[error("the WAL segment size of {bytes} bytes is not a positive multiple of {page_bytes}")]
    SegmentSize {
        bytes: u64,
        /// Length of a page in bytes: 32 KiB.
        page_bytes: u64,
    },
    /// The directory contains a segment with the highest possible number.
    #[error("{dir} holds a WAL segment with the highest number possible; remove or rename it")]
    SegmentNumbersExhausted {
        /// Directory of that log.
        dir: PathBuf,
    },
    /// A checkpoint cannot end with the requested segment, for the reasons in the message.
    #[error(
        "a checkpoint cannot end with WAL segment {last_segment:08}: it must end after the last \
         checkpoint ({}) and before the segment being written ({current_segment:08})",
        newest_checkpoint.map_or("none".to_owned(), |number| format!("{number:08}"))
    )]
    CheckpointRange {
        last_segment: u32,
        current_segment: u32,
        /// Last segment that the newest checkpoint covers; `None` without a checkpoint.
        newest_checkpoint: Option<u32>,
    },
    /// A second checkpoint was begun while another checkpoint was being written.
    #[error("a checkpoint is being written already")]
    CheckpointBusy,
    /// A change was requested in a directory that was opened for reading.
    #[error("{path} was opened for reading only")]
    ReadOnly {
        /// The data directory, or a directory of blocks in it.
        path: PathBuf,
    },
    #[error("{path} does not exist")]
    NotFound {
        /// Path of the block, the file or the data directory.
        path: PathBuf,
    },
    /// The name is not the name of a block, which is a ULID.
    #[error("{name:?} is not the name of a block (a ULID)")]
    BlockName {
        /// The name as the caller gave it.
        name: String,
    },
    /// The name is not the name of a file in a block.
    #[error("{name:?} is not a file of a block (meta.json, index, tombstones, chunks/NNNNNN)")]
    BlockFileName {
        /// The name as the caller gave it.
        name: String,
    },
    /// The write would leave a hole in a file.
    #[error("a write at byte {offset} of {path} would leave a hole after its {size_bytes} bytes")]
    Hole {
        path: PathBuf,
        /// Byte at which the write would have begun.
        offset: u64,
        size_bytes: u64,
    },
    /// The read asked for bytes beyond the end of the file.
    #[error("cannot read {len} bytes at byte {offset} of {path}: the file has {size_bytes} bytes")]
    ReadPastEnd {
        path: PathBuf,
        /// Byte at which the read would have begun.
        offset: u64,
        /// Number of bytes to be read.
        len: u64,
        size_bytes: u64,
    },
    /// The file in the new block exists already, or is shared with another block.
    #[error("{path} is there already, or is shared with another block: it cannot be written")]
    LinkedFile {
        /// Path of the file in the new block.
        path: PathBuf,
    },
    /// Without `meta.json` the block would be invisible.
    #[error("block {block} has no meta.json and cannot be committed")]
    BlockWithoutMeta {
        /// ULID of the block being written.
        block: String,
    },
}

/// A file operation, as named in error messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Create,
    Open,
    Read,
    Write,
    List,
    Rename,
    /// Giving a file a second name by a hard link.
    Link,
    Remove,
    Sync,
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
    /// For `map_err`: turns an error of the operating system into a [`DiskError`].
    pub(super) fn failed(self, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> DiskError {
        move |source| DiskError::Io { action: self, path: path.into(), source }
    }
}

impl DiskError {
    /// Returns whether the cause is a full disk or an exhausted quota; the call had no effect.
    pub fn is_no_space(&self) -> bool {
        match self {
            DiskError::Io { source, .. }
            | DiskError::WalWrite { source, .. }
            | DiskError::WalHeld { source, .. } => no_space(source),
            _ => false,
        }
    }

    /// Returns whether only the user can remove the cause: access rights, or wrong arguments.
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

    /// Returns whether the cause is a shortage of open files or memory, which may end by itself.
    pub fn is_shortage(&self) -> bool {
        matches!(self, DiskError::Io { source, .. } if is_shortage(source))
    }

    /// Returns whether the block or file does not exist, or cannot exist under this name.
    pub fn is_not_found(&self) -> bool {
        use DiskError::{BlockFileName, BlockName, NotFound};
        matches!(self, NotFound { .. } | BlockName { .. } | BlockFileName { .. })
    }
}

pub(super) fn is_shortage(error: &io::Error) -> bool {
    use rustix::io::Errno;
    // `io::ErrorKind` has no kinds for the two limits of open files.
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
