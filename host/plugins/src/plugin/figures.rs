//! The figures of each plugin. Figures belong to a name: they outlive a reload.

use super::config::World;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It gave what it should.
    Ok,
    /// It said that it cannot: an error of its own.
    Error,
    /// It crashed.
    Trap,
    /// It took longer than it may.
    Timeout,
    /// It needed more memory than it may have.
    Memory,
    /// Its output is invalid or too large.
    Output,
    /// It was not called: it is disabled, or all its instances are taken.
    Skipped,
}

impl Outcome {
    /// All of them.
    pub const ALL: [Outcome; 7] = [
        Outcome::Ok,
        Outcome::Error,
        Outcome::Trap,
        Outcome::Timeout,
        Outcome::Memory,
        Outcome::Output,
        Outcome::Skipped,
    ];

    /// As metrics call it.
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

/// Figures of one plugin.
#[derive(Debug, Default)]
pub struct PluginFigures {
    calls: [AtomicU64; Outcome::ALL.len()],
    nanoseconds: AtomicU64,
    /// Rows that it was given.
    pub rows_in: AtomicU64,
    /// Rows that it gave, or left as they were.
    pub rows_out: AtomicU64,
    /// Batches that no instance of an observer had time for.
    pub left_out: AtomicU64,
    /// Linear memory of its instances, in bytes.
    pub memory_bytes: AtomicU64,
    /// How often it was disabled.
    pub disablings: AtomicU64,
    /// How often its file could not be loaded.
    pub load_failures: AtomicU64,
}

impl PluginFigures {
    /// Counts a call.
    pub fn count(&self, outcome: Outcome, time: Duration) {
        self.calls[outcome as usize].fetch_add(1, Relaxed);
        self.nanoseconds.fetch_add(time.as_nanos() as u64, Relaxed);
    }

    /// Calls that ended so.
    pub fn calls(&self, outcome: Outcome) -> u64 {
        self.calls[outcome as usize].load(Relaxed)
    }

    /// Time in all calls together.
    pub fn seconds(&self) -> f64 {
        self.nanoseconds.load(Relaxed) as f64 / 1e9
    }
}

/// Figures by name and world.
#[derive(Debug, Default)]
pub struct AllFigures {
    by_name: Mutex<BTreeMap<(String, World), Arc<PluginFigures>>>,
}

impl AllFigures {
    /// The figures of a plugin, which are made if there are none.
    pub fn of(&self, name: &str, world: World) -> Arc<PluginFigures> {
        Arc::clone(self.lock().entry((name.to_owned(), world)).or_default())
    }

    /// All that there are.
    pub fn all(&self) -> Vec<(String, World, Arc<PluginFigures>)> {
        let all = self.lock();
        all.iter().map(|((name, world), f)| (name.clone(), *world, Arc::clone(f))).collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<(String, World), Arc<PluginFigures>>> {
        self.by_name.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
