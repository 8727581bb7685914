//! What belongs to one instance on the host's side.

use super::memory::{MemoryLimiter, MemoryPool};
use super::{Error, HeadDeletion, HeadOpened, HeadPage, Label, Lookup, Matcher, TimeRange};
use crate::disk::BlockDirs;
use crate::disk::wal::{LogReader, Logs};
use std::sync::{Arc, Mutex};
use wasmtime_wasi::{ResourceTable, WasiCtx, WasiCtxView, WasiView};

/// Another instance's head, as the store offers it to query and compactor instances.
pub trait HeadAccess: Send + Sync {
    /// Opens a cursor, of which the series get external labels, and gives its number.
    fn open(
        &self,
        matcher_sets: Vec<Vec<Matcher>>,
        range: TimeRange,
        external_labels: Vec<Label>,
    ) -> Result<HeadOpened<u64>, Error>;
    /// Opens a list of label names and gives its number.
    fn label_names(&self, lookup: Lookup) -> Result<HeadOpened<u64>, Error>;
    /// Opens a list of label values and gives its number.
    fn label_values(&self, name: String, lookup: Lookup) -> Result<HeadOpened<u64>, Error>;
    /// The next series of a cursor.
    fn next(&self, cursor: u64, bytes_max: u32) -> Result<HeadPage, Error>;
    /// The labels of the next series of a cursor.
    fn labels(&self, cursor: u64, bytes_max: u32, only_in_range: bool) -> Result<HeadPage, Error>;
    /// Keeps series of a cursor's last page of labels.
    fn keep(&self, cursor: u64, positions: Vec<u32>) -> Result<(), Error>;
    /// Lets a cursor begin anew.
    fn rewind(&self, cursor: u64) -> Result<(), Error>;
    /// Deletes samples of the next series of a cursor; durable when it is done.
    fn delete(&self, cursor: u64) -> Result<HeadDeletion, Error>;
    /// The next names or values of a list.
    fn next_texts(&self, texts: u64, bytes_max: u32) -> Result<Vec<String>, Error>;
    /// Opens a scan of exemplars and gives its number.
    fn scan_exemplars(&self, range: TimeRange) -> Result<u64, Error>;
    /// The next exemplars of a scan; nothing at the end.
    fn next_exemplars(&self, scan: u64, bytes_max: u32) -> Result<Option<Vec<u8>>, Error>;
    /// Closes a cursor, a list or a scan; errors have nowhere to go.
    fn close(&self, number: u64);
    /// As `store.plan-cut` of the head's instance.
    fn plan_cut(&self) -> Result<Option<TimeRange>, Error>;
    /// As `store.forget` of the head's instance.
    fn forget(&self, before_ms: i64) -> Result<bool, Error>;
    /// As `store.deletion-mark` of the head's instance.
    fn deletion_mark(&self) -> Result<u64, Error>;
}

/// What an instance sees of the logs.
pub enum InstanceLogs {
    /// Nothing: its role has no log.
    None,
    /// All of them, to be read and then written.
    Owned(Arc<Mutex<Logs>>),
    /// What they hold now; every write is refused.
    ReadOnly(Box<LogReader>),
}

/// What an instance's imports are answered from.
pub struct InstanceStorage {
    /// The logs, for the instance that owns the head.
    pub logs: InstanceLogs,
    /// The blocks.
    pub blocks: BlockDirs,
    /// The head, for instances that own none.
    pub head: Option<Arc<dyn HeadAccess>>,
    /// What the instance's memory is taken from, beside its own limit.
    pub memory: Option<Arc<MemoryPool>>,
}

/// The data of a wasmtime store.
pub struct InstanceState {
    pub(super) storage: InstanceStorage,
    pub(super) limits: MemoryLimiter,
    pub(super) table: ResourceTable,
    /// Cloned by everything that is open on another instance's head.
    pub(super) open_on_head: Arc<()>,
    wasi: WasiCtx,
}

impl InstanceState {
    pub fn new(storage: InstanceStorage, memory_bytes_max: usize) -> InstanceState {
        // Rust's standard library drags WASI in. It gets nothing but a way to say why it panics.
        let wasi = WasiCtx::builder().inherit_stderr().build();
        let limits = MemoryLimiter::new(memory_bytes_max, storage.memory.as_ref());
        let open_on_head = Arc::default();
        InstanceState { storage, limits, table: ResourceTable::new(), open_on_head, wasi }
    }
}

impl WasiView for InstanceState {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}
