//! State of one instance on the side of the host, on which the imports work.

use super::memory::{MemoryLimiter, MemoryPool};
use super::{FirstPage, HeadAccess};
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use tidepool_disk::wal::{LogReader, Logs};
use tidepool_disk::{BlockDirs, BlockFile};
use wasmtime_wasi::{ResourceTable, WasiCtx, WasiCtxView, WasiView};

/// Maximum number of open block files with which an instance may wait for its next caller.
const RESTING_FILES_MAX: usize = 128;

/// Access of an instance to the logs.
pub enum InstanceLogs {
    /// No access: the role has no log.
    None,
    /// Full access: both logs are read, then written.
    Owned(Arc<Mutex<Logs>>),
    /// The logs' present records; every write is refused.
    ReadOnly(Box<LogReader>),
    /// The logs look empty, because memory is too short for their records; every write is refused.
    Unread,
    /// Records are dropped: the store ends with its instance.
    Dropped,
}

/// The storage that an instance's imports read and write.
pub struct InstanceStorage {
    pub logs: InstanceLogs,
    pub blocks: BlockDirs,
    /// The head of another instance, for instances without one.
    pub head: Option<Arc<dyn HeadAccess>>,
    /// Pool that limits the instance's memory in addition to the instance's own limit.
    pub memory: Option<Arc<MemoryPool>>,
}

pub struct InstanceState {
    pub(super) storage: InstanceStorage,
    pub(super) limits: MemoryLimiter,
    pub(super) table: ResourceTable,
    /// Open files of chunks, which the host itself reads for streamed answers.
    chunk_files: HashMap<Arc<Path>, BlockFile>,
    /// Every open resource on another instance's head has a clone; the count tells their number.
    pub(super) open_on_head: Arc<()>,
    /// Kind of page that the running call reads first from a cursor on the head, if known.
    pub(super) first_page: Option<FirstPage>,
    wasi: WasiCtx,
}

impl InstanceState {
    pub fn new(storage: InstanceStorage, memory_bytes_max: usize) -> InstanceState {
        // Rust's standard library imports WASI. The instance gets only standard error, for messages
        // of panics.
        let wasi = WasiCtx::builder().inherit_stderr().build();
        let limits = MemoryLimiter::new(memory_bytes_max, storage.memory.as_ref());
        let open_on_head = Arc::default();
        let (table, chunk_files) = (ResourceTable::new(), HashMap::new());
        let first_page = None;
        InstanceState { storage, limits, table, chunk_files, open_on_head, first_page, wasi }
    }

    /// Notes that a file of a block was added to the table.
    pub(super) fn note_opened(&mut self, file: &BlockFile) {
        if file.has_chunks() {
            self.chunk_files.insert(Arc::clone(file.path()), file.clone());
        }
    }

    /// Notes that a file of a block was removed from the table.
    pub(super) fn note_closed(&mut self, file: &BlockFile) {
        // The clone in the map would keep the file's descriptor open.
        self.chunk_files.remove(file.path());
    }

    /// Returns a file of chunks in the table, by `block/name`.
    pub(super) fn chunk_file(&self, name: &str) -> Option<BlockFile> {
        // The name comes from the guest, so only files that the instance has open are looked up.
        let (block, name) = name.split_once('/')?;
        let path = self.storage.blocks.file_path(block, name).ok()?;
        self.chunk_files.get(&*path).cloned()
    }

    /// Returns whether no resource of the host is open, except a few files of blocks.
    pub(super) fn rests(&mut self) -> bool {
        // Open files make the next read faster; other resources belong to the last caller.
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
