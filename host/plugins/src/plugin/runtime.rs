//! The runtime of all plugins. Its engine is separate from the store's engine, because it includes
//! a compiler and its code comes from files.

use super::bindings::{decoder, job, observer, transform};
use super::config::World;
use super::state::PluginState;
use std::time::Duration;
use wasmtime::component::{Component, HasSelf, Linker};
use wasmtime::{Config, Engine};

/// Interval at which deadlines are checked.
pub const EPOCH_TICK: Duration = Duration::from_millis(10);

/// Maximum stack of WebAssembly code in bytes; deeper calls trap.
const STACK_BYTES: usize = 512 * 1024;

/// Engine and linkers. The linker of each world has only the imports of that world.
#[derive(Clone)]
pub struct PluginRuntime {
    engine: Engine,
    alone: Linker<PluginState>,
    with_store: Linker<PluginState>,
    with_webhook: Linker<PluginState>,
}

/// A component that is linked for its world.
#[derive(Clone)]
pub enum Linked {
    Transform(transform::TransformPre<PluginState>),
    Decoder(decoder::DecoderPre<PluginState>),
    Job(job::JobPre<PluginState>),
    Observer(observer::ObserverPre<PluginState>),
}

/// Reason why a component is not usable as a plugin.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// The component exports no interface of the contract.
    #[error(
        "it is made for no world of tidepool:plugin@0.2: expected an export of transform-batches, \
         decode-bodies, run-job or observe-batches, but it exports {0}"
    )]
    NoWorld(String),
    /// The component exports interfaces of two worlds.
    #[error("it is made for several worlds, {0} and {1}; build one plugin for each world")]
    TwoWorlds(&'static str, &'static str),
    /// The component's world differs from the configured one.
    #[error("it is made for the world {is}, but the configuration says {wanted}")]
    OtherWorld {
        is: &'static str,
        /// World that the configuration names.
        wanted: &'static str,
    },
    /// The component needs an import that its world does not have, or types differ.
    #[error("it does not fit the world {world}: {reason}")]
    Unfit {
        world: &'static str,
        /// Message of wasmtime, which names the import.
        reason: String,
    },
}

/// Creates an engine with the settings that must be the same for compiling and running.
pub fn engine() -> wasmtime::Result<Engine> {
    let mut config = Config::new();
    config.wasm_component_model(true).epoch_interruption(true).max_wasm_stack(STACK_BYTES);
    // Address maps and unwind tables, for debuggers only, would be an eighth of the code.
    config.generate_address_map(false).native_unwind_info(false);
    Engine::new(&config)
}

impl PluginRuntime {
    /// Creates the engine and its linkers, and starts the thread that advances epochs.
    pub fn new() -> wasmtime::Result<PluginRuntime> {
        let engine = engine()?;
        let mut alone = Linker::<PluginState>::new(&engine);
        wasmtime_wasi::p2::add_to_linker_async(&mut alone)?;
        // Each linker extends the linker before it, so a world gets only its own imports.
        let mut with_webhook = alone.clone();
        job::tidepool::plugin::webhook::add_to_linker::<_, HasSelf<_>>(&mut with_webhook, |s| s)?;
        let mut with_store = with_webhook.clone();
        job::tidepool::plugin::store::add_to_linker::<_, HasSelf<_>>(&mut with_store, |s| s)?;
        job::tidepool::plugin::query::add_to_linker::<_, HasSelf<_>>(&mut with_store, |s| s)?;
        // Weak, so that the thread ends when the engine is no longer used.
        let ticker = engine.weak();
        // An operating-system thread, because a busy async runtime would delay the ticks.
        std::thread::Builder::new().name("plugin-epoch".into()).spawn(move || {
            while let Some(engine) = ticker.upgrade() {
                engine.increment_epoch();
                drop(engine);
                std::thread::sleep(EPOCH_TICK);
            }
        })?;
        Ok(PluginRuntime { engine, alone, with_store, with_webhook })
    }

    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Links a component for its world, which its exports determine.
    pub fn link(&self, component: &Component, wanted: Option<World>) -> Result<Linked, LinkError> {
        let world = self.world_of(component)?;
        if let Some(wanted) = wanted.filter(|wanted| *wanted != world) {
            return Err(LinkError::OtherWorld { is: world.name(), wanted: wanted.name() });
        }
        self.linked(component, world).map_err(|error| {
            let mut reason = format!("{error:#}");
            // Adds a hint for a frequent mistake: wasmtime's message only names the missing import.
            let granted = ["store", "query", "webhook"];
            if granted.iter().any(|name| reason.contains(&format!("tidepool:plugin/{name}"))) {
                reason.push_str(
                    "; only jobs may import the store and query, only jobs and observers the webhook",
                );
            }
            LinkError::Unfit { world: world.name(), reason }
        })
    }

    fn linked(&self, component: &Component, world: World) -> wasmtime::Result<Linked> {
        Ok(match world {
            World::Transform => {
                let pre = self.alone.instantiate_pre(component)?;
                Linked::Transform(transform::TransformPre::new(pre)?)
            }
            World::Decoder => {
                let pre = self.alone.instantiate_pre(component)?;
                Linked::Decoder(decoder::DecoderPre::new(pre)?)
            }
            World::Job => {
                let pre = self.with_store.instantiate_pre(component)?;
                Linked::Job(job::JobPre::new(pre)?)
            }
            World::Observer => {
                let pre = self.with_webhook.instantiate_pre(component)?;
                Linked::Observer(observer::ObserverPre::new(pre)?)
            }
        })
    }

    fn world_of(&self, component: &Component) -> Result<World, LinkError> {
        let exports: Vec<String> = component
            .component_type()
            .exports(&self.engine)
            .map(|(name, _)| name.to_owned())
            .collect();
        let is_made_for = |world: &World| {
            // The version is ignored here; linking reports an incompatible version.
            let is_it = |name: &String| name.split('@').next() == Some(world.interface());
            exports.iter().any(is_it)
        };
        let mut worlds = World::ALL.into_iter().filter(is_made_for);
        match (worlds.next(), worlds.next()) {
            (Some(world), None) => Ok(world),
            (Some(one), Some(other)) => Err(LinkError::TwoWorlds(one.name(), other.name())),
            (None, _) if exports.is_empty() => Err(LinkError::NoWorld("nothing".to_owned())),
            (None, _) => Err(LinkError::NoWorld(exports.join(", "))),
        }
    }
}

impl Linked {
    pub fn world(&self) -> World {
        match self {
            Linked::Transform(_) => World::Transform,
            Linked::Decoder(_) => World::Decoder,
            Linked::Job(_) => World::Job,
            Linked::Observer(_) => World::Observer,
        }
    }
}
