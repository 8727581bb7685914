//! A bound on bytes a second.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Lets bytes pass at a bounded rate. Clones share it.
#[derive(Clone, Debug)]
pub struct Pace {
    /// Limit in bytes a second; 0 is none.
    bytes_per_second_max: u64,
    /// Moment from which the next bytes may be sent.
    next: Arc<Mutex<Instant>>,
}

impl Pace {
    /// Creates a pace of this many bytes a second; 0 is no limit.
    pub fn new(bytes_per_second_max: u64) -> Pace {
        Pace { bytes_per_second_max, next: Arc::new(Mutex::new(Instant::now())) }
    }

    /// Takes room for some bytes; returns the moment from which they may be sent.
    pub fn reserve(&self, bytes: usize) -> Instant {
        let now = Instant::now();
        if self.bytes_per_second_max == 0 {
            return now;
        }
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        // Time that passed unused is not saved up for a burst.
        let at = (*next).max(now);
        *next = at + Duration::from_secs_f64(bytes as f64 / self.bytes_per_second_max as f64);
        at
    }

    /// Waits until this many bytes may be sent.
    pub async fn pass(&self, bytes: usize) {
        tokio::time::sleep_until(self.reserve(bytes)).await;
    }

    /// Returns the least time that this many bytes take.
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
