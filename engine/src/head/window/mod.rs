//! The times that the head holds and the times that it accepts.
//!
//! ```text
//!  blocks ─────────────┐             ┌───── in-order samples ─────┐
//!  ────────────────────┼─────────────┼────────────────────────────┼──────────┼────▶ time
//!                 min_valid_ms    oldest_ms                  newest_ms   clock limit
//! ```
//!
//! Nothing here knows a series. `out_of_order_rule` derives from these times which new samples are
//! accepted.

mod out_of_order_rule;

use super::HeadOptions;
use super::series::Series;
use crate::model::TimeRange;

/// Times of the oldest and the newest samples that are held.
#[derive(Clone, Copy, Debug)]
pub struct HeldTimes {
    /// Of in-order samples; the largest time without any.
    pub oldest_ms: i64,
    /// Nothing out-of-order is older; the largest time if nothing is out of order.
    pub oldest_out_of_order_ms: i64,
    /// Of all samples; the smallest time without any.
    pub newest_ms: i64,
}

/// The times.
pub struct Window {
    block_duration_ms: i64,
    future_limit_ms: i64,
    out_of_order_window_ms: i64,
    held: HeldTimes,
    /// Whether samples were taken out since the times were found.
    is_stale: bool,
    /// Everything before is in blocks, or about to be; only out-of-order samples may be older.
    min_valid_ms: i64,
    /// What of that the log need not give back: everything before is in committed blocks.
    stored_until_ms: i64,
    /// The clock at the last write; the largest time before the first write.
    now_ms: i64,
}

impl HeldTimes {
    /// Of no samples.
    pub const NONE: HeldTimes =
        HeldTimes { oldest_ms: i64::MAX, oldest_out_of_order_ms: i64::MAX, newest_ms: i64::MIN };

    /// Counts an in-order sample.
    #[inline]
    pub fn add_in_order(&mut self, timestamp_ms: i64) {
        self.oldest_ms = self.oldest_ms.min(timestamp_ms);
        self.newest_ms = self.newest_ms.max(timestamp_ms);
    }

    /// Counts an out-of-order sample.
    #[inline]
    pub fn add_out_of_order(&mut self, timestamp_ms: i64) {
        self.oldest_out_of_order_ms = self.oldest_out_of_order_ms.min(timestamp_ms);
        // The newest of all it is where what was newer was deleted before a cut had an end.
        self.newest_ms = self.newest_ms.max(timestamp_ms);
    }

    /// Counts the oldest samples of a series; returns whether it has any.
    #[inline]
    pub fn add_oldest_of(&mut self, series: &Series) -> bool {
        let (in_order, out_of_order) = (series.min_time_ms(), series.out_of_order_min_time_ms());
        self.oldest_ms = self.oldest_ms.min(in_order.unwrap_or(i64::MAX));
        self.oldest_out_of_order_ms =
            self.oldest_out_of_order_ms.min(out_of_order.unwrap_or(i64::MAX));
        in_order.is_some() || out_of_order.is_some()
    }

    /// Counts all samples of a series.
    pub fn add_all_of(&mut self, series: &Series) {
        self.add_oldest_of(series);
        self.newest_ms = self.newest_ms.max(series.max_time_ms().unwrap_or(i64::MIN));
    }
}

impl Window {
    /// Of an empty head that leaves everything before `min_valid_ms` to blocks.
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

    /// Span of one block in milliseconds.
    #[inline]
    pub fn block_duration_ms(&self) -> i64 {
        self.block_duration_ms
    }

    /// How far behind the newest sample an out-of-order one may be, in milliseconds.
    pub fn out_of_order_window_ms(&self) -> i64 {
        self.out_of_order_window_ms
    }

    /// The clock at the last write; the largest time before the first write.
    pub fn now_ms(&self) -> i64 {
        self.now_ms
    }

    /// Sets the clock.
    pub fn set_now(&mut self, now_ms: i64) {
        self.now_ms = now_ms;
    }

    /// Times of the oldest and the newest samples that are held.
    pub fn held(&self) -> HeldTimes {
        self.held
    }

    /// Newest time that the head or a block holds; the smallest time without any sample.
    pub fn newest_ms(&self) -> i64 {
        self.held.newest_ms.max(self.min_valid_ms.saturating_sub(1))
    }

    /// Whether neither the head nor a block holds anything.
    pub fn is_empty(&self) -> bool {
        self.newest_ms() == i64::MIN
    }

    /// Whether the head may hold samples of the range.
    pub fn touches(&self, range: TimeRange) -> bool {
        let start_ms = self.held.oldest_ms.min(self.held.oldest_out_of_order_ms);
        let held = TimeRange { start_ms, end_ms: self.newest_ms() };
        range.start_ms <= range.end_ms && range.overlaps(&held)
    }

    /// Oldest time that blocks do not hold, nor are about to hold.
    #[inline]
    pub fn min_valid_ms(&self) -> i64 {
        self.min_valid_ms
    }

    /// Leaves everything before a time to blocks.
    pub fn leave_to_blocks(&mut self, before_ms: i64) {
        self.min_valid_ms = self.min_valid_ms.max(before_ms);
    }

    /// Everything before is in committed blocks, and need not come back from the log.
    #[inline]
    pub fn stored_until_ms(&self) -> i64 {
        self.stored_until_ms
    }

    /// Notes that everything before a time is in committed blocks, or was deleted with them.
    pub fn note_stored_until(&mut self, floor_ms: i64) {
        self.leave_to_blocks(floor_ms);
        self.stored_until_ms = self.stored_until_ms.max(floor_ms);
    }

    /// An in-order sample is held now.
    #[inline]
    pub fn add_in_order(&mut self, timestamp_ms: i64) {
        self.held.add_in_order(timestamp_ms);
    }

    /// In-order samples from one time to another are held now.
    #[inline]
    pub fn add_run(&mut self, first_ms: i64, last_ms: i64) {
        self.held.oldest_ms = self.held.oldest_ms.min(first_ms);
        self.held.newest_ms = self.held.newest_ms.max(last_ms);
    }

    /// An out-of-order sample is held now.
    #[inline]
    pub fn add_out_of_order(&mut self, timestamp_ms: i64) {
        self.held.add_out_of_order(timestamp_ms);
    }

    /// Takes the oldest times that are left after a truncation.
    pub fn set_oldest(&mut self, left: HeldTimes) {
        self.held.oldest_ms = left.oldest_ms;
        self.held.oldest_out_of_order_ms = left.oldest_out_of_order_ms;
        // As long as something out of order is held, the newest time says how far behind it is.
        if left.oldest_ms == i64::MAX && left.oldest_out_of_order_ms == i64::MAX {
            self.held.newest_ms = i64::MIN;
        }
    }

    /// Takes the times that were found again after samples were taken out.
    pub fn set_held(&mut self, held: HeldTimes) {
        self.held = held;
        self.is_stale = false;
    }

    /// Whether samples were taken out since the times were found.
    pub fn is_stale(&self) -> bool {
        self.is_stale
    }

    /// Notes that samples were taken out.
    pub fn set_stale(&mut self) {
        self.is_stale = true;
    }
}
