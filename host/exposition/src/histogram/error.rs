//! What is wrong with a histogram.

use crate::limits::CLASSIC_BUCKETS_MAX;

/// What is wrong with a native histogram.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum HistogramError {
    /// Spans and buckets do not belong together.
    #[error("{side} spans require {wanted} buckets, but there are {found}")]
    Spans {
        /// `positive` or `negative`.
        side: &'static str,
        /// What the spans say.
        wanted: u64,
        /// What there is.
        found: u64,
    },
    /// A span goes back.
    #[error("{side} span {number} has the offset {offset}; it must not be negative")]
    Offset {
        /// `positive` or `negative`.
        side: &'static str,
        /// Which span, from 1.
        number: usize,
        /// Its offset.
        offset: i32,
    },
    /// A bucket's count is negative.
    #[error("{side} bucket {number} has a negative count")]
    BucketCount {
        /// `positive` or `negative`.
        side: &'static str,
        /// Which bucket, from 1.
        number: usize,
    },
    /// The count of the zero bucket or of all observations is negative.
    #[error("its count of observations, or that of its zero bucket, is negative")]
    Count,
    /// The count of all observations is not that of all buckets.
    #[error("its buckets have {buckets} observations, but its count is {count}")]
    CountMismatch {
        /// Of all buckets.
        buckets: u64,
        /// Of all observations.
        count: u64,
    },
    /// There is no such schema.
    #[error("its schema is {0}; from -4 to 8 and -53 are known")]
    Schema(i32),
    /// Custom bounds do not ascend, are too few, or are not finite.
    #[error("its custom bounds must be finite, ascend, and be as many as its buckets but one")]
    CustomBounds,
    /// Custom bounds have no zero bucket and no negative ones, and belong to no other schema.
    #[error("custom bounds together with a zero bucket, negative buckets or another schema")]
    CustomMix,
    /// It was to be made of a classic histogram.
    #[error("it cannot be made of the classic one: {0}")]
    Classic(ClassicError),
}

/// Why a classic histogram has no native one.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum ClassicError {
    /// A bound is not a number.
    #[error("a bucket has the bound NaN")]
    Bound,
    /// A count is negative.
    #[error("a count is negative")]
    Negative,
    /// A bucket has less than one below it.
    #[error("the counts of its buckets do not ascend")]
    NotCumulative,
    /// The count is not that of the last bucket.
    #[error("its count is {count}, but its last bucket has {last}")]
    CountMismatch {
        /// Of all observations.
        count: f64,
        /// Of the last bucket.
        last: f64,
    },
    /// There are too many buckets.
    #[error("more than {CLASSIC_BUCKETS_MAX} buckets")]
    TooMany,
}

impl From<ClassicError> for HistogramError {
    fn from(error: ClassicError) -> HistogramError {
        HistogramError::Classic(error)
    }
}
