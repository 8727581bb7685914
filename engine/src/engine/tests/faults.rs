//! Storage in memory that fails on request.

use crate::storage::memory::{MemoryBlocks, MemoryWal};
use crate::storage::{
    BlockFile, BlockWriter, Blocks, LogKind, StorageError, StorageResult, Wal, WalBatch,
    WalCheckpoint,
};
use std::cell::Cell;
use std::rc::Rc;

/// A call of storage that fails.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fault {
    /// Number of writing calls before the fault.
    pub after_calls: u32,
    /// Whether space is missing, so that nothing was done.
    pub is_full: bool,
    /// Whether the call takes effect in spite of the error, where possible.
    pub takes_effect: bool,
}

thread_local! {
    static FAULT: Cell<Option<Fault>> = const { Cell::new(None) };
}

impl Fault {
    pub(super) fn set(fault: Option<Fault>) {
        FAULT.set(fault);
    }

    pub(super) fn is_due() -> bool {
        FAULT.get().is_some()
    }

    fn try_whole<T>(call: impl FnOnce() -> StorageResult<T>) -> StorageResult<T> {
        Fault::attempt(false, call)
    }

    /// Does a call that may take effect although it fails.
    fn try_to<T>(call: impl FnOnce() -> StorageResult<T>) -> StorageResult<T> {
        Fault::attempt(true, call)
    }

    fn attempt<T>(
        may_take_effect: bool,
        call: impl FnOnce() -> StorageResult<T>,
    ) -> StorageResult<T> {
        let Some(fault) = FAULT.get() else { return call() };
        let left = fault.after_calls.checked_sub(1);
        FAULT.set(left.map(|after_calls| Fault { after_calls, ..fault }));
        if left.is_some() {
            return call();
        }
        if fault.is_full {
            return Err(StorageError::NoSpace { what: "memory".into() });
        }
        if fault.takes_effect && may_take_effect {
            call()?;
        }
        Err(StorageError::Io { reason: "as it was told".into() })
    }
}

pub(super) struct FailingWal(pub MemoryWal);

struct FailingCheckpoint(Box<dyn WalCheckpoint>);

pub(super) struct FailingBlocks(pub MemoryBlocks);

struct FailingWriter(Box<dyn BlockWriter>);

impl Wal for FailingWal {
    fn append(&mut self, log: LogKind, records: &[Vec<u8>]) -> StorageResult<u32> {
        Fault::try_whole(|| self.0.append(log, records))
    }

    fn replay(&mut self, bytes_max: u32) -> StorageResult<Option<WalBatch>> {
        self.0.replay(bytes_max)
    }

    fn cut_segment(&mut self, log: LogKind) -> StorageResult<u32> {
        Fault::try_to(|| self.0.cut_segment(log))
    }

    fn checkpoint(&mut self, last_segment: u32) -> StorageResult<Box<dyn WalCheckpoint>> {
        let begun = Fault::try_whole(|| self.0.checkpoint(last_segment))?;
        Ok(Box::new(FailingCheckpoint(begun)))
    }

    fn truncate_out_of_order(&mut self, last_segment: u32) -> StorageResult<()> {
        Fault::try_to(|| self.0.truncate_out_of_order(last_segment))
    }
}

impl WalCheckpoint for FailingCheckpoint {
    fn append(&mut self, records: &[Vec<u8>]) -> StorageResult<()> {
        Fault::try_whole(|| self.0.append(records))
    }

    fn commit(self: Box<Self>) -> StorageResult<()> {
        Fault::try_to(|| self.0.commit())
    }
}

impl Blocks for FailingBlocks {
    fn list(&self) -> StorageResult<Vec<String>> {
        self.0.list()
    }

    fn open(&self, block: &str, file: &str) -> StorageResult<Rc<dyn BlockFile>> {
        self.0.open(block, file)
    }

    fn create(&self, now_ms: i64) -> StorageResult<Box<dyn BlockWriter>> {
        let writer = Fault::try_whole(|| self.0.create(now_ms))?;
        Ok(Box::new(FailingWriter(writer)))
    }

    fn delete(&self, block: &str) -> StorageResult<()> {
        Fault::try_to(|| self.0.delete(block))
    }

    fn replace_tombstones(&self, block: &str, tombstones: &[u8], meta: &[u8]) -> StorageResult<()> {
        Fault::try_to(|| self.0.replace_tombstones(block, tombstones, meta))
    }
}

impl BlockWriter for FailingWriter {
    fn id(&self) -> &str {
        self.0.id()
    }

    fn write_at(&mut self, file: &str, offset: u64, bytes: &[u8]) -> StorageResult<()> {
        Fault::try_whole(|| self.0.write_at(file, offset, bytes))
    }

    fn commit(self: Box<Self>) -> StorageResult<()> {
        Fault::try_to(|| self.0.commit())
    }
}
