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

/// Fraction of the memory limit beyond which an instance is not kept, like one that leaves cursors
/// open. Linear memory never shrinks, and a leak must not grow into a fault.
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

/// Parts that a plugin is made from.
pub struct Making<'a> {
    pub runtime: &'a PluginRuntime,
    /// Memory pool that all instances share.
    pub memory: &'a Arc<MemoryPool>,
    /// Surroundings of the instances; only jobs get the store.
    pub around: Around,
    pub figures: Arc<PluginFigures>,
}

impl Plugin {
    /// Starts a first instance, which shows that the plugin accepts its configuration.
    pub async fn load(
        settings: PluginSettings,
        linked: Linked,
        making: Making<'_>,
    ) -> Result<Plugin, Fault> {
        let world = linked.world();
        let mut around = making.around;
        // Other worlds have no import that reaches the store; this is a second guard.
        around.queries = around.queries.filter(|_| world == World::Job);
        let mut plugin = Plugin {
            interest: Interest::empty(),
            poison: PoisonList::default(),
            time: settings.time(world),
            // Runs of a job never overlap.
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

    /// Calls an instance, and waits for a free one no longer than a call may take. Any fault
    /// counts, and repeated ones disable the plugin for a while.
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

    /// Admits a call now. An admitted call must be made or given back.
    pub fn admit(&self) -> Option<Admitted> {
        self.health.admit(Instant::now())
    }

    /// Gives back an admission that was not used.
    pub fn give_back(&self, admitted: Admitted) {
        self.health.nothing(admitted);
    }

    pub fn count_skipped(&self) {
        self.figures.count(Outcome::Skipped, Duration::ZERO);
    }

    /// Calls an instance as [`Plugin::call`] does, for a call that was admitted already.
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
        // The wait for a slot is not part of the call's duration.
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
        // The guard is dropped here, before the call: a call takes long.
        let kept = self.idle().pop();
        let mut instance = match kept {
            Some(instance) => instance,
            None => self.start().await?,
        };
        let called = call(&mut instance, self.time).await;
        // After a trap or a limit, the instance's memory is in an unknown state.
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

    /// Drops all instances that no call uses, and so frees their memory.
    pub fn drop_idle(&self) {
        let idle = std::mem::take(&mut *self.idle());
        idle.iter().for_each(|instance| self.release_memory(instance));
    }

    /// Subtracts the memory of an instance that is about to be dropped.
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
