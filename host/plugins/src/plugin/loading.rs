//! Loading of plugins, from a file to working instances. Each load has its own thread, because
//! compiling takes minutes and a start may take seconds. Steps that need much memory do not run
//! concurrently.

use super::code::{Cancel, Code, CodeCache, CodeError, read_plugin};
use super::config::{PluginsConfig, World};
use super::fault::Fault;
use super::figures::AllFigures;
use super::folder::Wanted;
use super::jobs::Job;
use super::observers::Observer;
use super::pool::{Making, Plugin};
use super::runtime::{LinkError, PluginRuntime};
use super::set::Loaded;
use super::state::Around;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tidepool_query::Queries;
use tidepool_runtime::{MemoryBound, MemoryPool};
use tokio::runtime::Handle;

pub struct Loader {
    runtime: PluginRuntime,
    cache: CodeCache,
    pub memory: Arc<MemoryPool>,
    /// Queries of the store, and thereby the store, which jobs use.
    pub queries: Queries,
    pub figures: AllFigures,
    /// Async runtime on which plugins run.
    pub handle: Handle,
    /// Locked while a plugin's bytes are in memory, so that only one thread has such bytes.
    reading: Mutex<()>,
    /// Locked while a compiler runs, so that only one runs at a time.
    compiling: Mutex<()>,
}

pub struct Outcome {
    pub wanted: Wanted,
    /// File of the machine code in the cache; `None` if there is none.
    pub code: Option<PathBuf>,
    pub result: Result<Loaded, LoadError>,
}

#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error(transparent)]
    Code(#[from] CodeError),
    /// The component is made for no world, or for another world than configured.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// A setting does not apply to the component's world.
    #[error("it is made for the world {world}, but {why}")]
    Settings {
        world: &'static str,
        /// Setting that does not apply.
        why: String,
    },
    #[error(transparent)]
    Start(#[from] Fault),
    #[error("its thread could not be started: {0}")]
    Thread(#[from] io::Error),
    #[error("{} does not exist", .0.display())]
    Missing(PathBuf),
}

impl LoadError {
    /// Returns whether a retry with the same file would fail with the same error. A failed start
    /// may depend on the plugin's directory or on the machine's load, so it is retried.
    pub fn is_lasting(&self) -> bool {
        match self {
            LoadError::Code(error) => error.is_lasting(),
            // If the file appears later, its stamp has changed, and so it is loaded.
            LoadError::Link(_) | LoadError::Settings { .. } | LoadError::Missing(_) => true,
            LoadError::Start(_) | LoadError::Thread(_) => false,
        }
    }

    /// Returns whether the load failed because other plugins use the shared memory.
    pub fn lacks_shared_memory(&self) -> bool {
        matches!(self, LoadError::Start(Fault::Memory(MemoryBound::Shared)))
    }
}

impl Loader {
    /// Creates a loader for the plugins of a store.
    pub fn new(
        config: &PluginsConfig,
        queries: &Queries,
        handle: Handle,
    ) -> wasmtime::Result<Loader> {
        Ok(Loader {
            runtime: PluginRuntime::new()?,
            cache: CodeCache::of(queries.store().data().path(), config.compiler_bytes_max),
            memory: MemoryPool::new(config.memory_bytes_max),
            queries: queries.clone(),
            figures: AllFigures::default(),
            handle,
            reading: Mutex::default(),
            compiling: Mutex::default(),
        })
    }

    /// Loads a plugin. Blocks until its first instance works.
    pub fn load(&self, wanted: Wanted, cancel: &Cancel) -> Outcome {
        match self.code(&wanted.path, cancel) {
            Ok(Code { component, file }) => {
                let result = self.start(&wanted, &component, file.clone());
                Outcome { wanted, code: Some(file), result }
            }
            Err(error) => Outcome { wanted, code: None, result: Err(error.into()) },
        }
    }

    /// Deletes the cached machine code of all other plugins. Must not run during a load.
    pub fn keep_only(&self, files: &[&Path]) {
        self.cache.keep_only(files);
    }

    /// Returns the machine code of a file. Does not wait for the compiler if the code is cached.
    fn code(&self, path: &Path, cancel: &Cancel) -> Result<Code, CodeError> {
        {
            let _reading = lock(&self.reading);
            let wasm = read_plugin(path)?;
            if let Some(found) = self.cache.find(self.runtime.engine(), &wasm)? {
                return Ok(found);
            }
        }
        // The bytes are dropped while waiting for the compiler, which may take minutes.
        let _compiling = lock(&self.compiling);
        if cancel.is_cancelled() {
            return Err(CodeError::Cancelled);
        }
        // Read again: the bytes were dropped, and the file may have changed during the wait.
        let wasm = read_plugin(path)?;
        self.cache.load(self.runtime.engine(), &wasm, cancel)
    }

    fn start(
        &self,
        wanted: &Wanted,
        component: &wasmtime::component::Component,
        code: PathBuf,
    ) -> Result<Loaded, LoadError> {
        let linked = self.runtime.link(component, wanted.settings.world)?;
        // Without a world in the configuration, settings can be checked only now.
        let world = linked.world();
        if let Err(why) = wanted.settings.check_world(world) {
            return Err(LoadError::Settings { world: world.name(), why });
        }
        let making = Making {
            runtime: &self.runtime,
            memory: &self.memory,
            around: Around::new(Some(self.queries.clone()), None),
            figures: self.figures.of(&wanted.settings.name, world),
        };
        let plugin = Plugin::load(wanted.settings.clone(), linked, making);
        let plugin = Arc::new(self.handle.block_on(plugin)?);
        let handle = || self.handle.clone();
        let observer = match world {
            World::Observer => Some(Arc::new(Observer::start(Arc::clone(&plugin), handle())?)),
            _ => None,
        };
        let job = match world {
            World::Job => {
                let job = Job::start(Arc::clone(&plugin), self.queries.store().clone(), handle())?;
                Some(Arc::new(job))
            }
            _ => None,
        };
        Ok(Loaded { plugin, observer, _job: job, code })
    }
}

fn lock(turn: &Mutex<()>) -> MutexGuard<'_, ()> {
    turn.lock().unwrap_or_else(PoisonError::into_inner)
}
