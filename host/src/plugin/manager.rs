//! All plugins: loads them, looks after their files, and hands them requests.
//!
//! ```text
//!  directory + configuration ── looked at each second ──▶ load what changed ──▶ the set
//!                                                                                │ swapped as a whole
//!  write ──▶ transforms ──▶ store ──▶ observers        push/NAME ──▶ decoder     ▼
//! ```
//!
//! A request takes the set as it is when it comes, and keeps it to its end: a plugin that is replaced
//! meanwhile finishes its calls. A file that cannot be loaded changes nothing: what was loaded from it
//! before goes on.

use super::code::{CodeCache, CodeError, read_plugin};
use super::config::{OnFault, PluginSettings, PluginsConfig, World, is_reserved};
use super::fault::Fault;
use super::figures::{AllFigures, PluginFigures};
use super::folder::{Wanted, wanted};
use super::jobs::Job;
use super::observers::{Observer, Stored};
use super::pool::{Making, Plugin};
use super::runtime::{LinkError, PluginRuntime};
use super::state::Around;
use super::transforms::{Link, Request, Transformed, Transforms};
use crate::priority::lower_priority;
use crate::store::{Body, Store, StoreError};
use crate::wasm::{MemoryPool, RemoteWriteVersion};
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

/// How often files are looked at.
const LOOK: Duration = Duration::from_secs(1);

/// All plugins; clones share them.
#[derive(Clone)]
pub struct Plugins {
    shared: Arc<Shared>,
}

struct Shared {
    runtime: PluginRuntime,
    cache: CodeCache,
    memory: Arc<MemoryPool>,
    store: Store,
    figures: AllFigures,
    handle: Handle,
    set: RwLock<Arc<Set>>,
    config: Mutex<PluginsConfig>,
    /// Requests that are transformed or decoded at a time.
    turns: Arc<Semaphore>,
    look: SyncSender<()>,
}

/// What holds at one moment.
#[derive(Default)]
struct Set {
    entries: BTreeMap<String, Entry>,
    transforms: Transforms,
}

/// A plugin, or why there is none.
#[derive(Clone)]
struct Entry {
    wanted: Wanted,
    loaded: Option<Loaded>,
}

#[derive(Clone)]
struct Loaded {
    plugin: Arc<Plugin>,
    observer: Option<Arc<Observer>>,
    /// Runs as long as it is held.
    _job: Option<Arc<Job>>,
}

/// Why a plugin could not be loaded.
#[derive(Debug, thiserror::Error)]
enum LoadError {
    #[error(transparent)]
    Code(#[from] CodeError),
    #[error(transparent)]
    Link(#[from] LinkError),
    #[error(transparent)]
    Start(#[from] Fault),
    #[error("its thread could not be started: {0}")]
    Thread(#[from] io::Error),
    #[error("{} is not there", .0.display())]
    Missing(PathBuf),
    #[error("it is made for the world {0}, and only decoders have paths")]
    Paths(&'static str),
}

/// What `/metrics` shows of a plugin.
pub struct PluginReport {
    /// Its name.
    pub name: String,
    /// What it is made for.
    pub world: World,
    /// What was counted.
    pub figures: Arc<PluginFigures>,
    /// Whether it is loaded.
    pub is_loaded: bool,
    /// Whether it is left alone for a while.
    pub is_disabled: bool,
}

impl Plugins {
    /// Loads all plugins, and looks after their files from then on. Blocks until they are loaded.
    pub fn open(config: PluginsConfig, store: &Store, handle: Handle) -> Result<Plugins, String> {
        let runtime = PluginRuntime::new().map_err(|error| format!("{error:#}"))?;
        let (look, looks) = sync_channel(1);
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let shared = Arc::new(Shared {
            runtime,
            cache: CodeCache::of(store.data().path()),
            memory: MemoryPool::new(config.memory_bytes_max),
            store: store.clone(),
            figures: AllFigures::default(),
            handle,
            set: RwLock::default(),
            config: Mutex::new(config),
            turns: Arc::new(Semaphore::new(processors.max(2))),
            look,
        });
        shared.look_at_files();
        let watched = Arc::downgrade(&shared);
        let watch = move || {
            // The same priority as reads: what loads here must not hold writes up.
            lower_priority();
            loop {
                match looks.recv_timeout(LOOK) {
                    Ok(()) | Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => return,
                }
                let Some(shared) = watched.upgrade() else { return };
                shared.look_at_files();
            }
        };
        let thread = std::thread::Builder::new().name("plugins".into()).spawn(watch);
        thread.map_err(|error| format!("could not start a thread: {error}"))?;
        Ok(Plugins { shared })
    }

    /// Takes another configuration, which holds once the files were looked at. The directory and the
    /// memory stay as they are.
    pub fn reload(&self, config: &PluginsConfig) {
        let mut held = self.shared.config.lock().unwrap_or_else(PoisonError::into_inner);
        held.plugins.clone_from(&config.plugins);
        drop(held);
        // One look that is due is enough.
        let _ = self.shared.look.try_send(());
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
        &self.shared.store
    }

    /// Whether somebody wants to see what is stored.
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
        let plugin = &set.entries.get(name)?.loaded.as_ref()?.plugin;
        (plugin.world == World::Decoder).then(|| Arc::clone(plugin))
    }

    /// The name of the decoder that the configuration gives a path of its own.
    pub fn at_path(&self, path: &str) -> Option<String> {
        if is_reserved(path) {
            return None;
        }
        let set = self.shared.set();
        let has_it = |entry: &&Entry| entry.wanted.settings.paths.iter().any(|own| own == path);
        set.entries.values().find(has_it).map(|entry| entry.name().to_owned())
    }

    /// Whether a decoder of this name should be there, and could not be loaded.
    pub fn lacks_decoder(&self, name: &str) -> bool {
        self.shared.set().entries.get(name).is_some_and(|Entry { wanted, loaded }| {
            let PluginSettings { world, paths, .. } = &wanted.settings;
            loaded.is_none() && (*world == Some(World::Decoder) || !paths.is_empty())
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
        let handle = self.shared.handle.clone();
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
            let plugin = set.entries.get(&name).and_then(|entry| entry.loaded.as_ref());
            let plugin = plugin.map(|loaded| &loaded.plugin).filter(|p| p.world == world);
            let is_disabled = plugin.is_some_and(|plugin| plugin.is_disabled());
            PluginReport { is_loaded: plugin.is_some(), is_disabled, name, world, figures }
        };
        self.shared.figures.all().into_iter().map(report).collect()
    }

    /// Linear memory of all instances together.
    pub fn memory(&self) -> &MemoryPool {
        &self.shared.memory
    }
}

impl Set {
    fn loaded(&self) -> impl Iterator<Item = &Arc<Plugin>> {
        self.entries.values().filter_map(|entry| Some(&entry.loaded.as_ref()?.plugin))
    }

    fn observers(&self) -> impl Iterator<Item = &Arc<Observer>> {
        self.entries.values().filter_map(|entry| entry.loaded.as_ref()?.observer.as_ref())
    }

    /// The chain of transforms that the entries make.
    fn of(entries: BTreeMap<String, Entry>) -> Set {
        let mut chain: Vec<(i32, &str, Link)> = Vec::new();
        for (name, Entry { wanted, loaded }) in &entries {
            let settings = &wanted.settings;
            let is_needed = settings.on_fault == OnFault::Reject
                && settings.world.is_none_or(|world| world == World::Transform);
            let link = match loaded {
                Some(Loaded { plugin, .. }) if plugin.world == World::Transform => {
                    Link::Loaded(Arc::clone(plugin))
                }
                None if is_needed => Link::Missing(name.as_str().into()),
                _ => continue,
            };
            chain.push((settings.order, name, link));
        }
        chain.sort_by_key(|(order, name, _)| (*order, *name));
        let chain = chain.into_iter().map(|(_, _, link)| link).collect();
        Set { transforms: Transforms { chain }, entries }
    }
}

impl Shared {
    fn set(&self) -> Arc<Set> {
        Arc::clone(&self.set.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Loads what is new or has changed, and drops what is gone.
    fn look_at_files(&self) {
        let config = self.config.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let wanted = match wanted(&config) {
            Ok(wanted) => wanted,
            Err(error) => {
                let directory = config.directory.unwrap_or_default();
                let directory = directory.display();
                tracing::warn!(%error, "the directory of plugins {directory} could not be read");
                return;
            }
        };
        let before = self.set();
        let is_same = before.entries.len() == wanted.len()
            && before.entries.values().all(|entry| Some(&entry.wanted) == wanted.get(entry.name()));
        if is_same {
            return;
        }
        let entries: BTreeMap<String, Entry> = wanted
            .into_iter()
            .map(|(name, wanted)| {
                let entry = self.entry(wanted, before.entries.get(&name));
                (name, entry)
            })
            .collect();
        for name in before.entries.keys().filter(|name| !entries.contains_key(*name)) {
            tracing::info!(plugin = name, "a plugin was removed");
        }
        let set = Arc::new(Set::of(entries));
        *self.set.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&set);
        // Said when it is true for requests.
        let plugin = |set: &Set, name: &str| {
            set.entries.get(name)?.loaded.as_ref().map(|l| l.plugin.clone())
        };
        for (name, new) in set.entries.keys().filter_map(|n| Some((n, plugin(&set, n)?))) {
            if !plugin(&before, name).is_some_and(|old| Arc::ptr_eq(&old, &new)) {
                tracing::info!(plugin = name, world = new.world.name(), "a plugin was loaded");
            }
        }
        self.clean_cache(&set.entries);
    }

    /// What becomes of a plugin: as it was, loaded anew, or as it was because it cannot be.
    fn entry(&self, wanted: Wanted, before: Option<&Entry>) -> Entry {
        if let Some(before) = before
            && before.wanted == wanted
        {
            return before.clone();
        }
        let name = wanted.settings.name.clone();
        match self.load(&wanted) {
            Ok(loaded) => Entry { wanted, loaded: Some(loaded) },
            Err(error) => {
                let old = before.and_then(|before| before.loaded.clone());
                let old = old.filter(|_| wanted.stamp.is_some());
                let world = wanted.settings.world;
                let world = world.or(old.as_ref().map(|old| old.plugin.world));
                // Without a world it is nothing that metrics could be of.
                if let Some(world) = world {
                    let figures = self.figures.of(&name, world);
                    figures.load_failures.fetch_add(1, Relaxed);
                }
                let then = match (&old, wanted.settings.on_fault) {
                    (Some(_), _) => "the one that was loaded before goes on",
                    (None, OnFault::Reject) => "nothing is stored until it can be",
                    (None, OnFault::Pass) => "it is left out",
                };
                tracing::error!(plugin = name, "a plugin could not be loaded: {error}; {then}");
                Entry { wanted, loaded: old }
            }
        }
    }

    fn load(&self, wanted: &Wanted) -> Result<Loaded, LoadError> {
        if wanted.stamp.is_none() {
            return Err(LoadError::Missing(wanted.path.clone()));
        }
        let wasm = read_plugin(&wanted.path)?;
        let component = self.cache.load(self.runtime.engine(), &wasm)?;
        let linked = self.runtime.link(&component, wanted.settings.world)?;
        let world = linked.world();
        if world != World::Decoder && !wanted.settings.paths.is_empty() {
            return Err(LoadError::Paths(world.name()));
        }
        let making = Making {
            runtime: &self.runtime,
            memory: &self.memory,
            around: Around { store: Some(self.store.clone()), record: None },
            figures: self.figures.of(&wanted.settings.name, world),
        };
        let plugin = Plugin::load(wanted.settings.clone(), linked, making);
        let plugin = Arc::new(self.handle.block_on(plugin)?);
        let handle = || self.handle.clone();
        let observer = match plugin.world {
            World::Observer => Some(Arc::new(Observer::start(Arc::clone(&plugin), handle())?)),
            _ => None,
        };
        let job = match plugin.world {
            World::Job => {
                let job = Job::start(Arc::clone(&plugin), self.store.clone(), handle())?;
                Some(Arc::new(job))
            }
            _ => None,
        };
        Ok(Loaded { plugin, observer, _job: job })
    }

    /// Drops machine code of plugins that are no longer there.
    fn clean_cache(&self, entries: &BTreeMap<String, Entry>) {
        let there = entries.values().filter(|entry| entry.wanted.stamp.is_some());
        let bytes: Result<Vec<_>, _> = there.map(|entry| read_plugin(&entry.wanted.path)).collect();
        // If one cannot be read, another time will do.
        if let Ok(bytes) = bytes {
            self.cache.keep_only(self.runtime.engine(), &bytes);
        }
    }
}

impl Entry {
    fn name(&self) -> &str {
        &self.wanted.settings.name
    }
}
