//! The runtime that all instances share: the component's machine code, interruptible and not.

use super::bindings::EngineWithQueriesPre;
use super::deadline::{Ends, epoch_ticks};
use super::instance::{CallError, Instance, why_ended};
use super::precompiled::Image;
use super::state::{InstanceLogs, InstanceState, InstanceStorage};
use super::ticker::{Ticker, Ticks};
use super::tuning::{self, Code};
use super::watch::Watch;
use super::{Options, Role, wasi};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tidepool_disk::BlockDirs;
use wasmtime::component::Linker;

#[derive(Clone, Copy, Debug)]
pub struct InstanceLimits {
    pub memory_bytes_max: usize,
    /// Time for all calls together; `None` for no limit.
    pub deadline: Option<Duration>,
}

/// The compiled component, linked and ready to be instantiated.
#[derive(Clone)]
pub struct Runtime {
    interruptible: Linked,
    /// `None` in programs built for size.
    uninterruptible: Option<Linked>,
    ticker: Arc<Ticker>,
}

/// The linked component as machine code of one kind.
#[derive(Clone)]
struct Linked {
    engine: wasmtime::Engine,
    component: EngineWithQueriesPre<InstanceState>,
}

/// The only runtime of this process, because the machine code runs in place in the binary.
static SHARED: Mutex<Option<Runtime>> = Mutex::new(None);

/// Returns the kind of machine code for a role. A query must be able to end without the process.
/// The whole process needs the head, and the compactor stops between slices of its work.
fn code_of(role: Role) -> Code {
    match role {
        Role::Query => Code::Interruptible,
        Role::Head | Role::Compactor | Role::All => Code::Uninterruptible,
    }
}

impl Runtime {
    /// Returns the runtime of this process; the first call loads the component.
    pub fn shared() -> wasmtime::Result<Runtime> {
        // Locked during the load, so that concurrent callers do not load the same code twice.
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(runtime) = &*shared {
            return Ok(runtime.clone());
        }
        let runtime = Runtime::load()?;
        *shared = Some(runtime.clone());
        Ok(runtime)
    }

    /// Loads the component and starts the thread that checks deadlines.
    fn load() -> wasmtime::Result<Runtime> {
        let image = Image::installed()?;
        let load = |code| {
            let machine_code = image.code(code);
            machine_code.map(|machine_code| Linked::load(image, code, machine_code)).transpose()
        };
        let interruptible = load(Code::Interruptible)?;
        let interruptible =
            interruptible.ok_or_else(|| wasmtime::format_err!("the program has no engine"))?;
        let uninterruptible = load(Code::Uninterruptible)?;
        // Only interruptible code looks at epochs, so only its engine needs ticks.
        let ticker = Ticker::start(interruptible.engine.clone())?;
        Ok(Runtime { interruptible, uninterruptible, ticker })
    }

    /// Makes an instance and opens its store with `options`. Only calls of queries can be ended, if
    /// the program has uninterruptible machine code; otherwise calls of all roles can.
    pub fn instantiate(
        &self,
        options: Options,
        storage: InstanceStorage,
        limits: InstanceLimits,
    ) -> Result<Instance, CallError> {
        let mut instance = self.instantiate_as(code_of(options.role), storage, limits)?;
        instance.open(options)?;
        Ok(instance)
    }

    /// Makes an instance without opening its store. A deadline can end its calls.
    pub fn instantiate_closed(
        &self,
        storage: InstanceStorage,
        limits: InstanceLimits,
    ) -> Result<Instance, CallError> {
        self.instantiate_as(Code::Interruptible, storage, limits)
    }

    /// Makes an instance whose store is in its memory only. A deadline can end its calls.
    pub fn instantiate_in_memory(
        &self,
        options: Options,
        limits: InstanceLimits,
    ) -> Result<Instance, CallError> {
        let (logs, blocks) = (InstanceLogs::Dropped, BlockDirs::none());
        let storage = InstanceStorage { logs, blocks, head: None, memory: None };
        let mut instance = self.instantiate_closed(storage, limits)?;
        instance.open(options)?;
        Ok(instance)
    }

    fn instantiate_as(
        &self,
        code: Code,
        storage: InstanceStorage,
        limits: InstanceLimits,
    ) -> Result<Instance, CallError> {
        // Without uninterruptible code every role runs interruptible code, which costs only speed.
        let uninterruptible = self.uninterruptible.as_ref();
        let uninterruptible = uninterruptible.filter(|_| code == Code::Uninterruptible);
        let linked = uninterruptible.unwrap_or(&self.interruptible);
        let state = InstanceState::new(storage, limits.memory_bytes_max);
        let mut store = wasmtime::Store::new(&linked.engine, state);
        store.limiter(|state| &mut state.limits);
        // A new store has a deadline of zero ticks, which would end its first call.
        store.set_epoch_deadline(epoch_ticks(limits.deadline));
        let ends = match uninterruptible {
            Some(_) => Ends::Process(Watch::new(&self.ticker)),
            None => Ends::Instance(Ticks::new(&self.ticker, limits.deadline.is_some())),
        };
        // Instantiation allocates the initial memory, so the limiter may refuse.
        let bindings = linked.component.instantiate(&mut store);
        let bindings = bindings.map_err(|trap| why_ended(store.data(), trap))?;
        Ok(Instance::new(store, bindings, ends))
    }
}

impl Linked {
    fn load(image: Image, code: Code, machine_code: &'static [u8]) -> wasmtime::Result<Linked> {
        let mut config = tuning::config(code);
        image.configure(machine_code, &mut config);
        if cfg!(feature = "profiling") {
            config.profiler(wasmtime::ProfilingStrategy::PerfMap);
        }
        let engine = wasmtime::Engine::new(&config)?;
        let component = image.load(machine_code, &engine)?;
        // Imports are resolved once here, instead of for every instance.
        let component = EngineWithQueriesPre::new(linker(&engine)?.instantiate_pre(&component)?)?;
        Ok(Linked { engine, component })
    }
}

/// Links everything that an instance may call.
pub(super) fn linker(engine: &wasmtime::Engine) -> wasmtime::Result<Linker<InstanceState>> {
    let mut linker = Linker::new(engine);
    wasi::add_to_linker(&mut linker)?;
    super::bindings::EngineWithQueries::add_to_linker::<_, wasmtime::component::HasSelf<_>>(
        &mut linker,
        |state| state,
    )?;
    Ok(linker)
}
