//! The current time on a node whose clock may be wrong.
//!
//! The system's clock is used while it is plausible: not before this software existed, and not
//! older than the newest stored sample. Otherwise (a board without a battery starts in 1970, a
//! clock was set back) the senders' timestamps are used: the median of a request's samples, and of
//! these the median over the last requests. So only a majority of wrong senders matters.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock, PoisonError};
use tidepool_lifecycle::clock::system_now_ms;

/// An earlier time, before 1 January 2025, means that the clock is not set.
const CLOCK_MS_MIN: i64 = 1_735_689_600_000;

/// Number of requests over which the median is calculated.
const REQUESTS: usize = 9;

#[derive(Debug)]
pub struct Clock {
    future_limit_ms: i64,
    /// Time of the newest stored sample; `i64::MIN` without a sample, or before it is known.
    newest_ms: AtomicI64,
    /// The same at the end of the replay.
    at_start_ms: OnceLock<i64>,
    is_doubted: AtomicBool,
    heard_ms: Mutex<VecDeque<i64>>,
}

impl Clock {
    /// Creates the clock of a node that accepts samples up to `future_limit_ms` ahead of the clock.
    pub fn new(future_limit_ms: i64) -> Clock {
        Clock {
            future_limit_ms,
            newest_ms: AtomicI64::new(i64::MIN),
            at_start_ms: OnceLock::new(),
            is_doubted: AtomicBool::new(false),
            heard_ms: Mutex::default(),
        }
    }

    /// Returns the system's time, or the senders' time while the clock is doubted.
    pub fn now_ms(&self) -> i64 {
        self.judge(system_now_ms())
    }

    /// Records the time of the newest stored sample.
    pub fn stored(&self, newest_ms: i64) {
        self.at_start_ms.get_or_init(|| newest_ms);
        self.newest_ms.store(newest_ms, Relaxed);
    }

    /// Returns the time of the newest stored sample; `i64::MIN` without one.
    pub fn newest_ms(&self) -> i64 {
        self.newest_ms.load(Relaxed)
    }

    /// Returns the time of the newest sample of earlier runs: about when the last one ended.
    pub fn at_start_ms(&self) -> Option<i64> {
        self.at_start_ms.get().copied().filter(|newest_ms| *newest_ms > i64::MIN)
    }

    /// Returns whether the system's clock cannot be right.
    pub fn is_doubted(&self) -> bool {
        self.doubts(system_now_ms())
    }

    /// Records the sample time of a request. Needed only while the clock is doubted.
    pub fn heard(&self, sample_time_ms: i64) {
        let mut heard_ms = self.heard_ms.lock().unwrap_or_else(PoisonError::into_inner);
        heard_ms.truncate(REQUESTS - 1);
        heard_ms.push_front(sample_time_ms);
    }

    fn doubts(&self, system_ms: i64) -> bool {
        let newest_ms = self.newest_ms.load(Relaxed);
        // Samples may be ahead by the limit, so only one beyond it proves the clock wrong.
        system_ms < CLOCK_MS_MIN || newest_ms > system_ms.saturating_add(self.future_limit_ms)
    }

    fn judge(&self, system_ms: i64) -> i64 {
        let is_doubted = self.doubts(system_ms);
        let mut heard_ms = self.heard_ms.lock().unwrap_or_else(PoisonError::into_inner);
        // Logged only when the verdict changes, because every write requests the time.
        if self.is_doubted.swap(is_doubted, Relaxed) != is_doubted {
            let (clock_ms, newest_ms) = (system_ms, self.newest_ms.load(Relaxed));
            match is_doubted {
                true => tracing::warn!(
                    clock_ms,
                    newest_ms,
                    "this node's clock is before 2025 or behind the newest stored sample; \
                     senders' timestamps are used until it is corrected"
                ),
                false => tracing::info!(clock_ms, "this node's clock is plausible again"),
            }
        }
        if !is_doubted {
            // Times of an earlier period of doubt are useless in the next one.
            heard_ms.clear();
            return system_ms;
        }
        let mut sorted: Vec<i64> = heard_ms.iter().copied().collect();
        sorted.sort_unstable();
        sorted.get(sorted.len() / 2).copied().unwrap_or(system_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_MS: i64 = 1_800_000_000_000;
    const HOUR_MS: i64 = 3_600_000;

    #[test]
    fn a_plausible_clock_counts() {
        let clock = Clock::new(600_000);
        assert_eq!(clock.judge(NOW_MS), NOW_MS);
        clock.stored(NOW_MS + 600_000);
        clock.heard(5);
        assert_eq!(clock.judge(NOW_MS), NOW_MS);
        assert_eq!(clock.judge(CLOCK_MS_MIN + 1), CLOCK_MS_MIN + 1, "no one was heard since");
    }

    #[test]
    fn senders_tell_what_an_implausible_clock_cannot() {
        let clock = Clock::new(600_000);
        assert_eq!(clock.judge(1000), 1000, "no sender was heard");
        clock.heard(NOW_MS);
        assert_eq!(clock.judge(1000), NOW_MS);
        // One sender is wrong, at first and again later.
        for time_ms in [0, NOW_MS + 1, NOW_MS + 2, i64::MAX, NOW_MS + 3] {
            clock.heard(time_ms);
        }
        assert_eq!(clock.judge(1000), NOW_MS + 2);
        for _ in 0..REQUESTS {
            clock.heard(NOW_MS + HOUR_MS);
        }
        assert_eq!(clock.judge(1000), NOW_MS + HOUR_MS);
        // The clock is set, then set back.
        clock.stored(NOW_MS + HOUR_MS);
        assert_eq!(clock.judge(NOW_MS + 2 * HOUR_MS), NOW_MS + 2 * HOUR_MS);
        assert!(!clock.is_doubted.load(Relaxed));
        clock.heard(NOW_MS + HOUR_MS + 1);
        assert_eq!(clock.judge(NOW_MS - HOUR_MS), NOW_MS + HOUR_MS + 1);
        assert!(clock.is_doubted.load(Relaxed));
    }
}
