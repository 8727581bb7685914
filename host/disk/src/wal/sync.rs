//! When the log is synced: the policy, and the timer for it.

use std::time::{Duration, Instant};

/// How long a record may be written but not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncPolicy {
    /// As long as the operating system likes. A power cut may cost minutes of records, and damage
    /// that needs skipping; a crash of the process costs nothing.
    Off,
    /// About this long.
    Interval(Duration),
    /// Until the group of appends it belongs to is answered.
    Always,
    /// As long, but until then it is not even written: it is gathered in this process's memory. A
    /// crash of the process costs as much as a power cut; the flash has the least to do.
    Batch {
        /// About this long.
        interval: Duration,
        /// Bytes of records that are gathered at most.
        bytes_max: usize,
    },
}

impl SyncPolicy {
    /// Bytes of records that are gathered in memory at most.
    pub fn gathered_bytes_max(self) -> usize {
        match self {
            SyncPolicy::Batch { bytes_max, .. } => bytes_max,
            SyncPolicy::Off | SyncPolicy::Interval(_) | SyncPolicy::Always => 0,
        }
    }
}

/// Upstream flushes only when a segment ends; a second is what an edge node can stand to lose.
pub const SYNC_INTERVAL_DEFAULT: Duration = Duration::from_secs(1);

/// Default of how long records are buffered.
pub const BATCH_INTERVAL_DEFAULT: Duration = Duration::from_secs(300);

impl Default for SyncPolicy {
    fn default() -> SyncPolicy {
        SyncPolicy::Interval(SYNC_INTERVAL_DEFAULT)
    }
}

/// Remembers since when something is unsynced.
#[derive(Clone, Copy, Debug)]
pub struct SyncClock {
    policy: SyncPolicy,
    unsynced_since: Option<Instant>,
    /// When to write again what could not be written.
    again_at: Option<Instant>,
}

/// Pause before gathered records that could not be written are tried again.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

impl SyncClock {
    /// Nothing is unsynced yet.
    pub fn new(policy: SyncPolicy) -> SyncClock {
        SyncClock { policy, unsynced_since: None, again_at: None }
    }

    /// Records were written at this moment.
    pub fn written(&mut self, now: Instant) {
        self.unsynced_since.get_or_insert(now);
    }

    /// A sync was done or tried: after a failure, another sync is of no use.
    pub fn synced(&mut self) {
        (self.unsynced_since, self.again_at) = (None, None);
    }

    /// Gathered records could not be written, and wait.
    pub fn held(&mut self, now: Instant) {
        self.again_at = now.checked_add(AGAIN_AFTER);
    }

    /// When the policy asks for the next sync; `None` while it asks for none.
    pub fn due_at(&self) -> Option<Instant> {
        let since = self.unsynced_since?;
        match self.policy {
            SyncPolicy::Off => None,
            // Too far away for the clock is never.
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
