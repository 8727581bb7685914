//! Figures of each plugin. They are kept by name, and so survive a reload of the plugin.

use super::config::World;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Outcome of a call, as shown in metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Ok,
    /// The plugin returned an error.
    Error,
    /// The call trapped, which ends the instance.
    Trap,
    Timeout,
    /// The instance exceeded a memory limit.
    Memory,
    /// The result is invalid or too large.
    Output,
    /// The plugin was not called, because it is disabled or all its instances are in use.
    Skipped,
}

impl Outcome {
    pub const ALL: [Outcome; 7] = [
        Outcome::Ok,
        Outcome::Error,
        Outcome::Trap,
        Outcome::Timeout,
        Outcome::Memory,
        Outcome::Output,
        Outcome::Skipped,
    ];

    /// Returns the value of the label `outcome`.
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Ok => "ok",
            Outcome::Error => "error",
            Outcome::Trap => "trap",
            Outcome::Timeout => "timeout",
            Outcome::Memory => "memory",
            Outcome::Output => "output",
            Outcome::Skipped => "skipped",
        }
    }
}

#[derive(Debug, Default)]
pub struct PluginFigures {
    calls: [AtomicU64; Outcome::ALL.len()],
    nanoseconds: AtomicU64,
    /// Number of samples and histograms that were passed to the plugin.
    pub rows_in: AtomicU64,
    /// Number of samples and histograms that the plugin returned or left unchanged.
    pub rows_out: AtomicU64,
    /// Number of batches that an observer did not see because its queue was full.
    pub left_out: AtomicU64,
    /// Linear memory of the plugin's instances, in bytes.
    pub memory_bytes: AtomicU64,
    /// Number of times that the plugin was disabled.
    pub disablings: AtomicU64,
    /// Number of failed attempts to load the file.
    pub load_failures: AtomicU64,
}

impl PluginFigures {
    pub fn count(&self, outcome: Outcome, time: Duration) {
        self.calls[outcome as usize].fetch_add(1, Relaxed);
        // 64 bits are enough for the nanoseconds of 584 years.
        self.nanoseconds.fetch_add(time.as_nanos() as u64, Relaxed);
    }

    /// Returns the number of calls with this outcome.
    pub fn calls(&self, outcome: Outcome) -> u64 {
        self.calls[outcome as usize].load(Relaxed)
    }

    /// Returns the duration of all calls together.
    pub fn seconds(&self) -> f64 {
        self.nanoseconds.load(Relaxed) as f64 / 1e9
    }
}

/// Figures of all plugins, by name and world.
#[derive(Debug, Default)]
pub struct AllFigures {
    by_name: Mutex<BTreeMap<(String, World), Arc<PluginFigures>>>,
}

impl AllFigures {
    /// Returns the figures of a plugin. Creates them if there are none.
    pub fn of(&self, name: &str, world: World) -> Arc<PluginFigures> {
        Arc::clone(self.lock().entry((name.to_owned(), world)).or_default())
    }

    /// Returns the figures of all plugins loaded since the start, by name and world.
    pub fn all(&self) -> Vec<(String, World, Arc<PluginFigures>)> {
        let all = self.lock();
        all.iter().map(|((name, world), f)| (name.clone(), *world, Arc::clone(f))).collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<(String, World), Arc<PluginFigures>>> {
        self.by_name.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
