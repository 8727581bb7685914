//! The out-of-order rule: which times are accepted, in order or out of order.
//!
//! Row by row, in this order:
//! 1. A row that is stored already, with the same bits (of a histogram: the same observations),
//!    counts as written and changes nothing; a row with another value is refused. The row is
//!    compared with everything that the head holds.
//! 2. A row is appended in order if it is newer than all samples of its series, not in the range
//!    of blocks, and not older than the newest sample of the head by more than the out-of-order
//!    window, or half a block if that is longer.
//! 3. A row that is older than the newest sample of the head by at most the out-of-order window is
//!    kept as an out-of-order sample. If a block holds the same time already, the row replaces the
//!    block's sample once both are merged; an equal value changes nothing.
//! 4. Any other row is refused: too old, out of order, or too far in the future.
//!
//! Age is measured against stored samples, since all senders may lag and the clock may be wrong. An
//! empty store accepts rows up to [`FIRST_AGE_MS_MAX`] old; older times come from a clock that was
//! never set. `i64::MIN` and `i64::MAX` mean "no time"; the range of a block cannot reach beyond
//! `i64::MAX`.
//!
//! This file computes the times of points 2 to 4; `check` looks a row up in its series and its
//! batch, and applies the rule. `series/out_of_order_samples` keeps accepted out-of-order samples.

use super::Window;
use crate::head::RefusalReason;

/// Ten years, in milliseconds: the largest age by the clock that an empty store accepts.
const FIRST_AGE_MS_MAX: i64 = 10 * 365 * 24 * 3_600_000;

impl Window {
    /// Returns the oldest time at which a row can be appended in order.
    pub fn in_order_from_ms(&self) -> i64 {
        if self.is_empty() {
            return self.first_from_ms();
        }
        // Rows that lag more must not stretch the head beyond the range of the next cut.
        let half_block = self.block_duration_ms / 2;
        let window_ms = self.out_of_order_window_ms;
        let newest_ms = match window_ms {
            0 => self.held.newest_ms,
            _ if self.is_ahead_of_clock() => self.now_ms,
            _ => self.newest_ms(),
        };
        self.min_valid_ms.max(newest_ms.saturating_sub(window_ms.max(half_block)))
    }

    /// Returns the oldest time that an empty store accepts; `i64::MIN` before the clock is known.
    fn first_from_ms(&self) -> i64 {
        match self.now_ms {
            i64::MAX => i64::MIN,
            now_ms => now_ms.saturating_sub(FIRST_AGE_MS_MAX),
        }
    }

    /// Returns the oldest time at which an out-of-order row is accepted. If stored samples are
    /// ahead of the clock, age is measured against the clock and may be half a block at least, so
    /// that these samples do not exclude new ones.
    pub fn out_of_order_from_ms(&self) -> i64 {
        let window_ms = self.out_of_order_window_ms;
        match window_ms {
            _ if self.is_ahead_of_clock() => {
                let half_block = self.block_duration_ms / 2;
                self.now_ms.saturating_sub(window_ms.max(half_block))
            }
            0 => i64::MAX,
            _ if self.is_empty() => self.first_from_ms(),
            _ => self.newest_ms().saturating_sub(window_ms),
        }
    }

    /// Returns the newest time that the clock allows.
    pub fn clock_limit_ms(&self) -> i64 {
        // `i64::MAX` is excluded, since it means "no time".
        self.now_ms.saturating_add(self.future_limit_ms).min(i64::MAX - 1)
    }

    /// Returns whether the head or a block holds samples that the present clock would refuse.
    pub fn is_ahead_of_clock(&self) -> bool {
        self.newest_ms() > self.clock_limit_ms()
    }

    /// Returns whether a row newer than its series is appended in order, if the clock allows its
    /// time.
    pub fn takes_in_order(&self, time_ms: i64) -> bool {
        // `i64::MIN` is excluded, since it means "no time".
        time_ms >= self.in_order_from_ms() && time_ms != i64::MIN
    }

    /// Returns whether a row that is neither in order nor stored in its series is kept as an
    /// out-of-order sample; otherwise the reason of its refusal.
    pub fn check_out_of_order(&self, time_ms: i64) -> Result<(), RefusalReason> {
        let from_ms = self.out_of_order_from_ms();
        // Without a window, rows are out of order, unless in-order rows would be too old as well.
        if time_ms > self.clock_limit_ms() {
            Err(RefusalReason::TooFarInFuture)
        } else if time_ms >= from_ms && time_ms != i64::MIN {
            Ok(())
        } else if from_ms != i64::MAX || !self.takes_in_order(time_ms) {
            Err(RefusalReason::TooOld)
        } else {
            Err(RefusalReason::OutOfOrder)
        }
    }

    /// Returns the reason of a refusal in words.
    pub fn why(&self, reason: RefusalReason) -> String {
        match reason {
            RefusalReason::DuplicateSample => {
                "duplicate sample for timestamp: another value is stored".to_owned()
            }
            RefusalReason::TooOld if self.is_empty() => {
                "too old: nothing is stored yet, and this lies more than ten years before this \
                 node's clock, as times of a clock do that was never set"
                    .to_owned()
            }
            RefusalReason::TooOld => {
                "too old: samples this far behind the newest are no longer accepted".to_owned()
            }
            RefusalReason::TooFarInFuture => format!(
                "too far in the future: more than {} s ahead of this node's clock",
                self.future_limit_ms / 1000
            ),
            _ => "out of order: the series has a newer sample".to_owned(),
        }
    }
}
