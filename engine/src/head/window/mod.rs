//! The times that the head holds and the times that it accepts.
//!
//! ```text
//!  blocks ─────────────┐             ┌───── in-order samples ─────┐
//!  ────────────────────┼─────────────┼────────────────────────────┼──────────┼────▶ time
//!                 min_valid_ms    oldest_ms                  newest_ms   clock limit
//! ```
//!
//! Nothing here depends on series. `out_of_order_rule` derives from these times which new samples
//! are accepted.

mod out_of_order_rule;

use super::HeadOptions;
use super::series::Series;
use crate::model::TimeRange;

/// Times of the oldest and the newest samples that are held.
#[derive(Clone, Copy, Debug)]
pub struct HeldTimes {
    /// Time of the oldest in-order sample, or `i64::MAX` if there is none.
    pub oldest_ms: i64,
    /// Lower bound of the times of out-of-order samples, or `i64::MAX` if there are none.
    pub oldest_out_of_order_ms: i64,
    /// Time of the newest sample of any kind, or `i64::MIN` if there is none.
    pub newest_ms: i64,
}

/// The times that the head holds, and the bounds of those that it accepts.
pub struct Window {
    block_duration_ms: i64,
    future_limit_ms: i64,
    out_of_order_window_ms: i64,
    held: HeldTimes,
    /// Whether samples were removed since `held` was computed.
    is_stale: bool,
    /// Lower bound of in-order samples: older ones are in blocks, or in a block being made.
    min_valid_ms: i64,
    /// Samples before this time are in committed blocks, so replay skips them.
    stored_until_ms: i64,
    /// The clock at the last write, or `i64::MAX` before the first write.
    now_ms: i64,
}

impl HeldTimes {
    pub const NONE: HeldTimes =
        HeldTimes { oldest_ms: i64::MAX, oldest_out_of_order_ms: i64::MAX, newest_ms: i64::MIN };

    #[inline]
    pub fn add_in_order(&mut self, timestamp_ms: i64) {
        self.oldest_ms = self.oldest_ms.min(timestamp_ms);
        self.newest_ms = self.newest_ms.max(timestamp_ms);
    }

    #[inline]
    pub fn add_out_of_order(&mut self, timestamp_ms: i64) {
        self.oldest_out_of_order_ms = self.oldest_out_of_order_ms.min(timestamp_ms);
        // If newer samples were deleted, this sample may be the newest.
        self.newest_ms = self.newest_ms.max(timestamp_ms);
    }

    /// Includes the oldest times of a series; returns whether the series has samples.
    #[inline]
    pub fn add_oldest_of(&mut self, series: &Series) -> bool {
        let (in_order, out_of_order) = (series.min_time_ms(), series.out_of_order_min_time_ms());
        self.oldest_ms = self.oldest_ms.min(in_order.unwrap_or(i64::MAX));
        self.oldest_out_of_order_ms =
            self.oldest_out_of_order_ms.min(out_of_order.unwrap_or(i64::MAX));
        in_order.is_some() || out_of_order.is_some()
    }

    pub fn add_all_of(&mut self, series: &Series) {
        self.add_oldest_of(series);
        self.newest_ms = self.newest_ms.max(series.max_time_ms().unwrap_or(i64::MIN));
    }
}

impl Window {
    /// Creates the window of an empty head that leaves everything before `min_valid_ms` to blocks.
    pub fn new(options: &HeadOptions, min_valid_ms: i64) -> Window {
        Window {
            block_duration_ms: options.block_duration_ms,
            future_limit_ms: options.future_limit_ms,
            out_of_order_window_ms: options.out_of_order_window_ms,
            held: HeldTimes::NONE,
            is_stale: false,
            min_valid_ms,
            stored_until_ms: min_valid_ms,
            now_ms: i64::MAX,
        }
    }

    #[inline]
    pub fn block_duration_ms(&self) -> i64 {
        self.block_duration_ms
    }

    /// Milliseconds by which an out-of-order sample may be older than the newest sample.
    pub fn out_of_order_window_ms(&self) -> i64 {
        self.out_of_order_window_ms
    }

    /// The clock at the last write, or `i64::MAX` before the first write.
    pub fn now_ms(&self) -> i64 {
        self.now_ms
    }

    pub fn set_now(&mut self, now_ms: i64) {
        self.now_ms = now_ms;
    }

    pub fn held(&self) -> HeldTimes {
        self.held
    }

    /// Returns the newest time that the head or a block holds, or `i64::MIN` if there is no sample.
    pub fn newest_ms(&self) -> i64 {
        // Blocks end before `min_valid_ms`, so the time before it is the newest that they can hold.
        self.held.newest_ms.max(self.min_valid_ms.saturating_sub(1))
    }

    /// Returns whether neither the head nor a block holds anything.
    pub fn is_empty(&self) -> bool {
        self.newest_ms() == i64::MIN
    }

    /// Returns whether the head may hold samples of the range.
    pub fn touches(&self, range: TimeRange) -> bool {
        let start_ms = self.held.oldest_ms.min(self.held.oldest_out_of_order_ms);
        // `overlaps` compares only the ends of ranges, so an empty range is excluded first.
        let held = TimeRange { start_ms, end_ms: self.newest_ms() };
        range.start_ms <= range.end_ms && range.overlaps(&held)
    }

    #[inline]
    pub fn min_valid_ms(&self) -> i64 {
        self.min_valid_ms
    }

    pub fn leave_to_blocks(&mut self, before_ms: i64) {
        self.min_valid_ms = self.min_valid_ms.max(before_ms);
    }

    #[inline]
    pub fn stored_until_ms(&self) -> i64 {
        self.stored_until_ms
    }

    /// Notes that samples before a time are in committed blocks, or were deleted with them.
    pub fn note_stored_until(&mut self, floor_ms: i64) {
        self.leave_to_blocks(floor_ms);
        self.stored_until_ms = self.stored_until_ms.max(floor_ms);
    }

    #[inline]
    pub fn add_in_order(&mut self, timestamp_ms: i64) {
        self.held.add_in_order(timestamp_ms);
    }

    /// Includes in-order samples from `first_ms` to `last_ms`.
    #[inline]
    pub fn add_run(&mut self, first_ms: i64, last_ms: i64) {
        self.held.oldest_ms = self.held.oldest_ms.min(first_ms);
        self.held.newest_ms = self.held.newest_ms.max(last_ms);
    }

    #[inline]
    pub fn add_out_of_order(&mut self, timestamp_ms: i64) {
        self.held.add_out_of_order(timestamp_ms);
    }

    /// Sets the oldest times that are left after a truncation.
    pub fn set_oldest(&mut self, left: HeldTimes) {
        self.held.oldest_ms = left.oldest_ms;
        self.held.oldest_out_of_order_ms = left.oldest_out_of_order_ms;
        // While samples are left, the newest time stays: out-of-order rows are measured against it.
        if left.oldest_ms == i64::MAX && left.oldest_out_of_order_ms == i64::MAX {
            self.held.newest_ms = i64::MIN;
        }
    }

    /// Sets the times that were found after a deletion.
    pub fn set_held(&mut self, held: HeldTimes) {
        self.held = held;
        self.is_stale = false;
    }

    pub fn is_stale(&self) -> bool {
        self.is_stale
    }

    pub fn set_stale(&mut self) {
        self.is_stale = true;
    }
}
