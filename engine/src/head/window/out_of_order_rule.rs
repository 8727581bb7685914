//! The out-of-order rule: which times are accepted, and as what.
//!
//! Row by row, in this order:
//! 1. A row that is stored already, with the same bits (of a histogram: the same observations),
//!    counts as written and changes nothing; another value is refused. This looks at all that the
//!    head holds.
//! 2. Newer than all of its series, not older than what blocks hold, and not further behind the
//!    newest sample of the head than the out-of-order window, or half a block if that is longer:
//!    appended in order.
//! 3. Within the out-of-order window behind the newest sample of the head: kept as an out-of-order
//!    sample. If a block holds the same time already, the block's sample counts no more once both
//!    are merged: the later write has the word, and an equal one changes nothing.
//! 4. All else is refused: too old, out of order, or too far in the future.
//!
//! Age is measured against what is stored, since all senders may lag, and a clock may be wrong. A
//! store that holds nothing takes rows of any age, but for times that only a clock shows that was
//! never set: from the beginning of time up to [`FIRST_AGE_MS_MAX`] ago. The smallest and the
//! largest time are no times: they stand for none, and no block's range reaches beyond the latter.
//!
//! This file has the times of points 2 to 4; `check` looks a row up in its series and its batch,
//! and applies them. Where accepted out-of-order samples are kept: `series/out_of_order_samples`.

use super::Window;
use crate::head::RefusalReason;

/// Ten years, in milliseconds: the oldest that a row may be by the clock while nothing is stored.
const FIRST_AGE_MS_MAX: i64 = 10 * 365 * 24 * 3_600_000;

impl Window {
    /// Oldest time at which a row can be appended in order.
    pub fn in_order_from_ms(&self) -> i64 {
        if self.is_empty() {
            return self.first_from_ms();
        }
        // What lags must not stretch the head beyond what the next cut takes.
        let half_block = self.block_duration_ms / 2;
        let window_ms = self.out_of_order_window_ms;
        let newest_ms = match window_ms {
            0 => self.held.newest_ms,
            _ if self.is_ahead_of_clock() => self.now_ms,
            _ => self.newest_ms(),
        };
        self.min_valid_ms.max(newest_ms.saturating_sub(window_ms.max(half_block)))
    }

    /// Oldest time that a store without samples accepts. Without a clock that is any.
    fn first_from_ms(&self) -> i64 {
        match self.now_ms {
            i64::MAX => i64::MIN,
            now_ms => now_ms.saturating_sub(FIRST_AGE_MS_MAX),
        }
    }

    /// Oldest time at which an out-of-order row is accepted. What came while some clock ran ahead
    /// does not shut the door: then the clock of now counts, and half a block at least.
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

    /// Newest time that is accepted by the clock.
    pub fn clock_limit_ms(&self) -> i64 {
        self.now_ms.saturating_add(self.future_limit_ms).min(i64::MAX - 1)
    }

    /// Whether the head or a block holds samples that the clock of now would refuse.
    pub fn is_ahead_of_clock(&self) -> bool {
        self.newest_ms() > self.clock_limit_ms()
    }

    /// Whether a row that is newer than all of its series is appended in order, if the clock's
    /// limit allows its time.
    pub fn takes_in_order(&self, time_ms: i64) -> bool {
        // The smallest time stands for none.
        time_ms >= self.in_order_from_ms() && time_ms != i64::MIN
    }

    /// Whether a row that cannot be appended in order, and whose time its series does not hold, is
    /// kept as an out-of-order sample; otherwise why it is refused.
    pub fn check_out_of_order(&self, time_ms: i64) -> Result<(), RefusalReason> {
        let from_ms = self.out_of_order_from_ms();
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

    /// Why a row is refused, in words.
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
