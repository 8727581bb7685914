//! A limit on bytes per second.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Lets bytes pass at a limited rate. Clones share the limit.
#[derive(Clone, Debug)]
pub struct Pace {
    /// Limit in bytes per second; 0 means no limit.
    bytes_per_second_max: u64,
    /// Time from which the next bytes may be sent.
    next: Arc<Mutex<Instant>>,
}

impl Pace {
    /// Creates a limit in bytes per second; 0 means no limit.
    pub fn new(bytes_per_second_max: u64) -> Pace {
        Pace { bytes_per_second_max, next: Arc::new(Mutex::new(Instant::now())) }
    }

    /// Reserves the sending of some bytes; returns the time from which they may be sent.
    pub fn reserve(&self, bytes: usize) -> Instant {
        let now = Instant::now();
        if self.bytes_per_second_max == 0 {
            return now;
        }
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        // Unused time is not saved up for a burst.
        let at = (*next).max(now);
        *next = at + Duration::from_secs_f64(bytes as f64 / self.bytes_per_second_max as f64);
        at
    }

    /// Waits until `bytes` bytes may be sent.
    pub async fn pass(&self, bytes: usize) {
        tokio::time::sleep_until(self.reserve(bytes)).await;
    }

    /// Returns the time that `bytes` bytes need at the limit.
    #[cfg(feature = "cloud")]
    pub fn least(&self, bytes: u64) -> Duration {
        match self.bytes_per_second_max {
            0 => Duration::ZERO,
            max => Duration::from_secs(bytes / max),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_pace_shares_out_time() {
        let pace = Pace::new(1000);
        let first = pace.reserve(500);
        let second = pace.reserve(2000);
        let third = pace.reserve(1);
        assert!(second - first >= Duration::from_millis(499));
        assert_eq!(third - second, Duration::from_secs(2));
        let free = Pace::new(0);
        assert!(free.reserve(1 << 40) <= Instant::now());
        assert!(free.reserve(1) <= Instant::now());
    }
}
