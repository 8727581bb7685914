//! The time by which states are judged, over clocks that are doubted or set.
//!
//! | the clock | states are judged by | times of silences |
//! | --- | --- | --- |
//! | is trusted | it | stay |
//! | was set, by more than a minute | it | of active ones move by the step |
//! | is doubted | the last time that was trusted | stay |
//! | is trusted again | it | of those that were set meanwhile move with it |
//!
//! So an active silence neither ends at once nor lasts longer because a clock was set, and one that
//! has ended does not come back: it moves, too, if it would. A step is
//! found by comparing the clock with the monotonic one; a restart hides it, since only a clock that
//! is right at both ends tells how long the program did not run.

use super::silence::{Silence, SilenceState};
use super::{Map, SilenceId};
use std::sync::Arc;
use std::time::Duration;

/// A larger difference to the monotonic clock is a step. NTP slews what is smaller.
pub const STEP_MS_MIN: i64 = 60_000;

/// What the clocks show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// Milliseconds since the epoch.
    pub wall_ms: i64,
    pub is_doubted: bool,
    /// Time since any fixed moment, on a clock that is never set and goes on while the machine is
    /// suspended.
    pub monotonic: Duration,
}

pub type Clock = Arc<dyn Fn() -> Now + Send + Sync>;

pub struct Timeline {
    judged_ms: i64,
    is_doubted: bool,
    /// The last time that was trusted, in this run.
    trusted: Option<Now>,
}

/// A clock that was set, or is trusted again.
pub struct Step {
    /// Time at which the clock would be without the step; `None` if that is not known.
    expected_ms: Option<i64>,
    /// Time by which states were judged while the clock was doubted; `None` if it was not.
    doubted_at_ms: Option<i64>,
    now: Now,
}

impl Timeline {
    /// `stored_ms` is the time by which states were judged at the last write. It holds until the
    /// clock is observed and can be trusted.
    pub fn new(now: Now, stored_ms: Option<i64>) -> Timeline {
        Timeline { judged_ms: stored_ms.unwrap_or(now.wall_ms), is_doubted: true, trusted: None }
    }

    pub fn judged_ms(&self) -> i64 {
        self.judged_ms
    }

    /// Advances to a time. Returns a step, by which silences may have to be moved.
    pub fn observe(&mut self, now: Now) -> Option<Step> {
        if now.is_doubted {
            self.is_doubted = true;
            return None;
        }
        let expected_ms = self.trusted.map(|trusted| {
            let passed = now.monotonic.saturating_sub(trusted.monotonic);
            trusted.wall_ms.saturating_add(millis(passed))
        });
        let expected_ms = expected_ms
            .filter(|expected_ms| now.wall_ms.abs_diff(*expected_ms) > STEP_MS_MIN as u64);
        let doubted_at_ms = self.is_doubted.then_some(self.judged_ms);
        (self.judged_ms, self.is_doubted, self.trusted) = (now.wall_ms, false, Some(now));
        let is_step = expected_ms.is_some() || doubted_at_ms.is_some();
        is_step.then_some(Step { expected_ms, doubted_at_ms, now })
    }
}

impl Step {
    /// Returns the moved silences.
    pub fn moved(&self, silences: &Map) -> Vec<(SilenceId, Arc<Silence>)> {
        let moved = silences.values().filter_map(|silence| {
            let step_ms = self.step_of(silence)?;
            let moved = Silence {
                starts_at_ms: silence.starts_at_ms.saturating_add(step_ms),
                ends_at_ms: silence.ends_at_ms.saturating_add(step_ms),
                updated_at_ms: self.now.wall_ms,
                doubted_since: None,
                ..Silence::clone(silence)
            };
            Some((silence.id, Arc::new(moved)))
        });
        moved.collect()
    }

    /// Returns the step for the log; zero if the time before is not known.
    pub fn step_ms(&self) -> i64 {
        self.expected_ms.map_or(0, |expected_ms| self.now.wall_ms.saturating_sub(expected_ms))
    }

    /// Returns by how much a silence moves; `None` if it stays.
    fn step_of(&self, silence: &Silence) -> Option<i64> {
        if let (Some(since), Some(doubted_at_ms)) = (silence.doubted_since, self.doubted_at_ms) {
            // Time stood still since it was set, while it really passed.
            let passed = millis(self.now.monotonic.saturating_sub(since));
            return Some(self.now.wall_ms.saturating_sub(doubted_at_ms.saturating_add(passed)));
        }
        let expected_ms = self.expected_ms?;
        let is_moved = match silence.state(expected_ms) {
            SilenceState::Active => true,
            // A clock that is set back must not bring back what has ended.
            SilenceState::Expired => silence.state(self.now.wall_ms) != SilenceState::Expired,
            SilenceState::Pending => false,
        };
        is_moved.then(|| self.now.wall_ms.saturating_sub(expected_ms))
    }
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
