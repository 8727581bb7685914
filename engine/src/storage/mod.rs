//! Storage outside of the engine: a log, block files, and another instance's head for a query.
//!
//! These traits mirror the imported WIT interfaces `wal`, `blocks` and `head-source`; the WIT files
//! have the full contract. The traits know no file format. [`memory`] implements log and blocks.

pub mod memory;

use std::rc::Rc;

/// Reasons why a call of the storage failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StorageError {
    /// There is no such block or file.
    #[error("{what} does not exist")]
    NotFound {
        /// Name of the block or file.
        what: String,
    },
    /// No space is left; nothing of the call took effect.
    #[error("no space left on the device while writing {what}")]
    NoSpace {
        /// Name of the file that was being written.
        what: String,
    },
    /// The log or block was opened for reading only.
    #[error("{what} cannot be written: opened for reading only")]
    ReadOnly {
        /// Name of the log or block.
        what: String,
    },
    /// The device or the host failed.
    #[error("input/output error: {reason}")]
    Io {
        /// The host's message: file, offset and cause.
        reason: String,
    },
}

/// Result type of every storage call.
pub type StorageResult<T> = Result<T, StorageError>;

/// The two logs of a data directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogKind {
    /// Series, and samples in order: upstream's `wal`.
    #[default]
    InOrder,
    /// Out-of-order samples: upstream's `wbl`. Its records refer to series of the other log.
    OutOfOrder,
}

/// Records read back from a log, in the order they were appended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WalBatch {
    /// Log that the records are from.
    pub log: LogKind,
    /// Segment that has all these records; for a checkpoint, the last segment that it replaces.
    pub segment: u32,
    /// Complete records in the order of the log.
    pub records: Records,
}

/// Records, one directly after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Records {
    /// Bytes of all records, without separators.
    pub bytes: Vec<u8>,
    /// Length of each record in bytes; lengths beyond `bytes` are cut.
    pub lengths: Vec<u32>,
}

impl Records {
    /// Iterates over the records in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = &self.bytes[..];
        self.lengths.iter().map(move |len| {
            // Lengths come from the host, so they may exceed the bytes.
            let (record, after) = rest.split_at(rest.len().min(*len as usize));
            rest = after;
            record
        })
    }
}

impl<R: AsRef<[u8]>> FromIterator<R> for Records {
    fn from_iter<I: IntoIterator<Item = R>>(records: I) -> Records {
        let mut all = Records::default();
        for record in records {
            let record = record.as_ref();
            all.bytes.extend_from_slice(record);
            all.lengths.push(record.len() as u32);
        }
        all
    }
}

/// Two append-only logs of records, each split into numbered segments.
pub trait Wal {
    /// Appends all records or none, and returns the segment that has them all.
    fn append(&mut self, log: LogKind, records: &[Vec<u8>]) -> StorageResult<u32>;

    /// Returns the segment that the next batch is expected in. A host that ends segments by itself
    /// ends one now, if that is due, so that the batch goes into the returned segment.
    fn next_segment(&mut self, log: LogKind) -> StorageResult<u32> {
        self.append(log, &[])
    }

    /// Returns the next batch of earlier runs, about `bytes_max` long: first all of the in-order
    /// log, then all of the out-of-order log; `None` at the end. The end must be reached before the
    /// first `append`.
    fn replay(&mut self, bytes_max: u32) -> StorageResult<Option<WalBatch>>;

    /// Ends the segment being written, so that it can be truncated; returns its number.
    fn cut_segment(&mut self, log: LogKind) -> StorageResult<u32>;

    /// Begins a checkpoint that will replace the in-order log up to `last_segment`, inclusive.
    fn checkpoint(&mut self, last_segment: u32) -> StorageResult<Box<dyn WalCheckpoint>>;

    /// Drops all segments of the out-of-order log up to `last_segment`, inclusive.
    fn truncate_out_of_order(&mut self, last_segment: u32) -> StorageResult<()>;
}

/// A checkpoint being written. Dropped without `commit` it leaves no trace.
pub trait WalCheckpoint {
    /// Adds records, in replay order.
    fn append(&mut self, records: &[Vec<u8>]) -> StorageResult<()>;

    /// Makes the checkpoint durable, then deletes the segments that it replaces.
    fn commit(self: Box<Self>) -> StorageResult<()>;
}

/// The immutable blocks of one data directory.
pub trait Blocks {
    /// Returns the names (ULIDs) of all committed blocks, ascending.
    fn list(&self) -> StorageResult<Vec<String>>;

    /// Opens a file of a block (`meta.json`, `index`, `chunks/000001`, `tombstones`). The handle
    /// stays readable even after the block was deleted.
    fn open(&self, block: &str, file: &str) -> StorageResult<Rc<dyn BlockFile>>;

    /// Begins a new block under a name of the storage's choice (a fresh ULID).
    fn create(&self, now_ms: i64) -> StorageResult<Box<dyn BlockWriter>>;

    /// Deletes a block; it disappears from the list in one step.
    fn delete(&self, block: &str) -> StorageResult<()>;

    /// Replaces the `tombstones` of a committed block, then its `meta.json`. In `meta.json` only
    /// the number of tombstones changes, and whether the log has their deletions. Each step is
    /// durable and atomic: an opened file has the old content or the new. Open handles and hard
    /// links keep the old content. Nothing else in a block ever changes.
    fn replace_tombstones(&self, block: &str, tombstones: &[u8], meta: &[u8]) -> StorageResult<()>;
}

/// Bytes of a file of chunks, and the chunks that the storage has checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChunkBytes {
    /// Bytes as the file has them.
    pub bytes: Vec<u8>,
    /// Ends of consecutive intact chunks from the first byte on; later chunks were not checked.
    pub ends: Vec<u32>,
}

/// One file of a committed block.
pub trait BlockFile {
    /// Length of the file in bytes.
    fn size(&self) -> u64;

    /// Reads exactly `len` bytes from `offset`; an error if the file is too short.
    fn read_at(&self, offset: u64, len: u32) -> StorageResult<Vec<u8>>;

    /// Reads from a file of chunks; a chunk must begin at `offset`. The storage may verify chunks.
    fn read_chunks(&self, offset: u64, len: u32) -> StorageResult<ChunkBytes> {
        Ok(ChunkBytes { bytes: self.read_at(offset, len)?, ends: Vec::new() })
    }

    /// Returns the latest summary of the file's content, if the storage still has it.
    fn summary(&self) -> Option<Vec<u8>> {
        None
    }

    /// Keeps a summary of the file's content in memory, as long as the storage likes.
    fn keep_summary(&self, _summary: &[u8]) {}
}

/// A block being written. Dropped without `commit` it leaves no trace.
pub trait BlockWriter {
    /// Returns the ULID of the new block.
    fn id(&self) -> &str;

    /// Writes at an offset of a file, which the first write creates. Leaving a hole is an error.
    fn write_at(&mut self, file: &str, offset: u64, bytes: &[u8]) -> StorageResult<()>;

    /// Links a file of a committed block into this one under a new name, without a copy; either
    /// block may be deleted later. Returns false, and does nothing, if the storage cannot link.
    fn link_file(&mut self, _block: &str, _file: &str, _new_file: &str) -> StorageResult<bool> {
        Ok(false)
    }

    /// Makes the block durable and, in one step, visible.
    fn commit(self: Box<Self>) -> StorageResult<()>;
}
