//! The wall clock, as a parameter. Waiting goes by tokio's timers.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What tells the time.
pub trait Clock: Send + Sync + 'static {
    /// The time since the epoch.
    fn now(&self) -> Duration;

    /// The same in milliseconds.
    fn now_ms(&self) -> i64 {
        milliseconds(self.now())
    }
}

/// The clock of the system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Duration {
        // A clock before the epoch is one that is not set.
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
    }
}

/// A time since the epoch in milliseconds.
pub fn milliseconds(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}
