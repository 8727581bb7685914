//! Errors of reading and writing blocks.

use crate::chunk::ChunkError;
use crate::index::{Damage, IndexError};
use crate::storage::StorageError;
use std::rc::Rc;

/// Error of reading or writing a block.
#[derive(Debug, thiserror::Error)]
pub enum BlockError {
    /// The storage failed, or has no such file.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The index cannot be written or read.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// Damage in a file other than the index.
    #[error(transparent)]
    Damaged(#[from] Damage),
    /// A chunk whose checksum matches but that does not decode.
    #[error("chunk at byte {offset} of {file} of block {block}: {source}")]
    Chunk {
        /// ULID of the block with the chunk.
        block: Rc<str>,
        /// Name of the file inside the block.
        file: String,
        /// Offset of the chunk in the file, in bytes.
        offset: u64,
        /// The error of the chunk's decoder.
        source: ChunkError,
    },
    /// Bytes to be written are not a valid chunk.
    #[error("a chunk of series {labels} cannot be written: {source}")]
    BadChunk {
        /// Labels of the series, formatted as text.
        labels: String,
        /// The error of the chunk's decoder.
        source: ChunkError,
    },
    /// `meta.json` does not decode, or lacks a key.
    #[error("meta.json of block {block}: {source}")]
    Meta {
        /// ULID of the block, for messages.
        block: String,
        /// Line, column and cause of the failure.
        source: serde_json::Error,
    },
    /// A file has a version that is not supported.
    #[error("{file} of block {block} has version {version}; only version 1 is supported")]
    UnsupportedVersion {
        /// ULID of the block, for messages.
        block: String,
        /// Name of the file inside the block.
        file: String,
        /// Version number in the file's header.
        version: u64,
    },
    /// A chunk exceeds the length limit of this implementation.
    #[error("a chunk of series {labels} has {bytes} bytes; at most {bytes_max} are allowed")]
    ChunkTooLong {
        /// Labels of the series, formatted as text.
        labels: String,
        /// Length of the chunk's data in bytes.
        bytes: usize,
        /// Largest allowed length in bytes.
        bytes_max: usize,
    },
    /// The tombstones of a block would exceed the size limit of their file.
    #[error(
        "the deletions of block {block} would take {bytes} bytes, {bytes_max} are allowed; nothing \
         was deleted in it: clean tombstones, then delete fewer series at a time"
    )]
    TooManyTombstones {
        /// ULID of the block, for messages.
        block: String,
        /// Size that the tombstones file would have.
        bytes: usize,
        /// Largest allowed size in bytes.
        bytes_max: usize,
    },
    /// Samples lie outside the time range that the block was given.
    #[error(
        "the block's samples span {first_ms}..={last_ms} ms, outside of its range {min_time_ms}..{max_time_ms} ms"
    )]
    OutsideRange {
        /// Time of the first sample.
        first_ms: i64,
        /// Time of the last sample.
        last_ms: i64,
        /// Start of the block's range, inclusive.
        min_time_ms: i64,
        /// End of the block's range, exclusive.
        max_time_ms: i64,
    },
}

impl BlockError {
    /// Returns the storage failure that is the cause, if any: a file is missing or unreadable.
    pub fn storage(&self) -> Option<&StorageError> {
        match self {
            BlockError::Storage(error) | BlockError::Index(IndexError::Storage(error)) => {
                Some(error)
            }
            _ => None,
        }
    }

    /// Returns whether a file exists but could not be read, which may succeed later.
    pub fn is_unread(&self) -> bool {
        self.storage().is_some_and(|error| !matches!(error, StorageError::NotFound { .. }))
    }
}
