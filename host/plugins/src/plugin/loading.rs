//! Loading a plugin: from its file to instances that work. Each on a thread of its own, since a
//! compiler takes minutes and a plugin may take seconds to start; of what is large, one at a time.

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

/// Makes plugins of files.
pub struct Loader {
    runtime: PluginRuntime,
    cache: CodeCache,
    /// The memory that all instances share.
    pub memory: Arc<MemoryPool>,
    /// What jobs work on, with the store.
    pub queries: Queries,
    /// Counts, by name and world.
    pub figures: AllFigures,
    /// Where plugins run.
    pub handle: Handle,
    /// A plugin's bytes are held by one thread at a time.
    reading: Mutex<()>,
    /// One compiler runs at a time.
    compiling: Mutex<()>,
}

/// The result of loading a plugin.
pub struct Outcome {
    /// The plugin that was to be loaded.
    pub wanted: Wanted,
    /// Where its machine code is kept, if there is any.
    pub code: Option<PathBuf>,
    /// The plugin, or why there is none.
    pub result: Result<Loaded, LoadError>,
}

/// Why a plugin could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// There is no machine code.
    #[error(transparent)]
    Code(#[from] CodeError),
    /// It is made for no world, or another one.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// Its settings are for another world.
    #[error("it is made for the world {world}, but {why}")]
    Settings {
        /// Its own.
        world: &'static str,
        /// What does not fit.
        why: String,
    },
    /// It does not start.
    #[error(transparent)]
    Start(#[from] Fault),
    /// A thread could not be started.
    #[error("its thread could not be started: {0}")]
    Thread(#[from] io::Error),
    /// There is no file.
    #[error("{} does not exist", .0.display())]
    Missing(PathBuf),
}

impl LoadError {
    /// Whether the same file will fail in the same way another time. What a plugin says when it
    /// starts may depend on a directory of its own, and how long that takes on what else runs.
    pub fn is_lasting(&self) -> bool {
        match self {
            LoadError::Code(error) => error.is_lasting(),
            // A file that comes is another one.
            LoadError::Link(_) | LoadError::Settings { .. } | LoadError::Missing(_) => true,
            LoadError::Start(_) | LoadError::Thread(_) => false,
        }
    }

    /// Whether others have taken the memory that it needs.
    pub fn lacks_shared_memory(&self) -> bool {
        matches!(self, LoadError::Start(Fault::Memory(MemoryBound::Shared)))
    }
}

impl Loader {
    /// For the plugins of a store.
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

    /// Makes a plugin. Blocks until it works.
    pub fn load(&self, wanted: Wanted, cancel: &Cancel) -> Outcome {
        match self.code(&wanted.path, cancel) {
            Ok(Code { component, file }) => {
                let result = self.start(&wanted, &component, file.clone());
                Outcome { wanted, code: Some(file), result }
            }
            Err(error) => Outcome { wanted, code: None, result: Err(error.into()) },
        }
    }

    /// Drops all machine code but these files. Not while something is loaded.
    pub fn keep_only(&self, files: &[&Path]) {
        self.cache.keep_only(files);
    }

    /// Machine code that is kept does not wait for a compiler.
    fn code(&self, path: &Path, cancel: &Cancel) -> Result<Code, CodeError> {
        {
            let _reading = lock(&self.reading);
            let wasm = read_plugin(path)?;
            if let Some(found) = self.cache.find(self.runtime.engine(), &wasm)? {
                return Ok(found);
            }
        }
        let _compiling = lock(&self.compiling);
        if cancel.is_cancelled() {
            return Err(CodeError::Cancelled);
        }
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
