//! The options that bound a head.

use crate::memory::MemoryBudget;
use crate::model::LabelLimits;

/// Limits of a head, fixed when it is made.
#[derive(Clone, Copy, Debug)]
pub struct HeadOptions {
    /// Span of one block in milliseconds.
    pub block_duration_ms: i64,
    /// Milliseconds that a sample may be ahead of the clock.
    pub future_limit_ms: i64,
    /// Milliseconds by which an out-of-order sample may be older than the newest; 0 accepts none.
    pub out_of_order_window_ms: i64,
    /// Largest number of series held at a time; 0 means no limit.
    pub series_max: u64,
    /// Largest number of exemplars kept, the newest ones; 0 keeps none.
    pub exemplars_max: u64,
    /// Memory limit, with a function that returns the memory in use.
    pub memory: MemoryBudget,
    /// Limits for the label sets of new series.
    pub label_limits: LabelLimits,
    /// Mixed into every hash of labels.
    pub hash_seed: u64,
}

impl HeadOptions {
    /// Returns blocks of two hours and a limit of ten minutes ahead of the clock, as in Prometheus,
    /// an out-of-order window of two hours, no exemplars and no other limits. The seed is any
    /// number that senders cannot guess.
    pub fn new(hash_seed: u64) -> HeadOptions {
        HeadOptions {
            block_duration_ms: 2 * 60 * 60 * 1000,
            future_limit_ms: 10 * 60 * 1000,
            out_of_order_window_ms: 2 * 60 * 60 * 1000,
            series_max: 0,
            exemplars_max: 0,
            memory: MemoryBudget::UNBOUNDED,
            label_limits: LabelLimits::NONE,
            hash_seed,
        }
    }
}
