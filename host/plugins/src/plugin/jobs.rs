//! Jobs: each has its own thread at low priority, and runs at multiples of its schedule.

use super::pool::Plugin;
use tidepool_lifecycle::priority::lower_priority;
use tidepool_store::{Store, millis};

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;
use tidepool_lifecycle::clock::system_now_ms;
use tokio::runtime::Handle;

/// A running job. Dropping this value ends the job after its current run.
pub struct Job {
    /// Sender whose drop ends the wait for the next run.
    _stop: Sender<()>,
}

impl Job {
    pub fn start(plugin: Arc<Plugin>, store: Store, runtime: Handle) -> io::Result<Job> {
        let (stop, stopped) = channel();
        let thread = std::thread::Builder::new().name("job".into());
        thread.spawn(move || {
            lower_priority();
            run_all(&plugin, &store, &stopped, &runtime);
        })?;
        Ok(Job { _stop: stop })
    }
}

fn run_all(plugin: &Plugin, store: &Store, stopped: &Receiver<()>, runtime: &Handle) {
    // At least 1, because a division by 0 would panic.
    let schedule_ms = millis(plugin.settings.schedule).max(1);
    loop {
        // A missed run is not made up for; the job runs at the next multiple of its schedule. The
        // clock is read each time, so that a corrected clock changes the next run.
        let now_ms = system_now_ms();
        let next_ms = (now_ms.div_euclid(schedule_ms) + 1).saturating_mul(schedule_ms);
        let wait = Duration::from_millis(next_ms.saturating_sub(now_ms).unsigned_abs());
        match stopped.recv_timeout(wait) {
            Err(RecvTimeoutError::Timeout) => {}
            _ => return,
        }
        // Until the log is replayed, every read and append would fail and be counted as a fault.
        if !store.is_ready() {
            continue;
        }
        let run = plugin.call(async |instance, time| instance.run(next_ms, time).await);
        // `call` logs and counts failures.
        let _ = runtime.block_on(run);
    }
}
