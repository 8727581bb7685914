//! The ticks of wasmtime's epoch, by which deadlines end instances. They stop while no instance has
//! a deadline and no call is watched, so that an idle node does not wake the processor.

use super::watchdog::{EPOCH_TICK, Watchdog};
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// State that instances share with the thread that ticks.
#[derive(Default)]
pub(super) struct Ticker {
    state: Mutex<State>,
    begun: Condvar,
    /// Checks the calls that ticks cannot end.
    pub(super) watchdog: Watchdog,
}

#[derive(Default)]
struct State {
    /// Number of instances with a deadline.
    instances: usize,
    /// Whether the thread sleeps until it is woken.
    waits: bool,
}

impl Ticker {
    /// Starts the thread, which runs as long as the process.
    pub(super) fn start(engine: wasmtime::Engine) -> io::Result<Arc<Ticker>> {
        let ticker = Arc::new(Ticker::default());
        let waiting = Arc::clone(&ticker);
        // An operating-system thread, because a busy async runtime would delay the ticks.
        std::thread::Builder::new().name("epoch".into()).spawn(move || {
            loop {
                waiting.wait();
                // The sleep comes before the tick, so that the first tick does not end a call
                // early.
                std::thread::sleep(EPOCH_TICK);
                engine.increment_epoch();
                waiting.watchdog.look();
            }
        })?;
        Ok(ticker)
    }

    /// Waits until an instance has a deadline, or a watched call begins. That call may have ended
    /// by then: an unneeded tick costs less than a wake-up for each of many short calls.
    fn wait(&self) {
        let mut state = self.lock();
        state.waits = state.instances == 0 && self.watchdog.rests();
        // Only `wake_waiting` clears `waits`, so a spurious wake-up changes nothing.
        let waited = self.begun.wait_while(state, |state| state.waits);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// Wakes the thread for a watched call.
    pub(super) fn wake(&self) {
        // Under the lock, because the thread then either waits or checks again before it waits.
        let mut state = self.lock();
        self.watchdog.end_rest();
        self.wake_waiting(&mut state);
    }

    fn count(&self, change: impl FnOnce(usize) -> usize) {
        let mut state = self.lock();
        state.instances = change(state.instances);
        // A smaller count needs no wake-up: the thread reads the count after its next tick.
        if state.instances > 0 {
            self.wake_waiting(&mut state);
        }
    }

    /// Wakes the thread only if it waits, since a notification is a system call.
    fn wake_waiting(&self, state: &mut State) {
        if std::mem::take(&mut state.waits) {
            self.begun.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An instance's registration with the ticker: ticks run while at least one instance needs them.
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
        // All instances share the ticker's lock, so it is taken only for changes.
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
