//! The wall clock as a trait, so that tests can set it. Waits use tokio's timers.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub trait Clock: Send + Sync + 'static {
    /// Returns the time since the Unix epoch.
    fn now(&self) -> Duration;

    fn now_ms(&self) -> i64 {
        milliseconds(self.now())
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Duration {
        // A clock before the epoch is not set yet, and is read as the epoch.
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
    }
}

/// Converts a duration since the epoch to milliseconds, saturating.
pub fn milliseconds(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}
