//! Calls that nothing can end, and what is done about those that take too long.
//!
//! An instance of uninterruptible machine code has a `Watch` (`watch`). It notes when a call begins
//! and ends: a store of one flag each, since ingestion makes hundreds of thousands of calls. The
//! thread that ticks looks at it, and hands a call beyond its limit to whoever made the instance.
//!
//! Time is counted in ticks that passed while calls ran. So a process that was stopped, or a
//! machine that slept, ends no call.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often deadlines are looked at.
pub const EPOCH_TICK: Duration = Duration::from_millis(50);

/// How long calls may take together, and what they are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallLimit {
    /// What they do, as a log names it.
    pub what: &'static str,
    /// What they may take.
    pub time: Duration,
}

/// A call that takes longer than it may.
#[derive(Clone, Copy, Debug)]
pub struct Overdue {
    /// What it exceeds.
    pub limit: CallLimit,
    /// Since when the limit counts.
    pub since: Instant,
}

/// What is done about a call that is overdue.
pub(super) type Act = Box<dyn Fn(Overdue) + Send>;

/// All calls that are watched.
#[derive(Default)]
pub(super) struct Watchdog {
    /// Ticks so far.
    pub(super) ticks: AtomicU64,
    /// Whether the thread that ticks waits for a call to begin, or is about to.
    pub(super) rests: AtomicBool,
    pub(super) instances: Mutex<Vec<Arc<Watched>>>,
}

/// What is known of one instance.
#[derive(Default)]
pub(super) struct Watched {
    pub(super) runs: AtomicBool,
    pub(super) limit: Mutex<Option<Limit>>,
    pub(super) act: Mutex<Option<Act>>,
}

pub(super) struct Limit {
    /// With which tick a running call is overdue.
    pub(super) ends_at: u64,
    pub(super) overdue: Overdue,
}

impl Watchdog {
    /// Counts a tick, and finds calls that are overdue.
    pub(super) fn look(&self) {
        let ticks = self.ticks.fetch_add(1, Relaxed) + 1;
        for watched in lock(&self.instances).iter() {
            // In this order: a limit that is taken for that of this call may be one of a later
            // call, which is further away.
            if watched.runs.load(SeqCst)
                && let Some(limit) = lock(&watched.limit).take_if(|limit| limit.ends_at <= ticks)
                && let Some(act) = &*lock(&watched.act)
            {
                act(limit.overdue);
            }
        }
    }

    /// Whether no call runs. From then on, the first that begins wakes the thread that ticks.
    pub(super) fn rests(&self) -> bool {
        self.rests.store(true, SeqCst);
        let rests = !lock(&self.instances).iter().any(|watched| watched.runs.load(SeqCst));
        self.rests.store(rests, SeqCst);
        rests
    }

    /// The thread that ticks is being woken; no other call need do it.
    pub(super) fn end_rest(&self) {
        self.rests.store(false, SeqCst);
    }
}

/// Locks; a panic of another holder left nothing half-done that matters here.
pub(super) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
