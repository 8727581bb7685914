//! The policy that decides when the log is synced, and the clock that applies the policy.

use std::time::{Duration, Instant};

/// Longest time between writing a record and syncing it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncPolicy {
    /// As long as the operating system allows. A power cut may lose minutes of records and cause
    /// damage, which replay skips; a crash of the process loses nothing.
    Off,
    Interval(Duration),
    /// Until the append of the record is answered, together with other appends.
    Always,
    /// About `interval`. Until then records are only buffered in this process's memory, so a crash
    /// of the process loses as much as a power cut. Flash wears out least.
    Batch {
        interval: Duration,
        /// Maximum size of the buffered records.
        bytes_max: usize,
    },
}

impl SyncPolicy {
    /// Maximum size of the records buffered in memory, in bytes.
    pub fn gathered_bytes_max(self) -> usize {
        match self {
            SyncPolicy::Batch { bytes_max, .. } => bytes_max,
            SyncPolicy::Off | SyncPolicy::Interval(_) | SyncPolicy::Always => 0,
        }
    }
}

/// Upstream syncs only when a segment ends. On an edge node a power cut may cost a second of
/// records.
pub const SYNC_INTERVAL_DEFAULT: Duration = Duration::from_secs(1);

/// Default time for which records are buffered.
pub const BATCH_INTERVAL_DEFAULT: Duration = Duration::from_secs(300);

impl Default for SyncPolicy {
    fn default() -> SyncPolicy {
        SyncPolicy::Interval(SYNC_INTERVAL_DEFAULT)
    }
}

/// Tracks the time since which records are unsynced.
#[derive(Clone, Copy, Debug)]
pub struct SyncClock {
    policy: SyncPolicy,
    unsynced_since: Option<Instant>,
    /// Time at which a failed write is retried.
    again_at: Option<Instant>,
}

/// Pause before a failed write of buffered records is retried.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

impl SyncClock {
    /// Creates a clock without unsynced records.
    pub fn new(policy: SyncPolicy) -> SyncClock {
        SyncClock { policy, unsynced_since: None, again_at: None }
    }

    /// Notes that records were written at `now`.
    pub fn written(&mut self, now: Instant) {
        // The oldest unsynced record decides when a sync is due.
        self.unsynced_since.get_or_insert(now);
    }

    /// Notes a sync, even a failed one: another sync would not make the records durable.
    pub fn synced(&mut self) {
        (self.unsynced_since, self.again_at) = (None, None);
    }

    /// Notes that buffered records could not be written and stay buffered.
    pub fn held(&mut self, now: Instant) {
        self.again_at = now.checked_add(AGAIN_AFTER);
    }

    /// Returns the time at which the policy requires the next sync; `None` while no sync is due.
    pub fn due_at(&self) -> Option<Instant> {
        let since = self.unsynced_since?;
        match self.policy {
            SyncPolicy::Off => None,
            // An overflow of the clock means that no sync will ever be due.
            SyncPolicy::Interval(interval) | SyncPolicy::Batch { interval, .. } => {
                self.again_at.or_else(|| since.checked_add(interval))
            }
            SyncPolicy::Always => Some(since),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_unsynced_write_counts() {
        let start = Instant::now();
        let second = Duration::from_secs(1);
        let mut clock = SyncClock::new(SyncPolicy::Interval(second));
        assert_eq!(clock.due_at(), None);
        clock.written(start);
        clock.written(start + second / 2);
        assert_eq!(clock.due_at(), Some(start + second));
        clock.synced();
        assert_eq!(clock.due_at(), None);
    }

    #[test]
    fn off_never_asks_and_always_asks_at_once() {
        let start = Instant::now();
        let forever = SyncPolicy::Interval(Duration::MAX);
        let expected =
            [(SyncPolicy::Off, None), (forever, None), (SyncPolicy::Always, Some(start))];
        for (policy, due_at) in expected {
            let mut clock = SyncClock::new(policy);
            clock.written(start);
            assert_eq!(clock.due_at(), due_at);
        }
    }
}
