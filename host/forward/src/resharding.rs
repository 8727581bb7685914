//! How many shards a destination wants: upstream's control law, with its constants
//! (prometheus/prometheus, `storage/remote/queue_manager.go`, `calculateDesiredShards`).
//!
//! The time that one sample takes, times the samples that come in a second and a twentieth of those
//! that wait, is how many must be on their way at a time.

use std::time::Duration;

/// How often it is looked at.
pub const UPDATE_EVERY: Duration = Duration::from_secs(10);

/// Weight of the newest rate.
const EWMA_WEIGHT: f64 = 0.2;

/// By how much the wish must differ from what there is.
const TOLERANCE: f64 = 0.3;

/// Part of what waits that is to be sent in a second.
const BACKLOG_PART: f64 = 0.05;

/// Delay in seconds above which there are never fewer shards than before.
const DELAY_MAX: f64 = 10.0;

/// A rate per second, in which what was counted last weighs more than what was counted before.
#[derive(Clone, Copy, Debug, Default)]
struct Rate {
    per_second: f64,
    counted: f64,
    is_begun: bool,
}

impl Rate {
    fn tick(&mut self, elapsed: Duration) {
        let now = std::mem::take(&mut self.counted) / elapsed.as_secs_f64().max(1e-3);
        if self.is_begun {
            self.per_second += EWMA_WEIGHT * (now - self.per_second);
        } else if now > 0.0 {
            (self.per_second, self.is_begun) = (now, true);
        }
    }
}

/// What is counted between two looks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Resharding {
    samples_in: Rate,
    samples_dropped: Rate,
    samples_out: Rate,
    send_seconds: Rate,
}

impl Resharding {
    /// Samples were read from the log.
    pub fn came_in(&mut self, samples: u64) {
        self.samples_in.counted += samples as f64;
    }

    /// Of these, so many are not sent.
    pub fn dropped(&mut self, samples: u64) {
        self.samples_dropped.counted += samples as f64;
    }

    /// Samples were delivered, which took this long.
    pub fn went_out(&mut self, samples: u64, took: Duration) {
        self.samples_out.counted += samples as f64;
        self.send_seconds.counted += took.as_secs_f64();
    }

    /// How many shards are wanted, and the wish as it was computed. `delay` is by how many seconds
    /// the newest sample delivered lies behind the newest there is.
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
        if rate_out <= 0.0 {
            return (shards, now);
        }
        let kept = rate_out / (self.samples_dropped.per_second + rate_out);
        let waiting = delay * rate_in * kept;
        let seconds_per_sample = self.send_seconds.per_second / rate_out;
        let desired = seconds_per_sample * (rate_in * kept + BACKLOG_PART * waiting);
        let rounded = desired.ceil();
        let is_near = (now * (1.0 - TOLERANCE)..=now * (1.0 + TOLERANCE)).contains(&rounded);
        if is_near || (delay > DELAY_MAX && rounded < now) {
            return (shards, desired);
        }
        ((rounded as u32).clamp(bounds.0, bounds.1), desired)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many samples in and out in each interval, each taking so long.
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
