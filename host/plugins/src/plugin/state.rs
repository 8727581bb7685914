//! The host's state of one instance, and its grants.

use super::config::PluginSettings;
use super::fault::Fault;
use super::limiter::Limiter;
use super::record::Record;
use super::store_import::JobCursor;
use super::words::Words;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;
use tidepool_query::Queries;
use tidepool_runtime::MemoryPool;
use tokio::sync::Semaphore;
use wasmtime::component::Resource;
use wasmtime_wasi::{FsPerms, ResourceTable, WasiCtx, WasiCtxView, WasiView};

/// The place at which a plugin sees its directory.
const DIRECTORY: &str = "/data";

/// Files, streams and the like that an instance may have open: the process has so many descriptors
/// for everything.
const RESOURCES_MAX: usize = 256;

/// Cursors that a job may have open: each is a read with an instance of its own.
pub const CURSORS_MAX: usize = 4;

/// What there is around an instance.
#[derive(Clone)]
pub struct Around {
    /// For jobs, with their store.
    pub queries: Option<Queries>,
    /// Cursors that a job may have open, beside the reads of others.
    pub cursors: Arc<Semaphore>,
    /// In a trial: what it appends is kept here, too, and what it posts is kept and not sent.
    pub record: Option<Arc<Record>>,
}

impl Around {
    /// Queries of a store and, in a trial, what keeps a record.
    pub fn new(queries: Option<Queries>, record: Option<Arc<Record>>) -> Around {
        Around { queries, cursors: Arc::new(Semaphore::new(CURSORS_MAX)), record }
    }
}

/// The data of a wasmtime store.
pub struct PluginState {
    pub(super) limiter: Limiter,
    pub(super) table: ResourceTable,
    pub(super) words: Words,
    /// Beginnings of URLs that it may post to.
    pub(super) webhooks: Vec<String>,
    pub(super) around: Around,
    /// Cursors that it opened and did not drop.
    pub(super) open_cursors: BTreeSet<u32>,
    /// Whether a call has left some of them open.
    pub(super) has_leaked: bool,
    /// Maximum size of one batch in columns.
    pub(super) columns_bytes_max: usize,
    /// When the running call ends.
    pub(super) deadline: Instant,
    wasi: WasiCtx,
}

impl PluginState {
    /// Of a plugin.
    pub fn new(
        settings: &PluginSettings,
        pool: &Arc<MemoryPool>,
        around: Around,
    ) -> Result<PluginState, Fault> {
        let words = Words::of(&settings.name);
        let mut wasi = WasiCtx::builder();
        // Nothing of the network: its addresses are all refused unless they are granted.
        wasi.stdout(words.clone()).stderr(words.clone()).allow_tcp(false).allow_udp(false);
        let grants = &settings.grants;
        if let Some(directory) = &grants.directory {
            let permissions = match grants.is_writable {
                true => FsPerms::ReadWrite,
                false => FsPerms::ReadOnly,
            };
            wasi.preopened_dir(directory, DIRECTORY, permissions).map_err(|error| {
                let directory = directory.display();
                Fault::Refused(format!("its directory {directory} could not be opened: {error:#}"))
            })?;
        }
        let memory_bytes_max = settings.limits.memory_bytes_max;
        let mut table = ResourceTable::new();
        table.set_max_capacity(RESOURCES_MAX);
        Ok(PluginState {
            limiter: Limiter::new(memory_bytes_max, pool),
            table,
            words,
            webhooks: grants.webhooks.clone(),
            around,
            open_cursors: BTreeSet::new(),
            has_leaked: false,
            columns_bytes_max: columns_bytes_max(settings),
            deadline: Instant::now(),
            wasi: wasi.build(),
        })
    }
}

impl PluginState {
    /// Ends cursors that a call has left open: what a plugin leaks must not keep readers waiting,
    /// nor the head from giving memory back.
    pub fn end_cursors(&mut self) {
        let open = std::mem::take(&mut self.open_cursors);
        for cursor in &open {
            // It was made, and not dropped since.
            let _ = self.table.delete(Resource::<JobCursor>::new_own(*cursor));
        }
        self.has_leaked |= !open.is_empty();
    }
}

impl WasiView for PluginState {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

/// Maximum size of a batch, so that an instance has room for it and for its own work.
pub fn columns_bytes_max(settings: &PluginSettings) -> usize {
    settings.limits.memory_bytes_max / 2
}
