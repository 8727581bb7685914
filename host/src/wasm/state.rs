//! The host's state of one instance.

use super::HeadAccess;
use super::memory::{MemoryLimiter, MemoryPool};
use crate::disk::BlockDirs;
use crate::disk::wal::{LogReader, Logs};
use std::sync::{Arc, Mutex};
use wasmtime_wasi::{ResourceTable, WasiCtx, WasiCtxView, WasiView};

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
        let table = ResourceTable::new();
        InstanceState { storage, limits, table, open_on_head, wasi }
    }
}

impl WasiView for InstanceState {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}
