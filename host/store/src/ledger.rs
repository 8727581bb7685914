//! The ledger of changes in the store, by which code that keeps answers knows that they are valid.
//!
//! Invariant: samples are entered before any read sees them, and other changes once they are done.
//! So data read after a moment is current unless the ledger has a later change of it.

use crate::changes::{Changes, Moment};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};
use tidepool_disk::BlockDirs;

/// Interval of looks at the directory for blocks that others added or removed.
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

/// Names of the blocks at the last look.
#[derive(Default)]
struct Blocks {
    looked_at: Option<Instant>,
    names: Vec<String>,
}

impl Ledger {
    /// Records stored samples by their oldest time, before any read sees them.
    pub fn stored(&self, oldest_ms: i64) {
        lock(&self.changes).stored(oldest_ms);
    }

    /// Records a change other than a write (deletion, blocks, start of the head), once it is done.
    pub fn changed(&self) {
        lock(&self.changes).changed();
        let listeners = self.listeners.read().unwrap_or_else(PoisonError::into_inner);
        listeners.iter().for_each(|tell| tell());
    }

    /// Registers a function that is called after each change other than a write, on the thread that
    /// made the change. Code that keeps what it has read frees its memory then.
    pub fn on_change(&self, tell: impl Fn() + Send + Sync + 'static) {
        let mut listeners = self.listeners.write().unwrap_or_else(PoisonError::into_inner);
        listeners.push(Box::new(tell));
    }

    /// Looks for blocks that other programs added or removed, which is a change.
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
            // Reads report the fault of the directory; meanwhile nothing counts as unchanged.
            Err(_) => self.changed(),
        }
    }

    pub fn moment(&self) -> Moment {
        lock(&self.changes).now()
    }

    /// Returns the time before which nothing changed since a moment; `None` if anything may have.
    pub fn unchanged_before_ms(&self, since: Moment) -> Option<i64> {
        lock(&self.changes).unchanged_before_ms(since)
    }

    /// Returns whether all that steps until `time_ms` read is unchanged since a moment.
    pub fn is_unchanged_until(&self, time_ms: i64, since: Moment) -> bool {
        self.unchanged_before_ms(since).is_some_and(|before_ms| before_ms > time_ms)
    }
}

/// Locks a mutex. A panic of another holder left nothing half-done that matters here.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
