//! Notes begin and end of the calls of one instance for the [`watchdog`](super::watchdog).

use super::ticker::Ticker;
use super::watchdog::{CallLimit, EPOCH_TICK, Limit, Overdue, Watched, lock};
use std::sync::Arc;
use std::sync::atomic::{Ordering::Relaxed, Ordering::SeqCst};
use std::time::Instant;

/// The flag, limit and action of one instance, shared with the watchdog.
pub(super) struct Watch {
    ticker: Arc<Ticker>,
    watched: Arc<Watched>,
}

/// A running call, which ends when this value is dropped.
pub(super) struct Running<'a>(&'a Watched);

impl Watch {
    pub(super) fn new(ticker: &Arc<Ticker>) -> Watch {
        let watched = Arc::default();
        lock(&ticker.watchdog.instances).push(Arc::clone(&watched));
        Watch { ticker: Arc::clone(ticker), watched }
    }

    /// Sets the action for an overdue call, which runs on the thread that ticks.
    pub(super) fn set_act(&self, act: impl Fn(Overdue) + Send + 'static) {
        *lock(&self.watched.act) = Some(Box::new(act));
    }

    /// Limits the total time of all calls from now on.
    pub(super) fn set_limit(&self, limit: Option<CallLimit>) {
        let ticks = self.ticker.watchdog.ticks.load(Relaxed);
        *lock(&self.watched.limit) = limit.map(|limit| {
            // One tick more, because the next tick may come immediately.
            let last = limit.time.as_millis().div_ceil(EPOCH_TICK.as_millis()) as u64 + 1;
            let overdue = Overdue { limit, since: Instant::now() };
            Limit { ends_at: ticks.saturating_add(last), overdue }
        });
    }

    /// Notes the begin of a call. The call counts as running until the returned value is dropped.
    pub(super) fn begin(&self) -> Running<'_> {
        // Sequentially consistent: either this thread sees that the ticker rests and wakes it, or
        // the ticker sees the running call and does not rest.
        self.watched.runs.store(true, SeqCst);
        if self.ticker.watchdog.rests.load(SeqCst) {
            self.ticker.wake();
        }
        Running(&self.watched)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut instances = lock(&self.ticker.watchdog.instances);
        instances.retain(|watched| !Arc::ptr_eq(watched, &self.watched));
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.runs.store(false, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    const WRITE: CallLimit = CallLimit { what: "a write", time: Duration::from_millis(100) };

    /// A ticker without a thread; the test makes its ticks.
    fn watch() -> (Arc<Ticker>, Watch) {
        let ticker = Arc::<Ticker>::default();
        let watch = Watch::new(&ticker);
        (ticker, watch)
    }

    #[test]
    fn only_a_running_call_is_overdue_and_only_once() {
        let (ticker, watch) = watch();
        let (tell, told) = channel();
        watch.set_act(move |overdue: Overdue| tell.send(overdue.limit).expect("a receiver"));
        let tick = |times| (0..times).for_each(|_| ticker.watchdog.look());
        watch.set_limit(Some(WRITE));
        tick(10);
        assert!(told.try_recv().is_err(), "no call runs");
        watch.set_limit(Some(WRITE));
        let running = watch.begin();
        tick(2);
        assert!(
            told.try_recv().is_err(),
            "100 ms are two ticks after the one that may come at once"
        );
        tick(1);
        assert_eq!(told.try_recv(), Ok(WRITE));
        tick(10);
        assert!(told.try_recv().is_err(), "once is enough");
        watch.set_limit(Some(WRITE));
        tick(2);
        watch.set_limit(Some(WRITE));
        tick(2);
        watch.set_limit(None);
        tick(10);
        assert!(told.try_recv().is_err(), "each limit counts from its beginning");
        drop(running);
    }

    #[test]
    fn it_rests_while_no_call_runs() {
        let (ticker, watch) = watch();
        assert!(ticker.watchdog.rests());
        let running = watch.begin();
        assert!(!ticker.watchdog.rests());
        drop(running);
        assert!(ticker.watchdog.rests());
        let _running = watch.begin();
        drop(watch.begin());
        assert!(ticker.watchdog.rests(), "one instance makes one call at a time");
        drop(watch.begin());
        assert!(!ticker.watchdog.rests.load(SeqCst), "the first call has woken the thread");
    }

    /// A call wakes the ticker's real thread, which then finds it.
    #[test]
    fn a_call_wakes_the_thread_that_rests() -> Result<(), Box<dyn std::error::Error>> {
        let ticker = Ticker::start(wasmtime::Engine::default())?;
        let watch = Watch::new(&ticker);
        let (tell, told) = channel();
        watch.set_act(move |overdue: Overdue| tell.send(overdue.limit.what).expect("a receiver"));
        for _ in 0..3 {
            while !ticker.watchdog.rests.load(SeqCst) {
                std::thread::yield_now();
            }
            watch.set_limit(Some(WRITE));
            let running = watch.begin();
            assert_eq!(told.recv()?, "a write");
            drop(running);
        }
        Ok(())
    }
}
