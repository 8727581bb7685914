//! A loaded plugin: its instances, which are kept for the next call, and how it fares.

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

/// An instance that has grown to this part of what it may have is not kept, as one that leaves
/// cursors open: memory never shrinks, and what it leaks must not become a fault.
const KEPT_PART: (usize, usize) = (3, 4);

/// A loaded plugin.
pub struct Plugin {
    /// Its settings.
    pub settings: PluginSettings,
    /// Its world.
    pub world: World,
    /// Its figures.
    pub figures: Arc<PluginFigures>,
    /// The columns that it asks for.
    pub interest: Interest,
    /// Bodies on which it failed, of a decoder.
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

/// What plugins are made of.
pub struct Making<'a> {
    /// Runs them.
    pub runtime: &'a PluginRuntime,
    /// What their instances share.
    pub memory: &'a Arc<MemoryPool>,
    /// What they find around them; only jobs get the store.
    pub around: Around,
    /// Counts.
    pub figures: Arc<PluginFigures>,
}

impl Plugin {
    /// Starts a first instance, which shows whether the plugin takes its configuration.
    pub async fn load(
        settings: PluginSettings,
        linked: Linked,
        making: Making<'_>,
    ) -> Result<Plugin, Fault> {
        let world = linked.world();
        let mut around = making.around;
        around.queries = around.queries.filter(|_| world == World::Job);
        let mut plugin = Plugin {
            interest: Interest::empty(),
            poison: PoisonList::default(),
            time: settings.time(world),
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

    /// Calls an instance, for which it waits no longer than a call may take. Anything but an answer
    /// counts as a fault, and enough of them disable the plugin for a while.
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

    /// Whether it may be called now; what is admitted must be called.
    pub fn admit(&self) -> Option<Admitted> {
        self.health.admit(Instant::now())
    }

    /// Nothing came of an admission.
    pub fn give_back(&self, admitted: Admitted) {
        self.health.nothing(admitted);
    }

    /// Counts a call that was not made.
    pub fn count_skipped(&self) {
        self.figures.count(Outcome::Skipped, Duration::ZERO);
    }

    /// As [`Plugin::call`], for whom was admitted.
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
        let kept = self.idle().pop();
        let mut instance = match kept {
            Some(instance) => instance,
            None => self.start().await?,
        };
        let called = call(&mut instance, self.time).await;
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

    /// Gives back the memory of instances that no call works with.
    pub fn drop_idle(&self) {
        let idle = std::mem::take(&mut *self.idle());
        idle.iter().for_each(|instance| self.release_memory(instance));
    }

    /// Subtracts the memory of an instance that will be dropped.
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

    /// Whether it is left alone.
    pub fn is_disabled(&self) -> bool {
        self.health.is_disabled()
    }
}

impl Drop for Plugin {
    fn drop(&mut self) {
        self.drop_idle();
    }
}
