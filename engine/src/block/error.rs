//! Why a block cannot be written or read.

use crate::chunk::ChunkError;
use crate::index::{Damage, IndexError};
use crate::storage::StorageError;
use std::rc::Rc;

/// Why a block cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum BlockError {
    /// The storage failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The index cannot be written or read.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// Another file's bytes are wrong.
    #[error(transparent)]
    Damaged(#[from] Damage),
    /// A chunk is whole but cannot be used.
    #[error("chunk at byte {offset} of {file} of block {block}: {source}")]
    Chunk {
        /// The block's ULID.
        block: Rc<str>,
        /// The file inside it.
        file: String,
        /// Where the chunk begins.
        offset: u64,
        /// Why.
        source: ChunkError,
    },
    /// A chunk to be written is not one.
    #[error("a chunk of series {labels} cannot be written: {source}")]
    BadChunk {
        /// The series.
        labels: String,
        /// Why.
        source: ChunkError,
    },
    /// `meta.json` does not say what it must.
    #[error("meta.json of block {block}: {source}")]
    Meta {
        /// The block's ULID.
        block: String,
        /// Line, column and cause.
        source: serde_json::Error,
    },
    /// A file is of a version that is not known here.
    #[error("{file} of block {block} has version {version}; only version 1 is supported")]
    UnsupportedVersion {
        /// The block's ULID.
        block: String,
        /// The file inside it.
        file: String,
        /// The version it has.
        version: u64,
    },
    /// A chunk is longer than the format's bounds here allow.
    #[error("a chunk of series {labels} has {bytes} bytes; at most {bytes_max} are allowed")]
    ChunkTooLong {
        /// The series.
        labels: String,
        /// How long it is.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// More was deleted than a file of tombstones may say.
    #[error(
        "the deletions of block {block} would take {bytes} bytes, {bytes_max} are allowed; nothing \
         was deleted in it: clean tombstones, then delete fewer series at a time"
    )]
    TooManyTombstones {
        /// The block's ULID.
        block: String,
        /// How long its file of tombstones would be.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// The samples written do not lie in the time range that the block was given.
    #[error(
        "the block's samples span {first_ms}..={last_ms} ms, outside of its range {min_time_ms}..{max_time_ms} ms"
    )]
    OutsideRange {
        /// Time of the first sample.
        first_ms: i64,
        /// Time of the last sample.
        last_ms: i64,
        /// Where the block's range begins.
        min_time_ms: i64,
        /// Where it ends, exclusive.
        max_time_ms: i64,
    },
}

impl BlockError {
    /// The failure of the storage, where that is what it is: a file that is not there, or one that
    /// could not be read now.
    pub fn storage(&self) -> Option<&StorageError> {
        match self {
            BlockError::Storage(error) | BlockError::Index(IndexError::Storage(error)) => {
                Some(error)
            }
            _ => None,
        }
    }

    /// Whether a file could not be read, which may go well the next time: it is there.
    pub fn is_unread(&self) -> bool {
        self.storage().is_some_and(|error| !matches!(error, StorageError::NotFound { .. }))
    }
}
