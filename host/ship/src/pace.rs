//! A bound on bytes a second.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Lets bytes pass at a bounded rate. Clones share it.
#[derive(Clone, Debug)]
pub struct Pace {
    /// 0 is no bound.
    bytes_per_second_max: u64,
    /// When the next bytes may go.
    next: Arc<Mutex<Instant>>,
}

impl Pace {
    /// A pace of so many bytes a second; 0 is no bound.
    pub fn new(bytes_per_second_max: u64) -> Pace {
        Pace { bytes_per_second_max, next: Arc::new(Mutex::new(Instant::now())) }
    }

    /// Takes room for so many bytes; returns when they may go.
    pub fn reserve(&self, bytes: usize) -> Instant {
        let now = Instant::now();
        if self.bytes_per_second_max == 0 {
            return now;
        }
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let at = (*next).max(now);
        *next = at + Duration::from_secs_f64(bytes as f64 / self.bytes_per_second_max as f64);
        at
    }

    /// Waits until so many bytes may go.
    pub async fn pass(&self, bytes: usize) {
        tokio::time::sleep_until(self.reserve(bytes)).await;
    }

    /// Least time that so many bytes take.
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
