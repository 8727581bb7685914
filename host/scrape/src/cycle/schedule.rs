//! Schedule of a target: an offset in the interval, and scrape times that are whole intervals
//! apart.
//!
//! Offsets are multiples of 100 ms, so that several targets share a time. A processor that wakes
//! then makes several scrapes, and waking is most of the cost of a small scrape.
//!
//! Source: `Target.offset` and `scrapeLoop.run` in `scrape/` of prometheus/prometheus, with exact
//! offsets. Times with equal distances compress better (prometheus/prometheus#7846).

use std::time::Duration;

/// Maximum deviation from the schedule at which samples get the scheduled time; as upstream.
const TOLERANCE_MAX: Duration = Duration::from_millis(2);

/// Distance of possible offsets, in intervals with at least [`PLACES_MIN`] offsets.
const PLACE: Duration = Duration::from_millis(100);

/// Number of possible offsets in shorter intervals.
const PLACES_MIN: u32 = 10;

/// Returns the time until the first scrape of a target. `hash` is the target's hash, `seed` the
/// server's seed.
pub fn offset(now: Duration, interval: Duration, hash: u64, seed: u64) -> Duration {
    let distance = PLACE.min(interval / PLACES_MIN).as_nanos().max(1);
    let interval = interval.as_nanos().max(1);
    let place = u128::from(hash ^ seed) % interval / distance * distance;
    // Offsets count from the epoch, so that a target keeps its offset over a restart.
    let next = interval - now.as_nanos() % interval + place;
    let next = if next > interval { next - interval } else { next };
    Duration::from_nanos(u64::try_from(next).unwrap_or(u64::MAX))
}

/// Computes the times of a target's scrapes.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    interval: Duration,
    tolerance: Duration,
    aligned: Duration,
}

impl Schedule {
    /// Creates a schedule whose first time is `start`.
    pub fn new(start: Duration, interval: Duration) -> Schedule {
        let tolerance = TOLERANCE_MAX.min(interval / 100);
        Schedule { interval, tolerance, aligned: start }
    }

    /// Returns the timestamp for a scrape that starts now: the scheduled time if it is near, even
    /// after missed ticks.
    pub fn align(&mut self, now: Duration) -> Duration {
        match now.checked_sub(self.aligned) {
            Some(ahead) => {
                let missed = ahead.as_nanos() / self.interval.as_nanos().max(1);
                // After a jump of the clock by more intervals than this, a new schedule starts.
                self.aligned = match u32::try_from(missed) {
                    Ok(missed) => self.aligned.saturating_add(self.interval.saturating_mul(missed)),
                    Err(_) => now,
                };
            }
            // Upstream would use one timestamp for all scrapes until the clock catches up.
            None if now + self.tolerance < self.aligned => self.aligned = now,
            None => {}
        }
        let is_near = now.saturating_sub(self.aligned) <= self.tolerance;
        if is_near { self.aligned } else { now }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn times_snap_to_the_schedule() {
        let mut schedule = Schedule::new(1_000_000 * MS, 1000 * MS);
        let mut align = |ms: u32| schedule.align(ms * MS).as_millis() as u32;
        assert_eq!(align(1_000_000), 1_000_000);
        assert_eq!(align(1_001_001), 1_001_000);
        assert_eq!(align(1_002_002), 1_002_000);
        assert_eq!(align(1_003_003), 1_003_003, "beyond the tolerance");
        assert_eq!(align(1_004_000), 1_004_000);
        assert_eq!(align(1_004_999), 1_004_999, "too early is no scrape of the next tick");
        assert_eq!(align(1_009_001), 1_009_000, "ticks were missed");
    }

    #[test]
    fn short_intervals_have_a_smaller_tolerance() {
        let mut schedule = Schedule::new(1000 * MS, 100 * MS);
        assert_eq!(schedule.align(1101 * MS), 1100 * MS);
        assert_eq!(schedule.align(1202 * MS), 1202 * MS);
    }

    #[test]
    fn a_clock_that_is_set_makes_no_equal_times() {
        let mut schedule = Schedule::new(1_000_000 * MS, 1000 * MS);
        assert_eq!(schedule.align(1_001_000 * MS), 1_001_000 * MS);
        assert_eq!(schedule.align(900_123 * MS), 900_123 * MS, "back");
        assert_eq!(schedule.align(901_124 * MS), 901_123 * MS);
        let far = Duration::from_secs(1_700_000_000);
        let behind = far - schedule.align(far);
        assert!(behind < 1000 * MS, "ahead by {behind:?}");
        let eternal = Duration::from_secs(u64::from(u32::MAX) * 1000);
        assert_eq!(schedule.align(eternal), eternal);
    }

    /// Follows the upstream tests TestTargetOffset, TestScrapeOffsetDistribution.
    #[test]
    fn offsets_spread_over_the_interval() {
        let interval = Duration::from_secs(10);
        let mut buckets = [0u32; 10];
        for number in 0..10_000u64 {
            let hash = crate::target::fnv(17, &number.to_le_bytes());
            for seed in [0, 77] {
                let first = offset(Duration::from_millis(123_456), interval, hash, seed);
                let later = offset(Duration::from_millis(125_456), interval, hash, seed);
                assert!(first <= interval && later <= interval);
                let place =
                    |at: Duration, offset: Duration| (at + offset).as_nanos() % interval.as_nanos();
                let same = place(Duration::from_millis(123_456), first);
                assert_eq!(same, place(Duration::from_millis(125_456), later));
                buckets[(first.as_secs() % 10) as usize] += 1;
            }
        }
        assert!(buckets.iter().all(|count| count.abs_diff(2000) < 300), "{buckets:?}");
    }

    /// Each target has a place of the grid, and each place about as many targets.
    #[test]
    fn targets_meet_on_a_grid() {
        for (interval_ms, places, distance_ms) in
            [(15_000, 150, 100), (1_000, 10, 100), (50, 10, 5)]
        {
            let interval = interval_ms * MS;
            let mut buckets = vec![0u32; places];
            for number in 0..100 * places as u64 {
                let hash = crate::target::fnv(17, &number.to_le_bytes());
                let now = Duration::from_nanos(123_456_789_123 + number);
                let first = now + offset(now, interval, hash, 5);
                assert_eq!(first.as_nanos() % (distance_ms * MS).as_nanos(), 0);
                let place = first.as_nanos() % interval.as_nanos() / (distance_ms * MS).as_nanos();
                buckets[place as usize] += 1;
            }
            assert!(buckets.iter().all(|count| count.abs_diff(100) < 50), "{buckets:?}");
        }
    }
}
