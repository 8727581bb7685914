//! How much of the time between two slots counts, and whether alerts may change their state.
//!
//! | step from the last slot | counts | alerts |
//! | --- | --- | --- |
//! | up to [`STEP_INTERVALS_MAX`] intervals | all of it | change as upstream's |
//! | more: the clock was set, or the machine slept | one interval | are held |
//! | backwards | nothing | are held |
//! | any, while the clock is doubted | nothing | are held |
//!
//! Time that does not count moves the times of alerts with it, as upstream moves them by the length
//! of an outage. So a pending alert fires once the evaluations that saw it cover its `for`,
//! whatever the clock says, and `ALERTS_FOR_STATE` says the same to the next start.

use std::time::Duration;

/// Intervals that one step may count. A machine that is so busy that it misses some slots is none
/// whose clock was set.
pub const STEP_INTERVALS_MAX: i64 = 5;

/// Whether the caller believes the clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trust {
    #[default]
    Trusted,
    /// It may be set at any time, such as before the first answer of a time server.
    Doubted,
}

/// What the step to a slot means for alerts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// Part of the step that does not count; negative after a step backwards.
    pub uncounted_ms: i64,
    /// Whether no alert may change its state.
    pub is_held: bool,
    /// Whether the clock was set or stood still, so that data of the new time may be missing yet.
    pub is_jump: bool,
}

impl Step {
    /// `last_ms` is the last slot, or the time of the restoration before the first one.
    pub fn new(last_ms: Option<i64>, slot_ms: i64, interval_ms: i64, trust: Trust) -> Step {
        let step_ms = last_ms.map_or(0, |last_ms| slot_ms.saturating_sub(last_ms));
        let is_far = step_ms > interval_ms.saturating_mul(STEP_INTERVALS_MAX);
        let is_jump = is_far || step_ms < 0;
        match trust {
            Trust::Doubted => Step { uncounted_ms: step_ms, is_held: true, is_jump },
            Trust::Trusted if is_far => {
                Step { uncounted_ms: step_ms - interval_ms, is_held: true, is_jump }
            }
            Trust::Trusted if is_jump => Step { uncounted_ms: step_ms, is_held: true, is_jump },
            Trust::Trusted => Step::default(),
        }
    }
}

/// Milliseconds of a duration, at most those that fit.
pub(crate) fn milliseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
