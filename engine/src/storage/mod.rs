//! What the engine needs from outside: a log, block files, and (for a query) the head of another
//! instance.
//!
//! These traits mirror the imported WIT interfaces `wal`, `blocks` and `head-source` one to one;
//! the WIT files hold the full contract. No format is known here. [`memory`] implements both
//! storages in memory, for tests and for embedders that want no files.

pub mod memory;

use std::rc::Rc;

/// Why storage could not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StorageError {
    /// There is no such block or file.
    #[error("{what} does not exist")]
    NotFound {
        /// The block or file.
        what: String,
    },
    /// No space is left; nothing of the call took effect.
    #[error("no space left on the device while writing {what}")]
    NoSpace {
        /// The file that was being written.
        what: String,
    },
    /// What would be written was opened for reading only.
    #[error("{what} cannot be written: opened for reading only")]
    ReadOnly {
        /// The log or block.
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

/// Which of the two logs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogKind {
    /// Series, and samples in order: upstream's `wal`.
    #[default]
    InOrder,
    /// Out-of-order samples: upstream's `wbl`. Its records name series of the other log.
    OutOfOrder,
}

/// Records read back from a log, in the order they were appended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WalBatch {
    /// The log they come from.
    pub log: LogKind,
    /// The segment all of these records are in; a checkpoint counts as the segment it ends with.
    pub segment: u32,
    /// The records, whole.
    pub records: Records,
}

/// Records, one directly after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Records {
    /// All their bytes.
    pub bytes: Vec<u8>,
    /// The length of each in bytes. What they claim beyond `bytes` is cut off.
    pub lengths: Vec<u32>,
}

impl Records {
    /// The records in their order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = &self.bytes[..];
        self.lengths.iter().map(move |len| {
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
    /// Appends all records or none, and says in which segment they lie (all in one).
    fn append(&mut self, log: LogKind, records: &[Vec<u8>]) -> StorageResult<u32>;

    /// The segment that the next batch is expected in. A host that ends segments by itself does so
    /// now if it is time, and else takes the batch into this one.
    fn next_segment(&mut self, log: LogKind) -> StorageResult<u32> {
        self.append(log, &[])
    }

    /// The next batch of what earlier runs appended, about `bytes_max` long: all of the in-order
    /// log, then all of the out-of-order one; `None` at the end. Must be read to its end before the
    /// first `append`.
    fn replay(&mut self, bytes_max: u32) -> StorageResult<Option<WalBatch>>;

    /// Ends the segment being written, so that it can be dropped; returns its number.
    fn cut_segment(&mut self, log: LogKind) -> StorageResult<u32>;

    /// Begins a checkpoint that will replace all segments of the in-order log up to
    /// `last_segment`, inclusive.
    fn checkpoint(&mut self, last_segment: u32) -> StorageResult<Box<dyn WalCheckpoint>>;

    /// Drops all segments of the out-of-order log up to `last_segment`, inclusive.
    fn truncate_out_of_order(&mut self, last_segment: u32) -> StorageResult<()>;
}

/// A checkpoint being written. Dropped without `commit` it leaves no trace.
pub trait WalCheckpoint {
    /// Adds records, in replay order.
    fn append(&mut self, records: &[Vec<u8>]) -> StorageResult<()>;

    /// Makes the checkpoint durable, then deletes what it replaces.
    fn commit(self: Box<Self>) -> StorageResult<()>;
}

/// The immutable blocks of one data directory.
pub trait Blocks {
    /// Names (ULIDs) of all committed blocks, ascending.
    fn list(&self) -> StorageResult<Vec<String>>;

    /// Opens a file of a block (`meta.json`, `index`, `chunks/000001`, `tombstones`). The content
    /// stays readable through the handle even after the block was deleted.
    fn open(&self, block: &str, file: &str) -> StorageResult<Rc<dyn BlockFile>>;

    /// Begins a new block under a name of the storage's choice (a fresh ULID).
    fn create(&self, now_ms: i64) -> StorageResult<Box<dyn BlockWriter>>;

    /// Deletes a block; it disappears from the list in one step.
    fn delete(&self, block: &str) -> StorageResult<()>;

    /// Replaces the `tombstones` of a committed block, then its `meta.json`, in which only their
    /// number and whether the log has these deletions change: durably, and each in one step, so
    /// that who opens a file sees the old content or the new. Handles that are open, and hard links
    /// to the files, keep the old. Nothing else in a block ever changes.
    fn replace_tombstones(&self, block: &str, tombstones: &[u8], meta: &[u8]) -> StorageResult<()>;
}

/// Bytes of a file of chunks, and what the storage has checked of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChunkBytes {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Where chunks end that follow one another from the first byte on, and whose checksums match.
    /// What is not listed was not checked.
    pub ends: Vec<u32>,
}

/// One file of a committed block.
pub trait BlockFile {
    /// Length in bytes.
    fn size(&self) -> u64;

    /// Exactly `len` bytes from `offset`; an error if the file ends before.
    fn read_at(&self, offset: u64, len: u32) -> StorageResult<Vec<u8>>;

    /// The same of a file of chunks, of which one begins at `offset`. Storage may check them.
    fn read_chunks(&self, offset: u64, len: u32) -> StorageResult<ChunkBytes> {
        Ok(ChunkBytes { bytes: self.read_at(offset, len)?, ends: Vec::new() })
    }

    /// The latest summary of the file's content, if it is still there.
    fn summary(&self) -> Option<Vec<u8>> {
        None
    }

    /// Keeps a summary of the file's content in memory, as long as the storage likes.
    fn keep_summary(&self, _summary: &[u8]) {}
}

/// A block being written. Dropped without `commit` it leaves no trace.
pub trait BlockWriter {
    /// The new block's ULID.
    fn id(&self) -> &str;

    /// Writes bytes at an offset of a file of the block, which is created by its first write.
    /// Writing past the end is an error: files have no holes.
    fn write_at(&mut self, file: &str, offset: u64, bytes: &[u8]) -> StorageResult<()>;

    /// Makes a file of a committed block a file of this block, too, under a new name: no byte is
    /// written again, and each block keeps it when the other is deleted. Returns whether it did;
    /// storage that cannot says no, and has done nothing.
    fn link_file(&mut self, _block: &str, _file: &str, _new_file: &str) -> StorageResult<bool> {
        Ok(false)
    }

    /// Makes the block durable and, in one step, visible.
    fn commit(self: Box<Self>) -> StorageResult<()>;
}
