//! Entry point of all plugins: passes requests to them.
//!
//! ```text
//!  directory + configuration ── watch ──▶ load what changed ──▶ the set
//!                                                                │ swapped as a whole
//!  write ──▶ transforms ──▶ store ──▶ observers        push/NAME ──▶ decoder
//! ```
//!
//! A request uses the set of plugins at its arrival until it ends; so a plugin that is replaced
//! meanwhile still completes its calls. If a file cannot be loaded, the version loaded before
//! remains in use.

use super::config::{PluginsConfig, World, is_reserved};
use super::figures::PluginFigures;
use super::loading::Loader;
use super::observers::Stored;
use super::pool::Plugin;
use super::set::{Entry, Set};
use super::transforms::{Request, Transformed};
use super::watch::{Event, LiveSet, Watcher};
use std::sync::mpsc::Sender;
use std::sync::{Arc, PoisonError, RwLock};
use tidepool_lifecycle::processors::processors;
use tidepool_query::Queries;
use tidepool_runtime::{MemoryPool, RemoteWriteVersion};
use tidepool_store::{Body, Store, StoreError};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

#[derive(Clone)]
pub struct Plugins {
    shared: Arc<Shared>,
}

struct Shared {
    loader: Arc<Loader>,
    set: Arc<LiveSet>,
    events: Sender<Event>,
    /// Permits for transforming or decoding a request.
    turns: Arc<Semaphore>,
}

pub struct PluginReport {
    pub name: String,
    pub world: World,
    pub figures: Arc<PluginFigures>,
    pub is_loaded: bool,
    /// Whether the plugin is disabled after faults.
    pub is_disabled: bool,
}

impl Plugins {
    /// Lists all plugins, loads each on its own thread, and then watches their files. Requests that
    /// need a plugin are refused until it is loaded.
    pub fn open(
        config: PluginsConfig,
        queries: &Queries,
        handle: Handle,
    ) -> Result<Plugins, String> {
        let loader = Loader::new(&config, queries, handle).map_err(|error| format!("{error:#}"))?;
        let loader = Arc::new(loader);
        let watcher = Watcher::new(config, Arc::clone(&loader));
        let events = watcher.sender();
        let set = Arc::new(RwLock::new(Arc::new(watcher.first_set())));
        // Weak, so that the thread ends when the last handle is dropped.
        let live = Arc::downgrade(&set);
        let thread = std::thread::Builder::new().name("plugins".into());
        let watching = thread.spawn(move || watcher.run(&live));
        watching.map_err(|error| format!("could not start a thread: {error}"))?;
        // Calls compute, so more concurrent calls than processors would only slow each other.
        let turns = Arc::new(Semaphore::new(processors().max(2)));
        Ok(Plugins { shared: Arc::new(Shared { loader, set, events, turns }) })
    }

    /// Applies another configuration at the next look at the files, and retries all failed loads.
    /// The directory and the memory limit are not changed.
    pub fn reload(&self, config: &PluginsConfig) {
        // The receiving thread runs as long as this value exists.
        let _ = self.shared.events.send(Event::Reload(config.clone()));
    }

    /// Applies the transforms to a request, if there are any.
    pub async fn transform(
        &self,
        version: RemoteWriteVersion,
        body: Body,
    ) -> Result<Transformed, StoreError> {
        let set = self.shared.set();
        let request = Request { version, body };
        // Requests that no transform will see stay on the network runtime and are not decoded.
        if set.transforms.pass_by(&request) {
            return Ok(Transformed::untouched(request));
        }
        self.blocking(async move || set.transforms.apply(request).await).await?
    }

    pub fn store(&self) -> &Store {
        self.shared.loader.queries.store()
    }

    /// Returns whether a transform or observer sees writes, or will see them once it is loaded.
    pub fn watch_writes(&self) -> bool {
        let set = self.shared.set();
        !set.transforms.chain.is_empty() || set.observers().next().is_some()
    }

    pub fn has_observers(&self) -> bool {
        self.shared.set().observers().next().is_some()
    }

    /// Queues a stored batch for all observers.
    pub fn observe(&self, batch: &Stored) {
        for observer in self.shared.set().observers() {
            observer.show(batch.clone());
        }
    }

    pub fn decoder(&self, name: &str) -> Option<Arc<Plugin>> {
        let set = self.shared.set();
        let plugin = set.plugin(name)?;
        (plugin.world == World::Decoder).then(|| Arc::clone(plugin))
    }

    /// Returns the name of the decoder that is configured for a URL path.
    pub fn at_path(&self, path: &str) -> Option<String> {
        // Checked first: most requests have reserved paths, which no decoder may have.
        if is_reserved(path) {
            return None;
        }
        let set = self.shared.set();
        let has_it = |entry: &&Entry| entry.wanted.settings.paths.iter().any(|own| own == path);
        set.entries.values().find(has_it).map(|entry| entry.wanted.settings.name.clone())
    }

    /// Returns why a decoder is missing, if a plugin of this name may turn out to be a decoder.
    pub fn lacks_decoder(&self, name: &str) -> Option<&'static str> {
        let set = self.shared.set();
        let entry = set.entries.get(name)?;
        let is_lacking = entry.loaded.is_none() && entry.may_be(World::Decoder);
        is_lacking.then_some(match entry.is_undecided() {
            true => "it is being loaded",
            false => "it could not be loaded",
        })
    }

    pub fn decoders(&self) -> Vec<String> {
        let set = self.shared.set();
        let is_decoder = |plugin: &&Arc<Plugin>| plugin.world == World::Decoder;
        set.loaded().filter(is_decoder).map(|plugin| plugin.settings.name.clone()).collect()
    }

    /// Runs a computation on a blocking thread, once a permit is free.
    pub async fn blocking<T: Send + 'static>(
        &self,
        work: impl AsyncFnOnce() -> T + Send + 'static,
    ) -> Result<T, StoreError> {
        let turn = Arc::clone(&self.shared.turns).acquire_owned().await;
        let turn = turn.map_err(|_| StoreError::Stopped)?;
        let handle = self.shared.loader.handle.clone();
        let done = tokio::task::spawn_blocking(move || {
            let done = handle.block_on(work());
            // The permit belongs to the work: a cancelled caller does not stop the thread.
            drop(turn);
            done
        });
        done.await.map_err(|error| StoreError::Runtime(format!("a plugin's call: {error}")))
    }

    /// Returns the state of all plugins loaded since the start, including removed plugins.
    pub fn reports(&self) -> Vec<PluginReport> {
        let set = self.shared.set();
        let report = |(name, world, figures): (String, World, Arc<PluginFigures>)| {
            let plugin = set.plugin(&name).filter(|plugin| plugin.world == world);
            let is_disabled = plugin.is_some_and(|plugin| plugin.is_disabled());
            PluginReport { is_loaded: plugin.is_some(), is_disabled, name, world, figures }
        };
        self.shared.loader.figures.all().into_iter().map(report).collect()
    }

    /// Returns the number of plugins that are being loaded or compiled.
    pub fn loading(&self) -> usize {
        self.shared.set().entries.values().filter(|entry| entry.is_undecided()).count()
    }

    pub fn memory(&self) -> &MemoryPool {
        &self.shared.loader.memory
    }
}

impl Shared {
    fn set(&self) -> Arc<Set> {
        Arc::clone(&self.set.read().unwrap_or_else(PoisonError::into_inner))
    }
}
