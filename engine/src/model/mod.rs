//! The types that all other modules use: labels, samples, histograms, time ranges, matchers.
//!
//! No type depends on bytes on disk, on storage or on the network. Times are milliseconds since the
//! Unix epoch; ranges include both ends unless a name says otherwise.

pub mod histogram;
mod labels;
mod matcher;
mod matcher_sets;
mod order_group;
mod ref_table;
mod value;

pub use histogram::{FloatHistogram, Histogram, HistogramError, NativeHistogram};
pub use labels::{LABEL_NAME, LabelError, LabelLimits, Labels, with_others};
pub(crate) use labels::{sort_and_check, start_of};
pub use matcher::{Matcher, MatcherError, MatcherSpec};
pub use matcher_sets::{MatcherSets, Verdict};
pub use order_group::OrderGroup;
pub use ref_table::RefTable;
pub use tidepool_model::MatchOp;
pub use tidepool_remote_write::Sample;
pub use value::Value;

/// A span of time that includes both of its ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeRange {
    /// First millisecond of the span.
    pub start_ms: i64,
    /// Last millisecond of the span; an end before the start means an empty span.
    pub end_ms: i64,
}

impl TimeRange {
    /// The span of all times that a timestamp can hold.
    pub const ALL: TimeRange = TimeRange { start_ms: i64::MIN, end_ms: i64::MAX };

    /// Returns whether the span contains this millisecond.
    pub fn contains(&self, timestamp_ms: i64) -> bool {
        self.start_ms <= timestamp_ms && timestamp_ms <= self.end_ms
    }

    /// Returns whether the two spans share at least one millisecond.
    pub fn overlaps(&self, other: &TimeRange) -> bool {
        self.start_ms <= other.end_ms && other.start_ms <= self.end_ms
    }

    /// Returns whether the span contains all of `other`.
    pub fn covers(&self, other: &TimeRange) -> bool {
        self.start_ms <= other.start_ms && other.end_ms <= self.end_ms
    }
}
