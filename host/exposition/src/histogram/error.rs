//! Faults of native and classic histograms.

use crate::limits::CLASSIC_BUCKETS_MAX;

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum HistogramError {
    #[error("{side} spans require {wanted} buckets, but there are {found}")]
    Spans {
        side: &'static str,
        /// Number of buckets that the spans describe.
        wanted: u64,
        found: u64,
    },
    #[error("{side} span {number} has the offset {offset}; it must not be negative")]
    Offset {
        side: &'static str,
        /// Position of the span, from 1.
        number: usize,
        offset: i32,
    },
    #[error("{side} bucket {number} has a negative count")]
    BucketCount {
        side: &'static str,
        /// Position of the bucket on its side, from 1.
        number: usize,
    },
    /// The count of the zero bucket or of all observations is negative.
    #[error("its count of observations, or that of its zero bucket, is negative")]
    Count,
    #[error("its buckets have {buckets} observations, but its count is {count}")]
    CountMismatch {
        /// Sum of all buckets, the zero bucket included.
        buckets: u64,
        count: u64,
    },
    /// The schema is neither exponential nor -53 (custom bounds).
    #[error("its schema is {0}; from -4 to 8 and -53 are known")]
    Schema(i32),
    /// The custom bounds are not ascending, too few, or not finite.
    #[error("its custom bounds must be finite, ascend, and be as many as its buckets but one")]
    CustomBounds,
    /// Custom bounds do not allow a zero bucket, negative buckets or an exponential schema.
    #[error("custom bounds together with a zero bucket, negative buckets or another schema")]
    CustomMix,
    /// The classic histogram to be converted is not valid.
    #[error("it cannot be made of the classic one: {0}")]
    Classic(ClassicError),
}

/// Faults of a classic histogram that prevent its conversion.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum ClassicError {
    #[error("a bucket has the bound NaN")]
    Bound,
    #[error("a count is negative")]
    Negative,
    #[error("the counts of its buckets do not ascend")]
    NotCumulative,
    #[error("its count is {count}, but its last bucket has {last}")]
    CountMismatch {
        /// Count of all observations, as sent.
        count: f64,
        last: f64,
    },
    #[error("more than {CLASSIC_BUCKETS_MAX} buckets")]
    TooMany,
}

impl From<ClassicError> for HistogramError {
    fn from(error: ClassicError) -> HistogramError {
        HistogramError::Classic(error)
    }
}
