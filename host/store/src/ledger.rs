//! The ledger of what changed in the store, for whoever keeps what it has read: since a moment,
//! which times are as they were.
//!
//! Invariant: samples are entered before any read sees them, and anything else once it is done. So
//! what is read after a moment and not said to have changed since is what the store has.

use crate::changes::{Changes, Moment};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};
use tidepool_disk::BlockDirs;

/// How often the directory is looked at for blocks that others added or took away.
const BLOCKS_EVERY: Duration = Duration::from_secs(1);

/// What is called after a change that is no write.
type Listener = Box<dyn Fn() + Send + Sync>;

/// What changed in a store since it was opened.
#[derive(Default)]
pub struct Ledger {
    changes: Mutex<Changes>,
    blocks: Mutex<Blocks>,
    listeners: RwLock<Vec<Listener>>,
}

/// The blocks as they were when they were last looked at.
#[derive(Default)]
struct Blocks {
    looked_at: Option<Instant>,
    names: Vec<String>,
}

impl Ledger {
    /// Samples were stored, of which this is the oldest time; to be said before any read sees them.
    pub fn stored(&self, oldest_ms: i64) {
        lock(&self.changes).stored(oldest_ms);
    }

    /// Anything but a write changed what the store has: a deletion, blocks, a start of the head. To
    /// be said once that is done.
    pub fn changed(&self) {
        lock(&self.changes).changed();
        let listeners = self.listeners.read().unwrap_or_else(PoisonError::into_inner);
        listeners.iter().for_each(|tell| tell());
    }

    /// Calls this after each change that is no write, on the thread that made it: whoever keeps
    /// what it has read gives its memory back.
    pub fn on_change(&self, tell: impl Fn() + Send + Sync + 'static) {
        let mut listeners = self.listeners.write().unwrap_or_else(PoisonError::into_inner);
        listeners.push(Box::new(tell));
    }

    /// For blocks that other programs add or take away: a change of their list is one.
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
            // Reads say what is wrong with the directory.
            Err(_) => self.changed(),
        }
    }

    /// This moment.
    pub fn moment(&self) -> Moment {
        lock(&self.changes).now()
    }

    /// The time before which nothing changed since a moment; none if anything may have.
    pub fn unchanged_before_ms(&self, since: Moment) -> Option<i64> {
        lock(&self.changes).unchanged_before_ms(since)
    }

    /// Whether nothing changed since a moment that steps until this time may have read.
    pub fn is_unchanged_until(&self, time_ms: i64, since: Moment) -> bool {
        self.unchanged_before_ms(since).is_some_and(|before_ms| before_ms > time_ms)
    }
}

/// Locks; a panic of another holder left nothing half-done that matters here.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
