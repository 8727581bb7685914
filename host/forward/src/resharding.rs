//! Computes the number of shards of a destination: upstream's control law, with its constants
//! (prometheus/prometheus, `storage/remote/queue_manager.go`, `calculateDesiredShards`).
//!
//! The wanted number of shards is a time times a rate: the time for sending one sample, and the
//! samples to send in a second. The rate is that of new samples plus a twentieth of the backlog.

use std::time::Duration;

/// Interval at which the number of shards is computed.
pub const UPDATE_EVERY: Duration = Duration::from_secs(10);

/// Weight of the newest rate in the moving average.
const EWMA_WEIGHT: f64 = 0.2;

/// Relative difference up to which the number of shards is not changed.
const TOLERANCE: f64 = 0.3;

/// Fraction of the undelivered samples that is to be sent in a second.
const BACKLOG_PART: f64 = 0.05;

/// Delay in seconds above which the number of shards is not lowered.
const DELAY_MAX: f64 = 10.0;

/// A rate per second: an exponentially weighted moving average.
#[derive(Clone, Copy, Debug, Default)]
struct Rate {
    per_second: f64,
    counted: f64,
    is_begun: bool,
}

impl Rate {
    fn tick(&mut self, elapsed: Duration) {
        let now = std::mem::take(&mut self.counted) / elapsed.as_secs_f64().max(1e-3);
        // As in upstream's `ewma.go`, the first rate that is not zero is used without averaging.
        if self.is_begun {
            self.per_second += EWMA_WEIGHT * (now - self.per_second);
        } else if now > 0.0 {
            (self.per_second, self.is_begun) = (now, true);
        }
    }
}

/// Rates of samples and sending, counted between two computations.
#[derive(Clone, Copy, Debug, Default)]
pub struct Resharding {
    samples_in: Rate,
    samples_dropped: Rate,
    samples_out: Rate,
    send_seconds: Rate,
}

impl Resharding {
    /// Counts samples that were read from the log.
    pub fn came_in(&mut self, samples: u64) {
        self.samples_in.counted += samples as f64;
    }

    /// Counts samples read from the log that will not be sent.
    pub fn dropped(&mut self, samples: u64) {
        self.samples_dropped.counted += samples as f64;
    }

    /// Counts delivered samples, and the duration of their request.
    pub fn went_out(&mut self, samples: u64, took: Duration) {
        self.samples_out.counted += samples as f64;
        self.send_seconds.counted += took.as_secs_f64();
    }

    /// Returns the wanted number of shards, and the number as computed. `delay` is the time in
    /// seconds from the newest delivered sample to the newest stored sample.
    pub fn desired(
        &mut self,
        shards: u32,
        bounds: (u32, u32),
        delay: f64,
        elapsed: Duration,
    ) -> (u32, f64) {
        for rate in [
            &mut self.samples_in,
            &mut self.samples_dropped,
            &mut self.samples_out,
            &mut self.send_seconds,
        ] {
            rate.tick(elapsed);
        }
        let (rate_in, rate_out) = (self.samples_in.per_second, self.samples_out.per_second);
        let now = f64::from(shards);
        // Without a delivery the time for sending a sample is not known.
        if rate_out <= 0.0 {
            return (shards, now);
        }
        let kept = rate_out / (self.samples_dropped.per_second + rate_out);
        let waiting = delay * rate_in * kept;
        let seconds_per_sample = self.send_seconds.per_second / rate_out;
        let desired = seconds_per_sample * (rate_in * kept + BACKLOG_PART * waiting);
        let rounded = desired.ceil();
        let is_near = (now * (1.0 - TOLERANCE)..=now * (1.0 + TOLERANCE)).contains(&rounded);
        // With fewer shards, a large delay would grow further.
        if is_near || (delay > DELAY_MAX && rounded < now) {
            return (shards, desired);
        }
        ((rounded as u32).clamp(bounds.0, bounds.1), desired)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs equal intervals with these samples, which take this long to send.
    fn steady(samples_in: u64, samples_out: u64, seconds: f64, shards: u32, delay: f64) -> u32 {
        let mut law = Resharding::default();
        let mut wanted = shards;
        for _ in 0..10 {
            law.came_in(samples_in);
            law.went_out(samples_out, Duration::from_secs_f64(seconds));
            wanted = law.desired(shards, (1, 50), delay, UPDATE_EVERY).0;
        }
        wanted
    }

    #[test]
    fn as_many_as_the_time_of_a_sample_asks_for() {
        // 1000 samples a second that take 2 ms each keep two shards busy.
        assert_eq!(steady(10_000, 10_000, 20.0, 1, 0.0), 2);
        assert_eq!(steady(10_000, 10_000, 20.0, 2, 0.0), 2);
        // Not fewer while it lags, fewer once it does not.
        assert_eq!(steady(10_000, 10_000, 20.0, 20, 60.0), 20);
        assert_eq!(steady(10_000, 10_000, 20.0, 20, 0.0), 2);
        // A minute that waits asks for four times as many.
        assert_eq!(steady(10_000, 10_000, 20.0, 1, 60.0), 8);
        // Within bounds, and within tolerance as it is.
        assert_eq!(steady(1_000_000, 10_000, 20.0, 1, 60.0), 50);
        assert_eq!(steady(10_000, 10_000, 100.0, 9, 0.0), 9);
        // Nothing delivered says nothing.
        assert_eq!(steady(10_000, 0, 0.0, 3, 60.0), 3);
    }
}
