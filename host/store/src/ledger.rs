//! The ledger records changes of the store. Code that keeps answers checks their validity with it.
//!
//! Invariant: samples are recorded before any read sees them, other changes when they are done. So
//! data that was read after a [`Moment`] is current if the ledger has no later change of that data.

use crate::changes::{Changes, Moment};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};
use tidepool_disk::BlockDirs;

/// Interval of checks for blocks that other programs have added or removed.
const BLOCKS_EVERY: Duration = Duration::from_secs(1);

/// Called after each change other than a write.
type Listener = Box<dyn Fn() + Send + Sync>;

/// Changes of a store since it was opened.
#[derive(Default)]
pub struct Ledger {
    changes: Mutex<Changes>,
    blocks: Mutex<Blocks>,
    listeners: RwLock<Vec<Listener>>,
}

/// Names of the blocks at the last check.
#[derive(Default)]
struct Blocks {
    looked_at: Option<Instant>,
    names: Vec<String>,
}

impl Ledger {
    /// Records a write by its oldest sample's time, before any read sees the samples.
    pub fn stored(&self, oldest_ms: i64) {
        lock(&self.changes).stored(oldest_ms);
    }

    /// Records a change other than a write (deletion, blocks, start of the head) after it is done.
    pub fn changed(&self) {
        lock(&self.changes).changed();
        let listeners = self.listeners.read().unwrap_or_else(PoisonError::into_inner);
        listeners.iter().for_each(|tell| tell());
    }

    /// Registers a function that is called after each change other than a write, on the thread that
    /// made the change. Meant for code that keeps what it has read, to free that memory.
    pub fn on_change(&self, tell: impl Fn() + Send + Sync + 'static) {
        let mut listeners = self.listeners.write().unwrap_or_else(PoisonError::into_inner);
        listeners.push(Box::new(tell));
    }

    /// Records a change if other programs have added or removed blocks.
    pub(crate) fn look_at(&self, blocks: &BlockDirs) {
        let mut last = lock(&self.blocks);
        if last.looked_at.is_some_and(|at| at.elapsed() < BLOCKS_EVERY) {
            return;
        }
        last.looked_at = Some(Instant::now());
        match blocks.list() {
            Ok(names) if names == last.names => {}
            Ok(names) => {
                last.names = names;
                self.changed();
            }
            // Reads report the error of the directory. Until it is gone, anything may have changed.
            Err(_) => self.changed(),
        }
    }

    pub fn moment(&self) -> Moment {
        lock(&self.changes).now()
    }

    /// Returns the time before which no sample has changed since a moment; `None` if any may have.
    pub fn unchanged_before_ms(&self, since: Moment) -> Option<i64> {
        lock(&self.changes).unchanged_before_ms(since)
    }

    /// Returns whether no sample until `time_ms` has changed since a moment.
    pub fn is_unchanged_until(&self, time_ms: i64, since: Moment) -> bool {
        self.unchanged_before_ms(since).is_some_and(|before_ms| before_ms > time_ms)
    }
}

/// Locks a mutex. A panic of another thread that held it leaves no half-changed state that matters.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
