//! Progress of delivery, as a time. The lag is the time from it to the newest stored sample.
//!
//! The progress is the time of the newest delivered sample, or of the newest stored sample at a
//! time when no row was undelivered. It is written with the position, so that the lag is known
//! after a restart even while the receiver is unreachable.

use std::time::{Duration, Instant};

#[derive(Debug)]
pub(super) struct Progress {
    /// Samples before this time are delivered, in the order of sending. `None` for a destination
    /// that started with an empty store and has delivered nothing.
    delivered_ms: Option<i64>,
    /// Time at which the destination's thread started, by the node's clock.
    begun_ms: i64,
    /// Time of a look at the store, and the time of its newest sample then.
    seen: Option<(Instant, i64)>,
    /// Maximum time from storing a sample until it is in the log.
    settles: Duration,
}

/// State of the store and the log when the progress is updated.
pub(super) struct Observation {
    pub now: Instant,
    /// Times of the oldest and the newest stored sample.
    pub stored_ms: Option<(i64, i64)>,
    /// Time since which the log has been read to its end.
    pub log_ended: Option<Instant>,
    /// Whether any row is undelivered.
    pub waits: bool,
}

impl Progress {
    /// Continues from the progress of an earlier run, if there is any.
    pub fn new(delivered_ms: Option<i64>, begun_ms: i64, settles: Duration) -> Progress {
        Progress { delivered_ms, begun_ms, seen: None, settles }
    }

    pub fn delivered_ms(&self) -> Option<i64> {
        self.delivered_ms
    }

    /// Sets the progress of a new destination to the time of the newest stored sample.
    pub fn begin(&mut self, newest_ms: i64) {
        self.delivered_ms.get_or_insert(newest_ms);
    }

    /// Records a delivered request by the time of its newest sample.
    pub fn delivered(&mut self, newest_ms: i64) {
        self.delivered_ms = self.delivered_ms.max(Some(newest_ms));
    }

    /// Updates the progress once a second.
    pub fn look(&mut self, look: &Observation) {
        let Some((oldest_ms, newest_ms)) = look.stored_ms else { return };
        let begun_ms = self.begun_ms;
        // Nothing was delivered yet, so the lag is measured from the oldest sample.
        let delivered_ms = self.delivered_ms.get_or_insert_with(|| oldest_ms.min(begun_ms));
        // A delivered sample with a time after all others, such as by a wrong clock, was deleted.
        *delivered_ms = (*delivered_ms).min(newest_ms);
        if let (Some((at, seen_ms)), Some(log_ended), false) =
            (self.seen, look.log_ended, look.waits)
            && log_ended >= at + self.settles
        {
            // The log was read to its end since that look, and no row is undelivered: the newer
            // samples were delivered, or were not for this destination.
            *delivered_ms = (*delivered_ms).max(seen_ms.min(newest_ms));
            self.seen = None;
        }
        self.seen.get_or_insert((look.now, newest_ms));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(now: Instant, stored_ms: Option<(i64, i64)>) -> Observation {
        Observation { now, stored_ms, log_ended: None, waits: true }
    }

    #[test]
    fn what_was_never_delivered_lags_from_its_beginning() {
        let now = Instant::now();
        // An empty store: the first sample is the first that waits.
        let mut progress = Progress::new(None, 50_000, Duration::ZERO);
        progress.look(&look(now, None));
        assert_eq!(progress.delivered_ms(), None);
        progress.look(&look(now, Some((10_000, 20_000))));
        assert_eq!(progress.delivered_ms(), Some(10_000));
        progress.look(&look(now, Some((10_000, 90_000))));
        assert_eq!(progress.delivered_ms(), Some(10_000));
        // Samples of now are counted from when it began.
        let mut progress = Progress::new(None, 50_000, Duration::ZERO);
        progress.look(&look(now, Some((65_000, 65_000))));
        assert_eq!(progress.delivered_ms(), Some(50_000));
        // One that begins behind what is stored already.
        let mut progress = Progress::new(None, 50_000, Duration::ZERO);
        progress.begin(40_000);
        progress.look(&look(now, Some((10_000, 60_000))));
        assert_eq!(progress.delivered_ms(), Some(40_000));
        // One that goes on.
        let mut progress = Progress::new(Some(7), 50_000, Duration::ZERO);
        progress.begin(40_000);
        progress.look(&look(now, Some((1, 60_000))));
        assert_eq!(progress.delivered_ms(), Some(7));
        progress.delivered(55_000);
        progress.delivered(54_000);
        assert_eq!(progress.delivered_ms(), Some(55_000));
    }

    #[test]
    fn where_nothing_waits_nothing_lags() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let settles = Duration::from_secs(10);
        let mut progress = Progress::new(Some(1_000), 0, settles);
        let look = |now, log_ended, waits, newest_ms| Observation {
            now: at(now),
            stored_ms: Some((0, newest_ms)),
            log_ended: Some(at(log_ended)),
            waits,
        };
        progress.look(&look(1, 1, false, 2_000));
        // What was stored a moment ago may not be in the log yet.
        progress.look(&look(2, 2, false, 3_000));
        assert_eq!(progress.delivered_ms(), Some(1_000));
        // It was read, and waits.
        progress.look(&look(12, 12, true, 4_000));
        assert_eq!(progress.delivered_ms(), Some(1_000));
        progress.look(&look(13, 13, false, 5_000));
        assert_eq!(progress.delivered_ms(), Some(2_000), "all that was stored at the first look");
        progress.look(&look(24, 24, false, 6_000));
        assert_eq!(progress.delivered_ms(), Some(5_000));
    }

    #[test]
    fn a_sample_of_the_future_that_is_deleted_hides_no_lag() {
        let mut progress = Progress::new(Some(9_000_000), 0, Duration::ZERO);
        progress.look(&look(Instant::now(), Some((0, 5_000))));
        assert_eq!(progress.delivered_ms(), Some(5_000));
    }
}
