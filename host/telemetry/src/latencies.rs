//! Durations as a summary and a histogram, with the buckets and quantiles of Prometheus' own
//! metrics of queries and notifications.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Upper bounds of the histogram, in seconds.
const BOUNDS: [f64; 4] = [0.01, 0.1, 1.0, 10.0];

const QUANTILES: [f64; 3] = [0.5, 0.9, 0.99];

/// Quantiles are computed from observations up to this age (the default of client_golang), and from
/// at most `RECENT_MAX`.
const RECENT_AGE: Duration = Duration::from_secs(600);
const RECENT_MAX: usize = 500;

/// Observed durations.
#[derive(Debug, Default)]
pub struct Latencies {
    /// Number of observations in each bucket, not cumulative.
    counts: [u64; BOUNDS.len()],
    /// Number of observations.
    pub count: u64,
    /// Their sum.
    pub seconds: f64,
    /// The newest observations, oldest first.
    recent: VecDeque<(Instant, f64)>,
}

impl Latencies {
    /// Records a duration that was observed now.
    pub fn add(&mut self, now: Instant, took: Duration) {
        let seconds = took.as_secs_f64();
        // An observation above the last bound is only in bucket `+Inf`, which is `count`.
        let bucket = BOUNDS.iter().position(|bound| seconds <= *bound);
        if let Some(count) = bucket.and_then(|bucket| self.counts.get_mut(bucket)) {
            *count += 1;
        }
        self.count += 1;
        self.seconds += seconds;
        if self.recent.len() == RECENT_MAX {
            self.recent.pop_front();
        }
        self.recent.push_back((now, seconds));
    }

    /// Returns upper bounds with cumulative counts.
    pub fn buckets(&self) -> Vec<(f64, u64)> {
        let mut below = 0;
        let buckets = BOUNDS.iter().zip(self.counts).map(|(bound, count)| {
            below += count;
            (*bound, below)
        });
        buckets.collect()
    }

    /// Returns quantiles of the recent observations; NaN if there are none.
    pub fn quantiles(&self, now: Instant) -> Vec<(f64, f64)> {
        let is_recent =
            |(at, _): &&(Instant, f64)| now.saturating_duration_since(*at) <= RECENT_AGE;
        let recent = self.recent.iter().filter(is_recent).map(|(_, seconds)| *seconds);
        let mut recent: Vec<f64> = recent.collect();
        recent.sort_unstable_by(f64::total_cmp);
        let of = |quantile: f64| {
            let rank = (quantile * recent.len() as f64).ceil() as usize;
            (quantile, recent.get(rank.saturating_sub(1)).copied().unwrap_or(f64::NAN))
        };
        QUANTILES.map(of).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_last_minutes() {
        let mut latencies = Latencies::default();
        let now = Instant::now();
        assert!(latencies.quantiles(now).iter().all(|(_, value)| value.is_nan()));
        (1..=1000).for_each(|ms| latencies.add(now, Duration::from_millis(ms)));
        assert_eq!(latencies.quantiles(now), [(0.5, 0.75), (0.9, 0.95), (0.99, 0.995)]);
        assert_eq!(latencies.buckets(), [(0.01, 10), (0.1, 100), (1.0, 1000), (10.0, 1000)]);
        assert_eq!(latencies.count, 1000);
        let later = now + RECENT_AGE + Duration::from_secs(1);
        assert!(latencies.quantiles(later).iter().all(|(_, value)| value.is_nan()));
    }
}
