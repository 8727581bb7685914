//! How much of the time between two slots counts, and whether alerts may change their state.
//!
//! | step from the last slot | counts | alerts |
//! | --- | --- | --- |
//! | up to [`STEP_INTERVALS_MAX`] intervals | all of it | change as upstream's |
//! | more: the clock was set, or the machine slept | one interval | are held |
//! | backwards | nothing | are held |
//! | any, to at most [`REPEATED_MS_MAX`] before a slot that was evaluated | nothing | are held |
//! | any, while the clock is doubted | nothing | are held |
//!
//! Time that does not count moves the times of alerts with it, as upstream moves them by the length
//! of an outage. So a pending alert fires once the evaluations that saw it cover its `for`,
//! whatever the clock says, and `ALERTS_FOR_STATE` says the same to the next start.
//!
//! A step backwards moves all times, as none may lie in the future. After one of up to
//! [`REPEATED_MS_MAX`] the same time passes again, with the samples that it had: alerts wait until
//! it is over, and their times come back. After a longer one they come back with a jump forwards,
//! because a clock that was wrong for a while is right again.

use std::time::Duration;

/// Intervals that one step may count. A machine that is so busy that it misses some slots is none
/// whose clock was set.
pub const STEP_INTERVALS_MAX: i64 = 5;

/// How far before the newest slot time only repeats: small corrections of a clock that ran fast.
pub const REPEATED_MS_MAX: i64 = 10 * 60 * 1000;

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
    /// How far times go forwards that a step backwards had moved.
    pub returned_ms: i64,
    /// Whether no alert may change its state.
    pub is_held: bool,
    /// Whether the clock was set or stood still, so that data of the new time may be missing yet.
    pub is_jump: bool,
}

/// The clock before it was set back, until it has reached that time again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Before {
    slot_ms: i64,
    /// How far times were moved backwards since.
    moved_ms: i64,
}

impl Step {
    /// `last_ms` is the last slot, or the time of the restoration before the first one. `before` is
    /// that of the last step, and is updated.
    pub fn new(
        last_ms: Option<i64>,
        slot_ms: i64,
        interval_ms: i64,
        trust: Trust,
        before: &mut Option<Before>,
    ) -> Step {
        let step_ms = last_ms.map_or(0, |last_ms| slot_ms.saturating_sub(last_ms));
        let is_far = step_ms > interval_ms.saturating_mul(STEP_INTERVALS_MAX);
        let is_jump = is_far || step_ms < 0;
        let is_doubted = trust == Trust::Doubted;
        if step_ms < 0 {
            let known = before.get_or_insert(Before { slot_ms: i64::MIN, moved_ms: 0 });
            known.slot_ms = known.slot_ms.max(slot_ms.saturating_sub(step_ms));
        }
        // The rest of the step is time that was evaluated before the clock was set back.
        let (mut new_ms, mut returned_ms, mut is_repeated) = (step_ms, 0, false);
        // The part of a jump forwards that counts.
        let counted_ms = if is_doubted { 0 } else { interval_ms };
        if let Some(known) = before {
            let passed_ms = slot_ms.saturating_sub(known.slot_ms);
            is_repeated = (-REPEATED_MS_MAX..=0).contains(&passed_ms);
            if step_ms < 0 {
                known.moved_ms = known.moved_ms.saturating_sub(step_ms);
            } else if known.moved_ms <= REPEATED_MS_MAX {
                returned_ms = known.moved_ms.min(step_ms);
                new_ms = step_ms - returned_ms;
            } else if is_far {
                returned_ms = known.moved_ms.min(step_ms.saturating_sub(counted_ms));
                new_ms = step_ms - returned_ms;
            }
            known.moved_ms -= returned_ms;
            if passed_ms > 0 {
                *before = None;
            }
        }
        let uncounted_ms = match (step_ms < 0, is_far) {
            (true, _) => step_ms,
            (false, true) => new_ms.saturating_sub(counted_ms).max(0),
            (false, false) if is_doubted || is_repeated => new_ms,
            (false, false) => 0,
        };
        let is_held = is_doubted || is_jump || is_repeated;
        Step { uncounted_ms, returned_ms, is_held, is_jump }
    }
}

/// Milliseconds of a duration, at most those that fit.
pub(crate) fn milliseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
