//! The ticks by which deadlines end instances. They rest while no instance has a deadline and no
//! call is watched: a node that does nothing wakes no processor for them.

use super::watchdog::Watchdog;
use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// How often deadlines are looked at.
pub const EPOCH_TICK: Duration = Duration::from_millis(50);

/// What the thread that ticks waits for.
#[derive(Default)]
pub(super) struct Ticker {
    /// How many instances have a deadline.
    instances: Mutex<usize>,
    begun: Condvar,
    /// Looks at calls that no tick ends.
    pub(super) watchdog: Watchdog,
}

impl Ticker {
    /// Starts the thread, which ends with the process.
    pub(super) fn start(engine: wasmtime::Engine) -> io::Result<Arc<Ticker>> {
        let ticker = Arc::new(Ticker::default());
        let waiting = Arc::clone(&ticker);
        // An operating-system thread, because a busy async runtime would delay the ticks.
        std::thread::Builder::new().name("epoch".into()).spawn(move || {
            loop {
                waiting.wait();
                // Before the tick: the first one ends no deadline early.
                std::thread::sleep(EPOCH_TICK);
                engine.increment_epoch();
                waiting.watchdog.look();
            }
        })?;
        Ok(ticker)
    }

    /// Waits until an instance has a deadline, or a watched call runs.
    fn wait(&self) {
        let instances = self.instances.lock().unwrap_or_else(PoisonError::into_inner);
        let has_nothing_to_do = |instances: &mut usize| *instances == 0 && self.watchdog.rests();
        let waited = self.begun.wait_while(instances, has_nothing_to_do);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// Wakes the thread for a watched call.
    pub(super) fn wake(&self) {
        // With the lock it either waits already or looks again before it does.
        drop(self.instances.lock().unwrap_or_else(PoisonError::into_inner));
        self.begun.notify_one();
    }

    fn count(&self, change: impl FnOnce(usize) -> usize) {
        let mut instances = self.instances.lock().unwrap_or_else(PoisonError::into_inner);
        *instances = change(*instances);
        if *instances == 1 {
            self.begun.notify_one();
        }
    }
}

/// The ticks that one instance needs, while it has a deadline.
pub(super) struct Ticks {
    ticker: Arc<Ticker>,
    are_needed: bool,
}

impl Ticks {
    pub(super) fn new(ticker: &Arc<Ticker>, are_needed: bool) -> Ticks {
        let mut ticks = Ticks { ticker: Arc::clone(ticker), are_needed: false };
        ticks.set_needed(are_needed);
        ticks
    }

    pub(super) fn set_needed(&mut self, are_needed: bool) {
        if self.are_needed != are_needed {
            self.are_needed = are_needed;
            self.ticker.count(|count| if are_needed { count + 1 } else { count - 1 });
        }
    }
}

impl Drop for Ticks {
    fn drop(&mut self) {
        self.set_needed(false);
    }
}
