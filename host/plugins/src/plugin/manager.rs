//! All plugins: hands them requests.
//!
//! ```text
//!  directory + configuration ── watch ──▶ load what changed ──▶ the set
//!                                                                │ swapped as a whole
//!  write ──▶ transforms ──▶ store ──▶ observers        push/NAME ──▶ decoder
//! ```
//!
//! A request takes the set as it is when it comes, and keeps it to its end: a plugin that is
//! replaced meanwhile finishes its calls. A file that cannot be loaded changes nothing: what was
//! loaded from it before goes on.

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

/// All plugins; clones share them.
#[derive(Clone)]
pub struct Plugins {
    shared: Arc<Shared>,
}

struct Shared {
    loader: Arc<Loader>,
    set: Arc<LiveSet>,
    events: Sender<Event>,
    /// Requests that are transformed or decoded at a time.
    turns: Arc<Semaphore>,
}

/// What `/metrics` shows of a plugin.
pub struct PluginReport {
    /// Its name.
    pub name: String,
    /// Its world.
    pub world: World,
    /// Its figures.
    pub figures: Arc<PluginFigures>,
    /// Whether it is loaded.
    pub is_loaded: bool,
    /// Whether it is left alone for a while.
    pub is_disabled: bool,
}

impl Plugins {
    /// Finds all plugins, loads them on threads of their own, and looks after their files from then
    /// on. Until they are loaded, requests that need them are refused.
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
        let live = Arc::downgrade(&set);
        let thread = std::thread::Builder::new().name("plugins".into());
        let watching = thread.spawn(move || watcher.run(&live));
        watching.map_err(|error| format!("could not start a thread: {error}"))?;
        let turns = Arc::new(Semaphore::new(processors().max(2)));
        Ok(Plugins { shared: Arc::new(Shared { loader, set, events, turns }) })
    }

    /// Takes another configuration, which holds once the files were looked at; what could not be
    /// loaded is tried again. The directory and the memory stay as they are.
    pub fn reload(&self, config: &PluginsConfig) {
        // The thread lives as long as this does.
        let _ = self.shared.events.send(Event::Reload(config.clone()));
    }

    /// Lets transforms work on a request, if there are any.
    pub async fn transform(
        &self,
        version: RemoteWriteVersion,
        body: Body,
    ) -> Result<Transformed, StoreError> {
        let set = self.shared.set();
        let request = Request { version, body };
        if set.transforms.pass_by(&request) {
            return Ok(Transformed::untouched(request));
        }
        self.blocking(async move || set.transforms.apply(request).await).await?
    }

    /// What is behind it.
    pub fn store(&self) -> &Store {
        self.shared.loader.queries.store()
    }

    /// Whether a transform or an observer looks at writes, or should and is not loaded.
    pub fn watch_writes(&self) -> bool {
        let set = self.shared.set();
        !set.transforms.chain.is_empty() || set.observers().next().is_some()
    }

    /// Whether an observer is loaded.
    pub fn has_observers(&self) -> bool {
        self.shared.set().observers().next().is_some()
    }

    /// Shows what was stored to all who want to see it.
    pub fn observe(&self, batch: &Stored) {
        for observer in self.shared.set().observers() {
            observer.show(batch.clone());
        }
    }

    /// The decoder of a name.
    pub fn decoder(&self, name: &str) -> Option<Arc<Plugin>> {
        let set = self.shared.set();
        let plugin = set.plugin(name)?;
        (plugin.world == World::Decoder).then(|| Arc::clone(plugin))
    }

    /// The name of the decoder that the configuration gives a path of its own.
    pub fn at_path(&self, path: &str) -> Option<String> {
        if is_reserved(path) {
            return None;
        }
        let set = self.shared.set();
        let has_it = |entry: &&Entry| entry.wanted.settings.paths.iter().any(|own| own == path);
        set.entries.values().find(has_it).map(|entry| entry.wanted.settings.name.clone())
    }

    /// Why a decoder of this name is not there, if there should be one.
    pub fn lacks_decoder(&self, name: &str) -> Option<&'static str> {
        let set = self.shared.set();
        let entry = set.entries.get(name)?;
        let is_lacking = entry.loaded.is_none() && entry.may_be(World::Decoder);
        is_lacking.then_some(match entry.is_undecided() {
            true => "it is being loaded",
            false => "it could not be loaded",
        })
    }

    /// Names of all decoders.
    pub fn decoders(&self) -> Vec<String> {
        let set = self.shared.set();
        let is_decoder = |plugin: &&Arc<Plugin>| plugin.world == World::Decoder;
        set.loaded().filter(is_decoder).map(|plugin| plugin.settings.name.clone()).collect()
    }

    /// Runs something that computes where waiting is allowed, when it is its turn.
    pub async fn blocking<T: Send + 'static>(
        &self,
        work: impl AsyncFnOnce() -> T + Send + 'static,
    ) -> Result<T, StoreError> {
        let turn = Arc::clone(&self.shared.turns).acquire_owned().await;
        let turn = turn.map_err(|_| StoreError::Stopped)?;
        let handle = self.shared.loader.handle.clone();
        let done = tokio::task::spawn_blocking(move || {
            let done = handle.block_on(work());
            drop(turn);
            done
        });
        done.await.map_err(|error| StoreError::Runtime(format!("a plugin's call: {error}")))
    }

    /// Figures of all plugins that there are or were.
    pub fn reports(&self) -> Vec<PluginReport> {
        let set = self.shared.set();
        let report = |(name, world, figures): (String, World, Arc<PluginFigures>)| {
            let plugin = set.plugin(&name).filter(|plugin| plugin.world == world);
            let is_disabled = plugin.is_some_and(|plugin| plugin.is_disabled());
            PluginReport { is_loaded: plugin.is_some(), is_disabled, name, world, figures }
        };
        self.shared.loader.figures.all().into_iter().map(report).collect()
    }

    /// How many plugins are being loaded or compiled.
    pub fn loading(&self) -> usize {
        self.shared.set().entries.values().filter(|entry| entry.is_undecided()).count()
    }

    /// Linear memory of all instances together.
    pub fn memory(&self) -> &MemoryPool {
        &self.shared.loader.memory
    }
}

impl Shared {
    fn set(&self) -> Arc<Set> {
        Arc::clone(&self.set.read().unwrap_or_else(PoisonError::into_inner))
    }
}
