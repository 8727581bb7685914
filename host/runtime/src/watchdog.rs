//! Finds uninterruptible calls that take too long.
//!
//! An instance of uninterruptible machine code has a `Watch` (`watch`), which sets a flag at the
//! begin of each call and clears it at the end. That is cheap, since ingestion makes hundreds of
//! thousands of calls. The thread that ticks reads the flags, and reports a call beyond its limit
//! to the instance's owner.
//!
//! Time is counted in ticks while calls run. So a call is not overdue merely because the process
//! was stopped or the machine slept.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Time between two checks of deadlines.
pub const EPOCH_TICK: Duration = Duration::from_millis(50);

/// Maximum total time of calls, and their purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallLimit {
    /// Purpose of the calls, as logs name it.
    pub what: &'static str,
    /// Maximum time of the calls together.
    pub time: Duration,
}

/// A call that exceeds its limit.
#[derive(Clone, Copy, Debug)]
pub struct Overdue {
    pub limit: CallLimit,
    /// Time at which the limit was set.
    pub since: Instant,
}

/// Action for an overdue call.
pub(super) type Act = Box<dyn Fn(Overdue) + Send>;

#[derive(Default)]
pub(super) struct Watchdog {
    pub(super) ticks: AtomicU64,
    /// Whether the thread that ticks waits for a call to begin, or is about to wait.
    pub(super) rests: AtomicBool,
    pub(super) instances: Mutex<Vec<Arc<Watched>>>,
}

/// Flag, limit and action of one instance.
#[derive(Default)]
pub(super) struct Watched {
    pub(super) runs: AtomicBool,
    pub(super) limit: Mutex<Option<Limit>>,
    pub(super) act: Mutex<Option<Act>>,
}

pub(super) struct Limit {
    /// The tick from which on a running call is overdue.
    pub(super) ends_at: u64,
    pub(super) overdue: Overdue,
}

impl Watchdog {
    /// Counts a tick, and reports overdue calls.
    pub(super) fn look(&self) {
        let ticks = self.ticks.fetch_add(1, Relaxed) + 1;
        for watched in lock(&self.instances).iter() {
            // The flag is read before the limit. By then a later call may have set a new limit,
            // which ends later still. The limit is removed, so that it is reported once.
            if watched.runs.load(SeqCst)
                && let Some(limit) = lock(&watched.limit).take_if(|limit| limit.ends_at <= ticks)
                && let Some(act) = &*lock(&watched.act)
            {
                act(limit.overdue);
            }
        }
    }

    /// Returns whether no call runs. If so, the next call that begins wakes the thread that ticks.
    pub(super) fn rests(&self) -> bool {
        // Set before the check: a call that begins after it sees the flag and wakes the thread.
        self.rests.store(true, SeqCst);
        let rests = !lock(&self.instances).iter().any(|watched| watched.runs.load(SeqCst));
        self.rests.store(rests, SeqCst);
        rests
    }

    /// Notes that the thread that ticks is being woken, so that no other call wakes it again.
    pub(super) fn end_rest(&self) {
        self.rests.store(false, SeqCst);
    }
}

/// Locks a mutex. A panic of another thread that held it leaves no half-changed state that matters.
pub(super) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
