//! Pauses between attempts: 1 s, doubling to 5 min.

use std::time::Duration;

const FIRST: Duration = Duration::from_secs(1);

const PAUSE_MAX: Duration = Duration::from_secs(300);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Backoff {
    failures: u32,
}

impl Backoff {
    /// Returns the pause after another failure. `dice` is random: it takes up to a quarter from the
    /// pause, so that nodes whose receiver comes back do not ask in step. A receiver may ask for a
    /// longer pause, up to the maximum.
    pub fn pause(&mut self, asked: Option<Duration>, dice: u32) -> Duration {
        let full = FIRST.saturating_mul(1u32.checked_shl(self.failures).unwrap_or(u32::MAX));
        let full = full.min(PAUSE_MAX);
        self.failures = (self.failures + 1).min(u32::BITS - 1);
        let less = full.mul_f64(f64::from(dice) / f64::from(u32::MAX) / 4.0);
        (full - less).max(asked.unwrap_or_default()).min(PAUSE_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_maximum() {
        let mut backoff = Backoff::default();
        let pauses: Vec<u64> = (0..40).map(|_| backoff.pause(None, 0).as_secs()).collect();
        assert_eq!(pauses[..11], [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
        assert!(pauses[11..].iter().all(|pause| *pause == 300));
    }

    #[test]
    fn chance_takes_at_most_a_quarter() {
        assert_eq!(Backoff::default().pause(None, u32::MAX), Duration::from_millis(750));
        let mut backoff = Backoff { failures: 20 };
        assert_eq!(backoff.pause(None, u32::MAX), Duration::from_secs(225));
    }

    #[test]
    fn a_receiver_may_ask_for_a_longer_pause_but_not_for_hours() {
        let asks = |secs| Backoff::default().pause(Some(Duration::from_secs(secs)), 0).as_secs();
        assert_eq!([asks(0), asks(40), asks(7200)], [1, 40, 300]);
    }
}
