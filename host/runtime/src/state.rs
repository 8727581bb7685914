//! The host's state of one instance.

use super::memory::{MemoryLimiter, MemoryPool};
use super::{FirstPage, HeadAccess};
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use tidepool_disk::wal::{LogReader, Logs};
use tidepool_disk::{BlockDirs, BlockFile};
use wasmtime_wasi::{ResourceTable, WasiCtx, WasiCtxView, WasiView};

/// Most files of blocks that an instance keeps open while it rests.
const RESTING_FILES_MAX: usize = 128;

/// What an instance sees of the logs.
pub enum InstanceLogs {
    /// Nothing: its role has no log.
    None,
    /// All of them, to be read and then written.
    Owned(Arc<Mutex<Logs>>),
    /// What they hold now; every write is refused.
    ReadOnly(Box<LogReader>),
    /// Nothing of what they hold, because there is too little memory for it; every write is
    /// refused.
    Unread,
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
    /// The files of chunks in the table, which the host reads itself for streamed answers.
    chunk_files: HashMap<Arc<Path>, BlockFile>,
    /// Cloned by everything that is open on another instance's head.
    pub(super) open_on_head: Arc<()>,
    /// What the running call will ask first of a cursor on the head, as far as that is known.
    pub(super) first_page: Option<FirstPage>,
    wasi: WasiCtx,
}

impl InstanceState {
    pub fn new(storage: InstanceStorage, memory_bytes_max: usize) -> InstanceState {
        // Rust's standard library drags WASI in. It gets nothing but a way to say why it panics.
        let wasi = WasiCtx::builder().inherit_stderr().build();
        let limits = MemoryLimiter::new(memory_bytes_max, storage.memory.as_ref());
        let open_on_head = Arc::default();
        let (table, chunk_files) = (ResourceTable::new(), HashMap::new());
        let first_page = None;
        InstanceState { storage, limits, table, chunk_files, open_on_head, first_page, wasi }
    }

    /// Notes a file of a block that is put into the table.
    pub(super) fn note_opened(&mut self, file: &BlockFile) {
        if file.has_chunks() {
            self.chunk_files.insert(Arc::clone(file.path()), file.clone());
        }
    }

    /// Notes that it is not in the table any more.
    pub(super) fn note_closed(&mut self, file: &BlockFile) {
        self.chunk_files.remove(file.path());
    }

    /// A file of chunks that is in the table, by the name of its block and its own.
    pub(super) fn chunk_file(&self, name: &str) -> Option<BlockFile> {
        let (block, name) = name.split_once('/')?;
        let path = self.storage.blocks.file_path(block, name).ok()?;
        self.chunk_files.get(&*path).cloned()
    }

    /// Whether nothing is open that the host gives, but for a few files of blocks.
    pub(super) fn rests(&mut self) -> bool {
        let (mut files, mut others) = (0, 0);
        for entry in self.table.iter_mut() {
            *if entry.is::<BlockFile>() { &mut files } else { &mut others } += 1;
        }
        others == 0 && files <= RESTING_FILES_MAX && !self.reads_head()
    }
}

impl WasiView for InstanceState {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}
