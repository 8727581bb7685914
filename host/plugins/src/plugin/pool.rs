//! A loaded plugin: its idle instances, its figures and its health.

use super::batch::Interest;
use super::config::{PluginSettings, World};
use super::fault::Fault;
use super::figures::{Outcome, PluginFigures};
use super::health::{Admitted, Health};
use super::instance::Instance;
use super::poison::PoisonList;
use super::runtime::{Linked, PluginRuntime};
use super::state::Around;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tidepool_runtime::MemoryPool;
use tokio::sync::Semaphore;

/// An instance is not reused if its memory is above this fraction of the limit, or if it leaves
/// cursors open. Linear memory never shrinks, and a leak must not grow until it causes a fault.
const KEPT_PART: (usize, usize) = (3, 4);

pub struct Plugin {
    pub settings: PluginSettings,
    pub world: World,
    pub figures: Arc<PluginFigures>,
    /// Columns that the plugin asks for.
    pub interest: Interest,
    /// Bodies on which a decoder failed.
    pub poison: PoisonList,
    linked: Linked,
    runtime: PluginRuntime,
    memory: Arc<MemoryPool>,
    around: Around,
    idle: Mutex<Vec<Instance>>,
    slots: Semaphore,
    health: Health,
    time: Duration,
}

/// Inputs for creating a plugin.
pub struct Making<'a> {
    pub runtime: &'a PluginRuntime,
    /// Memory pool that all instances share.
    pub memory: &'a Arc<MemoryPool>,
    /// Store, record and permits for the instances. Only jobs get the store.
    pub around: Around,
    pub figures: Arc<PluginFigures>,
}

impl Plugin {
    /// Starts a first instance, which proves that the plugin accepts its configuration.
    pub async fn load(
        settings: PluginSettings,
        linked: Linked,
        making: Making<'_>,
    ) -> Result<Plugin, Fault> {
        let world = linked.world();
        let mut around = making.around;
        // A second guard: other worlds have no import that gives access to the store.
        around.queries = around.queries.filter(|_| world == World::Job);
        let mut plugin = Plugin {
            interest: Interest::empty(),
            poison: PoisonList::default(),
            time: settings.time(world),
            // A job has one instance, so that its runs never overlap.
            slots: Semaphore::new(if world == World::Job { 1 } else { settings.limits.instances }),
            settings,
            world,
            figures: making.figures,
            linked,
            runtime: making.runtime.clone(),
            memory: Arc::clone(making.memory),
            around,
            idle: Mutex::default(),
            health: Health::default(),
        };
        let first = plugin.start().await?;
        plugin.interest = first.interest;
        plugin.keep(first);
        Ok(plugin)
    }

    /// Calls an instance, and waits for a free instance for at most the duration of a call. Each
    /// fault is counted, and repeated faults disable the plugin for a while.
    pub async fn call<T>(
        &self,
        call: impl AsyncFnOnce(&mut Instance, Duration) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let Some(admitted) = self.admit() else {
            self.count_skipped();
            return Err(Fault::Skipped("it is disabled after repeated faults"));
        };
        self.admitted_call(admitted, call).await
    }

    /// Asks for a permission to call. It must be used for a call or given back.
    pub fn admit(&self) -> Option<Admitted> {
        self.health.admit(Instant::now())
    }

    /// Gives back a permission that was not used.
    pub fn give_back(&self, admitted: Admitted) {
        self.health.nothing(admitted);
    }

    pub fn count_skipped(&self) {
        self.figures.count(Outcome::Skipped, Duration::ZERO);
    }

    /// Calls an instance as [`Plugin::call`] does, with a permission obtained before.
    pub async fn admitted_call<T>(
        &self,
        admitted: Admitted,
        call: impl AsyncFnOnce(&mut Instance, Duration) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let slot = tokio::time::timeout(self.time, self.slots.acquire()).await;
        let Ok(Ok(_slot)) = slot else {
            self.give_back(admitted);
            self.count_skipped();
            return Err(Fault::Skipped("all its instances are in use (limits.instances)"));
        };
        // Started here, so that the wait for a slot is not part of the call's duration.
        let begun = Instant::now();
        let called = self.called(call).await;
        match &called {
            Ok(_) => self.count_good(admitted, begun),
            Err(fault) => self.count_fault(admitted, fault, begun),
        }
        called
    }

    async fn called<T>(
        &self,
        call: impl AsyncFnOnce(&mut Instance, Duration) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        // The lock is released before the call, because a call may take long.
        let kept = self.idle().pop();
        let mut instance = match kept {
            Some(instance) => instance,
            None => self.start().await?,
        };
        let called = call(&mut instance, self.time).await;
        // After a trap or an exceeded limit, the state of the instance is unknown.
        if called.as_ref().err().is_none_or(Fault::spares_instance) {
            self.keep(instance);
        } else {
            self.release_memory(&instance);
        }
        called
    }

    async fn start(&self) -> Result<Instance, Fault> {
        let Plugin { runtime, linked, settings, memory, around, .. } = self;
        let instance = Instance::start(runtime, linked, settings, memory, around.clone()).await?;
        self.figures.memory_bytes.fetch_add(instance.noted_bytes() as u64, Relaxed);
        Ok(instance)
    }

    fn keep(&self, mut instance: Instance) {
        let (part, whole) = KEPT_PART;
        let grown = instance.note_growth();
        self.figures.memory_bytes.fetch_add(grown as u64, Relaxed);
        let limit = self.settings.limits.memory_bytes_max / whole * part;
        if instance.has_leaked() {
            let plugin = self.settings.name.as_str();
            tracing::warn!(
                plugin,
                "the plugin left cursors open; they were closed at the end of the call"
            );
        }
        if instance.has_leaked() || instance.memory_bytes() > limit {
            self.release_memory(&instance);
        } else {
            self.idle().push(instance);
        }
    }

    /// Drops all instances that no call is using, to free their memory.
    pub fn drop_idle(&self) {
        let idle = std::mem::take(&mut *self.idle());
        idle.iter().for_each(|instance| self.release_memory(instance));
    }

    /// Subtracts the memory of an instance that is being dropped from the figures.
    fn release_memory(&self, instance: &Instance) {
        self.figures.memory_bytes.fetch_sub(instance.noted_bytes() as u64, Relaxed);
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Instance>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count_good(&self, admitted: Admitted, begun: Instant) {
        self.figures.count(Outcome::Ok, begun.elapsed());
        if self.health.good(admitted) {
            let plugin = self.settings.name.as_str();
            tracing::info!(plugin, "the plugin works again and is enabled");
        }
    }

    fn count_fault(&self, admitted: Admitted, fault: &Fault, begun: Instant) {
        let now = Instant::now();
        let (plugin, world) = (self.settings.name.as_str(), self.world.name());
        self.figures.count(fault.outcome(), now - begun);
        if matches!(fault, Fault::View(_) | Fault::Skipped(_)) {
            self.health.nothing(admitted);
            return;
        }
        match self.health.fault(admitted, now) {
            None => tracing::warn!(plugin, world, "a call of a plugin failed: {fault}"),
            Some(pause) => {
                self.figures.disablings.fetch_add(1, Relaxed);
                let seconds = pause.as_secs();
                tracing::error!(
                    plugin,
                    world,
                    seconds,
                    "plugin disabled for a while after repeated faults: {fault}"
                );
            }
        }
    }

    pub fn is_disabled(&self) -> bool {
        self.health.is_disabled()
    }
}

impl Drop for Plugin {
    fn drop(&mut self) {
        self.drop_idle();
    }
}
