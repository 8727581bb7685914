//! The bounds that a head is given.

use crate::memory::MemoryBudget;
use crate::model::LabelLimits;

/// The settings of a head.
#[derive(Clone, Copy, Debug)]
pub struct HeadOptions {
    /// Span of one block in milliseconds.
    pub block_duration_ms: i64,
    /// How far ahead of the clock a sample may be, in milliseconds.
    pub future_limit_ms: i64,
    /// How far behind the newest sample an out-of-order one may be, in milliseconds. With 0,
    /// samples are accepted in order only.
    pub out_of_order_window_ms: i64,
    /// Most series held at a time; 0 means no limit.
    pub series_max: u64,
    /// Most exemplars kept, the newest; 0 keeps none.
    pub exemplars_max: u64,
    /// How much memory may be in use.
    pub memory: MemoryBudget,
    /// How large the label sets of new series may be.
    pub label_limits: LabelLimits,
    /// Mixed into every hash of labels.
    pub hash_seed: u64,
}

impl HeadOptions {
    /// Prometheus' block of two hours and its ten minutes ahead of the clock, two hours for
    /// out-of-order samples, no exemplars and no limits. The seed is any number that senders cannot
    /// guess.
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
