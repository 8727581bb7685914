//! Latency of requests beside other work, compared with the same requests alone.

use std::time::Duration;

/// Delay that the noise of a busy machine with two cores may add to a quiet run.
const NOISE: Duration = Duration::from_millis(50);

#[derive(Clone, Debug)]
pub struct Latencies {
    sorted: Vec<Duration>,
}

impl Latencies {
    /// Takes latencies in any order.
    ///
    /// # Panics
    ///
    /// If there are none.
    pub fn new(mut all: Vec<Duration>) -> Latencies {
        assert!(!all.is_empty(), "no request was sent");
        all.sort_unstable();
        Latencies { sorted: all }
    }

    /// Returns a percentile of the latencies; 100 is the longest one.
    pub fn percentile(&self, percent: usize) -> Duration {
        self.sorted[(self.sorted.len() * percent / 100).min(self.sorted.len() - 1)]
    }

    /// Returns the latency of the slowest request.
    pub fn longest(&self) -> Duration {
        self.percentile(100)
    }

    /// Asserts that a percentile was not delayed: it equals that of a quiet run, within a factor of
    /// three or within noise.
    #[track_caller]
    pub fn assert_not_held_up(&self, percent: usize, what: &str, quiet: &Latencies) {
        let (taken, quiet_taken) = (self.percentile(percent), quiet.percentile(percent));
        let text = format!(
            "beside {what}: {} requests, p50 {:?}, p{percent} {taken:?}; beside nothing p50 {:?}, p{percent} {quiet_taken:?}",
            self.sorted.len(),
            self.percentile(50),
            quiet.percentile(50),
        );
        println!("{text}");
        let most = (quiet_taken * 3).max(quiet_taken + NOISE);
        assert!(taken <= most, "{text}");
    }
}

/// Returns the median; of an even number of times, the larger of both in the middle.
pub fn median(times: impl IntoIterator<Item = Duration>) -> Duration {
    let mut times: Vec<Duration> = times.into_iter().collect();
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(count: u64, ms: u64) -> Vec<Duration> {
        vec![Duration::from_millis(ms); count as usize]
    }

    #[test]
    fn a_percentile_is_that_of_the_sorted_times() {
        let shuffled = (1..=200).map(|number| Duration::from_millis(number * 77 % 201));
        let all = Latencies::new(shuffled.collect());
        let ms = |percent| all.percentile(percent).as_millis();
        // Each number from 1 to 200 occurs once: 100 are less than 101, 198 less than 199.
        assert_eq!((ms(0), ms(50), ms(99), ms(100)), (1, 101, 199, 200));
        assert_eq!(all.longest().as_millis(), 200);
        let one = Latencies::new(of(1, 7));
        assert_eq!((one.percentile(50), one.percentile(99)), (one.longest(), one.longest()));
    }

    #[test]
    fn a_median_needs_no_order() {
        assert_eq!(median([9, 1, 5].map(Duration::from_millis)).as_millis(), 5);
        assert_eq!(median([1, 4, 2, 9].map(Duration::from_millis)).as_millis(), 4);
        assert_eq!(median([]), Duration::ZERO);
    }

    #[test]
    fn few_slow_requests_of_a_hundred_are_noticed() {
        let quiet = Latencies::new(of(100, 2));
        Latencies::new(of(100, 52)).assert_not_held_up(99, "noise", &quiet);
        Latencies::new([of(990, 2), of(9, 900)].concat()).assert_not_held_up(99, "few", &quiet);
        let slow = Latencies::new([of(98, 2), of(2, 53)].concat());
        assert!(std::panic::catch_unwind(|| slow.assert_not_held_up(99, "slow", &quiet)).is_err());
        slow.assert_not_held_up(90, "few of a busy machine", &quiet);
    }
}
