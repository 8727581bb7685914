//! Host-side state of one instance, and what it is granted.

use super::config::PluginSettings;
use super::fault::Fault;
use super::limiter::Limiter;
use super::output::PluginOutput;
use super::record::Record;
use super::store_import::JobCursor;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;
use tidepool_query::Queries;
use tidepool_runtime::MemoryPool;
use tokio::sync::Semaphore;
use wasmtime::component::Resource;
use wasmtime_wasi::{FsPerms, ResourceTable, WasiCtx, WasiCtxView, WasiView};

/// Path at which a plugin sees its granted directory.
const DIRECTORY: &str = "/data";

/// Maximum number of files, streams and other resources of an instance.
const RESOURCES_MAX: usize = 256;

/// Maximum number of open cursors of a job. Each is a read with its own engine instance.
pub const CURSORS_MAX: usize = 4;

/// Resources outside of the sandbox that an instance may use: store, record and permits.
#[derive(Clone)]
pub struct Around {
    /// Queries of the store, and thereby the store. `None` except for jobs.
    pub queries: Option<Queries>,
    /// Permits for a job's cursors, so that they do not use the permits of other reads.
    pub cursors: Arc<Semaphore>,
    /// Record of a trial run: copies of appends, and posts, which are not sent.
    pub record: Option<Arc<Record>>,
}

impl Around {
    pub fn new(queries: Option<Queries>, record: Option<Arc<Record>>) -> Around {
        Around { queries, cursors: Arc::new(Semaphore::new(CURSORS_MAX)), record }
    }
}

/// The data of an instance's wasmtime store.
pub struct PluginState {
    pub(super) limiter: Limiter,
    pub(super) table: ResourceTable,
    pub(super) words: PluginOutput,
    /// Prefixes of URLs that the plugin may post to.
    pub(super) webhooks: Vec<String>,
    pub(super) around: Around,
    /// Cursors that were opened and not closed yet.
    pub(super) open_cursors: BTreeSet<u32>,
    /// Whether a call has ever left cursors open.
    pub(super) has_leaked: bool,
    /// Maximum size of one batch in columns, in bytes.
    pub(super) columns_bytes_max: usize,
    /// Time at which the running call must end.
    pub(super) deadline: Instant,
    wasi: WasiCtx,
}

impl PluginState {
    /// Creates the state, and opens the granted directory. Fails if it cannot be opened.
    pub fn new(
        settings: &PluginSettings,
        pool: &Arc<MemoryPool>,
        around: Around,
    ) -> Result<PluginState, Fault> {
        let words = PluginOutput::of(&settings.name);
        let mut wasi = WasiCtx::builder();
        // No network access: posts to webhooks are sent by the host.
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
    /// Closes cursors that a call has left open, since a leaked cursor would occupy a reader and
    /// keep the head from freeing memory.
    pub fn end_cursors(&mut self) {
        let open = std::mem::take(&mut self.open_cursors);
        for cursor in &open {
            // Cannot fail: the cursor is in the table until it is dropped.
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

/// Returns the maximum size of a batch: half of the memory, the rest is for the plugin's work.
pub fn columns_bytes_max(settings: &PluginSettings) -> usize {
    settings.limits.memory_bytes_max / 2
}
