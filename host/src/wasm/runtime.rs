//! The runtime that all instances share.

use super::bindings::EngineWithQueriesPre;
use super::instance::{CallError, Instance, why_ended};
use super::precompiled;
use super::state::{InstanceState, InstanceStorage};
use super::ticker::{EPOCH_TICK, Ticker, Ticks};
use super::{Options, tuning, wasi};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use wasmtime::component::Linker;

/// What one instance may use.
#[derive(Clone, Copy, Debug)]
pub struct InstanceLimits {
    /// Linear memory in bytes.
    pub memory_bytes_max: usize,
    /// Time for all calls together; `None` for as long as it takes.
    pub deadline: Option<Duration>,
}

/// The compiled component, linked and ready to be instantiated.
#[derive(Clone)]
pub struct Runtime {
    engine: wasmtime::Engine,
    component: EngineWithQueriesPre<InstanceState>,
    ticker: Arc<Ticker>,
}

/// The one of this process: the machine code runs where it lies in the binary, which is one place.
static SHARED: Mutex<Option<Runtime>> = Mutex::new(None);

impl Runtime {
    /// The runtime of this process; the first who asks loads the component.
    pub fn shared() -> wasmtime::Result<Runtime> {
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(runtime) = &*shared {
            return Ok(runtime.clone());
        }
        let runtime = Runtime::load()?;
        *shared = Some(runtime.clone());
        Ok(runtime)
    }

    /// Loads the component and starts the thread that ticks deadlines.
    fn load() -> wasmtime::Result<Runtime> {
        let mut config = tuning::config();
        precompiled::configure(&mut config)?;
        if cfg!(feature = "profiling") {
            config.profiler(wasmtime::ProfilingStrategy::PerfMap);
        }
        let engine = wasmtime::Engine::new(&config)?;
        let component = precompiled::load(&engine)?;
        let component = EngineWithQueriesPre::new(linker(&engine)?.instantiate_pre(&component)?)?;
        let ticker = Ticker::start(engine.clone())?;
        Ok(Runtime { engine, component, ticker })
    }

    /// A fresh instance, opened as `options` say.
    pub fn instantiate(
        &self,
        options: Options,
        storage: InstanceStorage,
        limits: InstanceLimits,
    ) -> Result<Instance, CallError> {
        let mut instance = self.instantiate_closed(storage, limits)?;
        instance.open(options)?;
        Ok(instance)
    }

    /// A fresh instance that is not opened as a store.
    pub fn instantiate_closed(
        &self,
        storage: InstanceStorage,
        limits: InstanceLimits,
    ) -> Result<Instance, CallError> {
        let state = InstanceState::new(storage, limits.memory_bytes_max);
        let mut store = wasmtime::Store::new(&self.engine, state);
        store.limiter(|state| &mut state.limits);
        let ticks = Ticks::new(&self.ticker, limits.deadline.is_some());
        store.set_epoch_deadline(epoch_ticks(limits.deadline));
        let bindings = self.component.instantiate(&mut store);
        let bindings = bindings.map_err(|trap| why_ended(store.data(), trap))?;
        Ok(Instance::new(store, bindings, ticks))
    }
}

/// All that an instance may call.
pub(super) fn linker(engine: &wasmtime::Engine) -> wasmtime::Result<Linker<InstanceState>> {
    let mut linker = Linker::new(engine);
    wasi::add_to_linker(&mut linker)?;
    super::bindings::EngineWithQueries::add_to_linker::<_, wasmtime::component::HasSelf<_>>(
        &mut linker,
        |state| state,
    )?;
    Ok(linker)
}

/// A deadline in ticks, rounded up; without one, more than there will ever be.
pub(super) fn epoch_ticks(deadline: Option<Duration>) -> u64 {
    let ticks = |deadline: Duration| deadline.as_millis().div_ceil(EPOCH_TICK.as_millis());
    deadline.map_or(u64::MAX / 2, |deadline| ticks(deadline) as u64)
}
