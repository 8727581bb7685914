//! One instance of a plugin, and its calls. Each call is limited in time, memory and output.

use super::batch::{Batch, Interest};
use super::bindings::decoder::exports::tidepool::plugin::decode_bodies as decode;
use super::bindings::transform::exports::tidepool::plugin::transform_batches as transform;
use super::bindings::{decoder, job, observer, transform as transform_world};
use super::config::PluginSettings;
use super::fault::Fault;
use super::runtime::{EPOCH_TICK, Linked, PluginRuntime};
use super::state::{Around, PluginState};
use super::text::bounded;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tidepool_runtime::MemoryPool;
use wasmtime::Store;

/// Maximum duration of a start, with the configuration. Some interpreters are slow to start.
const START_TIME: Duration = Duration::from_secs(10);

/// An instance that is started and configured.
pub struct Instance {
    store: Store<PluginState>,
    exports: Exports,
    /// Columns that the plugin asks for.
    pub interest: Interest,
    output_bytes_max: usize,
    noted_bytes: usize,
}

enum Exports {
    Transform(transform_world::Transform),
    Decoder(decoder::Decoder),
    Job(job::Job),
    Observer(observer::Observer),
}

/// Fault of a call that the plugin's world does not have, which is a bug of the caller.
const OTHER_WORLD: Fault = Fault::Skipped("it is made for another world");

impl Instance {
    /// Starts an instance and passes its configuration.
    pub async fn start(
        runtime: &PluginRuntime,
        linked: &Linked,
        settings: &PluginSettings,
        pool: &Arc<MemoryPool>,
        around: Around,
    ) -> Result<Instance, Fault> {
        let output_bytes_max = settings.limits.output_bytes_max;
        let state = PluginState::new(settings, pool, around)?;
        let mut store = Store::new(runtime.engine(), state);
        store.limiter(|state| &mut state.limiter);
        // At the deadline the call traps instead of yielding, because nothing would resume it.
        store.epoch_deadline_trap();
        // Fuel limits the bytes that results copy to the host.
        store.set_hostcall_fuel(output_bytes_max);
        let exports = within(&mut store, START_TIME, output_bytes_max, async |store| {
            Ok(match linked {
                Linked::Transform(pre) => Exports::Transform(pre.instantiate_async(store).await?),
                Linked::Decoder(pre) => Exports::Decoder(pre.instantiate_async(store).await?),
                Linked::Job(pre) => Exports::Job(pre.instantiate_async(store).await?),
                Linked::Observer(pre) => Exports::Observer(pre.instantiate_async(store).await?),
            })
        })
        .await?;
        let interest = Interest::empty();
        let mut instance = Instance { store, exports, interest, output_bytes_max, noted_bytes: 0 };
        instance.interest = instance.configure(&settings.config).await?;
        instance.note_growth();
        Ok(instance)
    }

    /// Returns the size of the linear memory in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.store.data().limiter.bytes()
    }

    /// Returns whether a call has left cursors open.
    pub fn has_leaked(&self) -> bool {
        self.store.data().has_leaked
    }

    /// Returns the memory in bytes that is already included in the figures.
    pub fn noted_bytes(&self) -> usize {
        self.noted_bytes
    }

    /// Returns the growth of the memory in bytes since the last call of this function.
    pub fn note_growth(&mut self) -> usize {
        let bytes = self.memory_bytes();
        let before = std::mem::replace(&mut self.noted_bytes, bytes);
        self.noted_bytes.saturating_sub(before)
    }

    async fn configure(&mut self, config: &str) -> Result<Interest, Fault> {
        let Instance { store, exports, output_bytes_max, .. } = self;
        let configured = within(store, START_TIME, *output_bytes_max, async |store| {
            let nothing = |done: Result<(), String>| done.map(|()| Interest::empty());
            Ok(match exports {
                Exports::Transform(world) => {
                    let guest = world.tidepool_plugin_transform_batches();
                    guest.call_configure(store, config).await?
                }
                Exports::Observer(world) => {
                    let guest = world.tidepool_plugin_observe_batches();
                    guest.call_configure(store, config).await?
                }
                Exports::Decoder(world) => {
                    let guest = world.tidepool_plugin_decode_bodies();
                    nothing(guest.call_configure(store, config).await?)
                }
                Exports::Job(world) => {
                    let guest = world.tidepool_plugin_run_job();
                    nothing(guest.call_configure(store, config).await?)
                }
            })
        })
        .await?;
        configured.map_err(|why| Fault::refused(&format!("it refused its configuration: {why}")))
    }

    pub async fn transform(
        &mut self,
        batch: &Batch,
        time: Duration,
    ) -> Result<transform::Verdict, Fault> {
        let Exports::Transform(world) = &self.exports else { return Err(OTHER_WORLD) };
        let verdict = within(&mut self.store, time, self.output_bytes_max, async |store| {
            world.tidepool_plugin_transform_batches().call_transform(store, batch).await
        });
        verdict.await?.map_err(|why| Fault::refused(&why))
    }

    pub async fn observe(&mut self, batch: &Batch, time: Duration) -> Result<(), Fault> {
        let Exports::Observer(world) = &self.exports else { return Err(OTHER_WORLD) };
        let seen = within(&mut self.store, time, self.output_bytes_max, async |store| {
            world.tidepool_plugin_observe_batches().call_observe(store, batch).await
        });
        seen.await?.map_err(|why| Fault::refused(&why))
    }

    pub async fn decode(
        &mut self,
        request: &decode::Request,
        time: Duration,
    ) -> Result<Result<decode::Decoded, decode::Refusal>, Fault> {
        let Exports::Decoder(world) = &self.exports else { return Err(OTHER_WORLD) };
        within(&mut self.store, time, self.output_bytes_max, async |store| {
            world.tidepool_plugin_decode_bodies().call_decode(store, request).await
        })
        .await
    }

    pub async fn run(&mut self, scheduled_ms: i64, time: Duration) -> Result<(), Fault> {
        let Exports::Job(world) = &self.exports else { return Err(OTHER_WORLD) };
        let done = within(&mut self.store, time, self.output_bytes_max, async |store| {
            world.tidepool_plugin_run_job().call_run(store, scheduled_ms).await
        });
        done.await?.map_err(|why| Fault::refused(&why))
    }
}

/// Makes a call with a time limit. Epochs end calls that compute, the timeout calls that wait.
async fn within<T>(
    store: &mut Store<PluginState>,
    time: Duration,
    output_bytes_max: usize,
    call: impl AsyncFnOnce(&mut Store<PluginState>) -> wasmtime::Result<T>,
) -> Result<T, Fault> {
    let ticks = time.as_millis().div_ceil(EPOCH_TICK.as_millis()) as u64;
    // The current tick has already begun, so one is added.
    store.set_epoch_deadline(ticks + 1);
    let state = store.data_mut();
    state.deadline = Instant::now() + time;
    // A refusal during an earlier call must not be reported as the reason for a trap of this call.
    state.limiter.refused_by = None;
    state.words.begin_call();
    // Two ticks later than the epoch deadline, so that a computing call ends with a trap.
    let called = tokio::time::timeout(time + EPOCH_TICK * 2, call(store)).await;
    // Done before the result is checked, because a failed call may leave cursors open as well.
    store.data_mut().end_cursors();
    match called {
        Ok(Ok(given)) => Ok(given),
        Err(_) => Err(Fault::Timeout(time)),
        Ok(Err(trap)) => Err(reason(store.data(), trap, time, output_bytes_max)),
    }
}

/// Determines which limit or trap ended a call.
fn reason(
    state: &PluginState,
    trap: wasmtime::Error,
    time: Duration,
    output_bytes_max: usize,
) -> Fault {
    let said = format!("{:#}", trap.root_cause());
    match (trap.downcast_ref(), state.limiter.refused_by) {
        (Some(wasmtime::Trap::Interrupt), _) => Fault::Timeout(time),
        // A guest that was refused memory aborts with any trap, so the refusal is the reason.
        (_, Some(bound)) => Fault::Memory(bound),
        // Wasmtime has no type for this error, so its text is searched.
        _ if said.contains("fuel allocated for hostcalls") => Fault::Flood(output_bytes_max),
        _ => Fault::Trap(bounded(&first_line(&format!("{trap:#}")))),
    }
}

/// Returns the first line of a trap. The backtrace after it does not help users.
fn first_line(text: &str) -> String {
    let trap = text.rsplit_once("wasm trap: ").map(|(_, trap)| format!("wasm trap: {trap}"));
    let text = trap.as_deref().unwrap_or(text);
    text.lines().next().unwrap_or_default().to_owned()
}
