//! The ticks by which deadlines end instances. They rest while no instance has a deadline and no
//! call is watched: a node that does nothing wakes no processor for them.

use super::watchdog::{EPOCH_TICK, Watchdog};
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// What the thread that ticks waits for.
#[derive(Default)]
pub(super) struct Ticker {
    state: Mutex<State>,
    begun: Condvar,
    /// Looks at calls that no tick ends.
    pub(super) watchdog: Watchdog,
}

#[derive(Default)]
struct State {
    /// How many instances have a deadline.
    instances: usize,
    /// Whether the thread waits until it is woken.
    waits: bool,
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

    /// Waits until an instance has a deadline, or a watched call begins. The call may have ended
    /// since: a tick for nothing costs less than to be woken by each of many short calls.
    fn wait(&self) {
        let mut state = self.lock();
        state.waits = state.instances == 0 && self.watchdog.rests();
        let waited = self.begun.wait_while(state, |state| state.waits);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// Wakes the thread for a watched call.
    pub(super) fn wake(&self) {
        // With the lock it either waits already or looks again before it does.
        let mut state = self.lock();
        self.watchdog.end_rest();
        self.wake_waiting(&mut state);
    }

    fn count(&self, change: impl FnOnce(usize) -> usize) {
        let mut state = self.lock();
        state.instances = change(state.instances);
        if state.instances > 0 {
            self.wake_waiting(&mut state);
        }
    }

    /// A system call, so only if it has an effect.
    fn wake_waiting(&self, state: &mut State) {
        if std::mem::take(&mut state.waits) {
            self.begun.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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
