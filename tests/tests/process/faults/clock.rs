//! The clock of a world's node: in some worlds it jumps, by minutes or years, ahead and back.
//!
//! Samples keep the times of the world. The clock only takes times at which all of them must be
//! accepted: not far behind the newest sample, or so far that it is doubted, and senders' times
//! count instead. If values are replaced, it is never a day ahead: the samples of blocks with later
//! dates win over those that are cut later.

use super::world::{Outcome, World};
use tidepool_tests::fake_clock::FakeClock;

const SECOND_MS: i64 = 1_000;
const MINUTE_MS: i64 = 60 * SECOND_MS;
const HOUR_MS: i64 = 60 * MINUTE_MS;
const DAY_MS: i64 = 24 * HOUR_MS;

/// Largest distance of the clock behind the newest sent sample: the next samples are at most some
/// minutes newer, and less than `--max-future` (ten minutes) ahead of the clock.
const BEHIND_MS_MAX: i64 = 5 * MINUTE_MS;
/// Smallest distance of a doubted clock behind the newest stored sample: more than `--max-future`.
const DOUBTED_MS_MIN: i64 = 15 * MINUTE_MS;
/// A clock before this time is doubted whatever is stored: the end of 2024.
const UNSET_MS_MAX: i64 = 1_735_600_000_000;

/// Distances ahead of the newest sent sample; the negative ones are slightly behind.
const AHEAD_MS: [i64; 7] =
    [-4 * MINUTE_MS, -MINUTE_MS, 0, SECOND_MS, 9 * MINUTE_MS, 3 * HOUR_MS, 20 * HOUR_MS];
/// Large distances ahead, in some worlds.
const FAR_AHEAD_MS: [i64; 3] = [30 * HOUR_MS, 40 * DAY_MS, 1_000 * DAY_MS];
/// Distances behind the newest sample that must be stored.
const BEHIND_MS: [i64; 5] = [20 * MINUTE_MS, HOUR_MS, 26 * HOUR_MS, 20 * DAY_MS, 300 * DAY_MS];
/// Times of a clock that was never set.
const UNSET_MS: [i64; 3] = [DAY_MS, 10_000 * DAY_MS, UNSET_MS_MAX - DAY_MS];

/// A clock that jumps, and the time to which it jumped last.
pub struct JumpingClock {
    pub clock: FakeClock,
    shows_ms: i64,
    /// Whether the clock is far ahead now and then.
    goes_far: bool,
}

impl World {
    /// Gives some worlds a clock that jumps.
    pub fn choose_clock(&mut self) -> Outcome {
        if self.random.one_in(3) {
            let shows_ms = self.newest_ms + MINUTE_MS;
            let clock = FakeClock::new(self.directory.path(), shows_ms)?;
            let goes_far = self.random.one_in(2);
            self.clock = Some(JumpingClock { clock, shows_ms, goes_far });
        }
        Ok(())
    }

    /// Returns whether a replacing value must be shown, whichever block it is in.
    pub fn keeps_replaced(&self) -> bool {
        self.clock.as_ref().is_none_or(|clock| !clock.goes_far)
    }

    /// Lets the clock jump, at random, or if it might make the next samples be refused.
    pub fn move_clock(&mut self) -> Outcome {
        let Some(clock) = &self.clock else { return Ok(()) };
        let (shows_ms, goes_far) = (clock.shows_ms, clock.goes_far);
        let is_near = shows_ms >= self.newest_ms - BEHIND_MS_MAX;
        let is_unset = shows_ms <= UNSET_MS_MAX;
        let kept_ms = if is_near || is_unset { None } else { self.model.newest_kept() };
        let is_doubted = is_unset || kept_ms.is_some_and(|it| shows_ms <= it - DOUBTED_MS_MIN);
        let jumps = self.random.one_in(3);
        let to_ms = match (jumps, self.random.below(4)) {
            (true, 0) => Some(self.random.pick(&UNSET_MS)),
            (true, 1) => {
                let behind_ms = self.random.pick(&BEHIND_MS);
                self.model.newest_kept().map(|newest_ms| newest_ms - behind_ms)
            }
            (true, 2) if goes_far => Some(self.newest_ms + self.random.pick(&FAR_AHEAD_MS)),
            (true, _) => Some(self.newest_ms + self.random.pick(&AHEAD_MS)),
            (false, _) => None,
        };
        let must_jump = !is_near && !is_doubted;
        let to_ms = to_ms.or(must_jump.then_some(self.newest_ms + HOUR_MS));
        if let (Some(to_ms), Some(clock)) = (to_ms, &mut self.clock) {
            clock.clock.set(to_ms)?;
            clock.shows_ms = to_ms;
            self.steps.push(format!("the clock shows {} s", (to_ms - self.newest_ms) / SECOND_MS));
        }
        Ok(())
    }
}
