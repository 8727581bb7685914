//! The runtime of all plugins: another engine than the store's, since it carries a compiler and its
//! code comes from files.

use super::bindings::{decoder, job, observer, transform};
use super::config::World;
use super::state::PluginState;
use std::time::Duration;
use wasmtime::component::{Component, HasSelf, Linker};
use wasmtime::{Config, Engine};

/// How often deadlines are looked at.
pub const EPOCH_TICK: Duration = Duration::from_millis(10);

/// Longest call into which a host call may move bytes is bounded by this much stack.
const STACK_BYTES: usize = 512 * 1024;

/// The engine, and what each world is given.
#[derive(Clone)]
pub struct PluginRuntime {
    engine: Engine,
    alone: Linker<PluginState>,
    with_store: Linker<PluginState>,
    with_webhook: Linker<PluginState>,
}

/// A component, linked for its world.
#[derive(Clone)]
pub enum Linked {
    /// A transform.
    Transform(transform::TransformPre<PluginState>),
    /// A decoder.
    Decoder(decoder::DecoderPre<PluginState>),
    /// A job.
    Job(job::JobPre<PluginState>),
    /// An observer.
    Observer(observer::ObserverPre<PluginState>),
}

/// Why a component is no plugin.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// It exports no interface of ours.
    #[error(
        "it is made for no world of tidepool:plugin@0.2: expected an export of transform-batches, \
         decode-bodies, run-job or observe-batches, but it exports {0}"
    )]
    NoWorld(String),
    /// It exports more than one.
    #[error("it is made for several worlds, {0} and {1}; build one plugin for each world")]
    TwoWorlds(&'static str, &'static str),
    /// It is made for another world than the configuration says.
    #[error("it is made for the world {is}, but the configuration says {wanted}")]
    OtherWorld {
        /// Its own.
        is: &'static str,
        /// The one that was said.
        wanted: &'static str,
    },
    /// It asks for something that its world does not have, or differs from it.
    #[error("it does not fit the world {world}: {reason}")]
    Unfit {
        /// Its world.
        world: &'static str,
        /// Why.
        reason: String,
    },
}

/// The configuration by which plugins are compiled and run.
pub fn engine() -> wasmtime::Result<Engine> {
    let mut config = Config::new();
    config.wasm_component_model(true).epoch_interruption(true).max_wasm_stack(STACK_BYTES);
    // Places in the bytecode, and what debuggers unwind by: an eighth of the machine code.
    config.generate_address_map(false).native_unwind_info(false);
    Engine::new(&config)
}

impl PluginRuntime {
    /// Starts the thread that ticks deadlines, which ends with the process.
    pub fn new() -> wasmtime::Result<PluginRuntime> {
        let engine = engine()?;
        let mut alone = Linker::<PluginState>::new(&engine);
        wasmtime_wasi::p2::add_to_linker_async(&mut alone)?;
        let mut with_webhook = alone.clone();
        job::tidepool::plugin::webhook::add_to_linker::<_, HasSelf<_>>(&mut with_webhook, |s| s)?;
        let mut with_store = with_webhook.clone();
        job::tidepool::plugin::store::add_to_linker::<_, HasSelf<_>>(&mut with_store, |s| s)?;
        job::tidepool::plugin::query::add_to_linker::<_, HasSelf<_>>(&mut with_store, |s| s)?;
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

    /// The engine.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Links a component for the one world that it is made for.
    pub fn link(&self, component: &Component, wanted: Option<World>) -> Result<Linked, LinkError> {
        let world = self.world_of(component)?;
        if let Some(wanted) = wanted.filter(|wanted| *wanted != world) {
            return Err(LinkError::OtherWorld { is: world.name(), wanted: wanted.name() });
        }
        self.linked(component, world).map_err(|error| {
            let mut reason = format!("{error:#}");
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
    /// Its world.
    pub fn world(&self) -> World {
        match self {
            Linked::Transform(_) => World::Transform,
            Linked::Decoder(_) => World::Decoder,
            Linked::Job(_) => World::Job,
            Linked::Observer(_) => World::Observer,
        }
    }
}
