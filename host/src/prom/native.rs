//! Native histograms as remote write carries them.

pub use super::proto::histogram::{Count, ResetHint, ZeroCount};
pub use super::proto::{BucketSpan, Histogram};

/// A whole count.
pub fn count(observations: u64) -> Option<Count> {
    Some(Count::CountInt(observations))
}

/// A whole count of the zero bucket.
pub fn zero_count(observations: u64) -> Option<ZeroCount> {
    Some(ZeroCount::ZeroCountInt(observations))
}
