//! Which histograms are accepted. The rules, and their order, are upstream's.

use super::spans::covered;
use super::{
    BucketLayout, Count, EXPONENTIAL_SCHEMA_MAX, EXPONENTIAL_SCHEMA_MIN, NativeHistogram, Span,
};
use std::fmt;

/// Observations above or below zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Above; with custom bounds, all of them.
    Positive,
    /// Below.
    Negative,
}

/// Why a histogram is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum HistogramError {
    /// A schema that is not stored.
    #[error(
        "the histogram's schema {schema} is invalid: exponential buckets have -4 to 8, custom \
         buckets -53"
    )]
    InvalidSchema {
        /// The histogram's.
        schema: i32,
    },
    /// A span would begin before the one before it ends.
    #[error("{side} side: span {span} of the histogram has the negative offset {offset}")]
    SpanNegativeOffset {
        /// Where.
        side: Side,
        /// Position, from 1.
        span: usize,
        /// Its offset.
        offset: i32,
    },
    /// Spans and buckets differ in number.
    #[error("{side} side: the histogram's spans need {wanted} buckets, it has {given}")]
    SpansBucketsMismatch {
        /// Where.
        side: Side,
        /// The number of buckets of the spans.
        wanted: u64,
        /// How many buckets there are.
        given: usize,
    },
    /// A bucket index beyond 32 bits.
    #[error("{side} side: a bucket's index does not fit 32 bits")]
    IndexTooLarge {
        /// Where.
        side: Side,
    },
    /// A bucket holds less than nothing.
    #[error("{side} side: bucket {bucket} has the negative observation count {count}")]
    NegativeBucketCount {
        /// Where.
        side: Side,
        /// Position, from 1.
        bucket: usize,
        /// Its count.
        count: f64,
    },
    /// The zero bucket holds less than nothing.
    #[error("the zero bucket has a negative observation count")]
    NegativeZeroCount,
    /// There are fewer than no observations.
    #[error("the histogram's observation count is negative")]
    NegativeCount,
    /// More observations in buckets than there are; the sum is NaN.
    #[error("{in_buckets} observations are in buckets, but the histogram counts only {count}")]
    CountNotBigEnough {
        /// The histogram's count.
        count: u64,
        /// What its buckets add up to.
        in_buckets: u64,
    },
    /// Another number of observations in buckets than there are; the sum is not NaN.
    #[error("{in_buckets} observations are in buckets, but the histogram counts {count}")]
    CountMismatch {
        /// The histogram's count.
        count: u64,
        /// What its buckets add up to.
        in_buckets: u64,
    },
    /// A custom bound is NaN.
    #[error("custom buckets: bound {bound} is NaN")]
    CustomBoundNan {
        /// Position, from 1.
        bound: usize,
    },
    /// A custom bound is not above the one before.
    #[error("custom buckets: bound {bound} is not greater than the one before")]
    CustomBoundsNotAscending {
        /// Position, from 1.
        bound: usize,
    },
    /// The last custom bound is infinite.
    #[error("custom buckets: the last bound, which is infinite, must not be listed")]
    CustomBoundInfinite,
    /// Spans reach beyond the last custom bucket.
    #[error("custom buckets: {bounds} bounds are too few for spans that reach over {covered}")]
    CustomBoundsTooFew {
        /// How many bounds there are.
        bounds: usize,
        /// Buckets from the first to the end of the last span.
        covered: u64,
    },
    /// Custom buckets together with a zero count.
    #[error("custom buckets: the zero count must be 0")]
    CustomZeroCount,
    /// Custom buckets together with a zero threshold.
    #[error("custom buckets: the zero threshold must be 0")]
    CustomZeroThreshold,
    /// Custom buckets together with negative spans.
    #[error("custom buckets: there must be no negative spans")]
    CustomNegativeSpans,
    /// Custom buckets together with negative buckets.
    #[error("custom buckets: there must be no negative buckets")]
    CustomNegativeBuckets,
    /// Custom bounds together with an exponential schema.
    #[error("a histogram with an exponential schema must have no custom bounds")]
    ExponentialWithCustomBounds,
    /// Custom buckets cannot be made wider, nor exponential ones narrower.
    #[error("the histogram's resolution cannot be reduced from schema {from} to {to}")]
    NotReducible {
        /// The histogram's schema.
        from: i32,
        /// The wanted one.
        to: i32,
    },
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Side::Positive => "positive",
            Side::Negative => "negative",
        })
    }
}

impl<C: Count> NativeHistogram<C> {
    /// Checks everything that a sender can get wrong. Finer schemas than are stored fail too:
    /// [`NativeHistogram::limit_resolution`] comes first.
    pub fn validate(&self) -> Result<(), HistogramError> {
        let layout = &*self.layout;
        let schema = layout.schema;
        if layout.has_custom_buckets() {
            self.check_custom(layout)?;
        } else if (EXPONENTIAL_SCHEMA_MIN..=EXPONENTIAL_SCHEMA_MAX).contains(&schema) {
            self.check_shape()?;
            self.check_buckets(Side::Negative)?;
            if self.zero_count.is_negative() {
                return Err(HistogramError::NegativeZeroCount);
            }
            if !layout.custom_values.is_empty() {
                return Err(HistogramError::ExponentialWithCustomBounds);
            }
        } else {
            return Err(HistogramError::InvalidSchema { schema });
        }
        if self.count.is_negative() {
            return Err(HistogramError::NegativeCount);
        }
        self.check_buckets(Side::Positive)?;
        let counts = self.counts(Side::Negative).chain(self.counts(Side::Positive));
        C::check_total(self, counts.map(|(_, count)| count))
    }

    /// Checks that spans ascend and have as many buckets as there are: what everything that walks
    /// over a histogram relies on.
    pub fn check_shape(&self) -> Result<(), HistogramError> {
        for side in [Side::Positive, Side::Negative] {
            let (spans, buckets) = self.side(side);
            check_offsets(side, spans, 1)?;
            check_bucket_number(side, spans, buckets.len())?;
        }
        Ok(())
    }

    fn check_buckets(&self, side: Side) -> Result<(), HistogramError> {
        let mut counts = self.counts(side).enumerate();
        match counts.find(|(_, (_, count))| *count < C::Bucket::default()) {
            Some((i, (_, count))) => Err(HistogramError::NegativeBucketCount {
                side,
                bucket: i + 1,
                count: C::to_float(count),
            }),
            None => Ok(()),
        }
    }

    fn check_custom(&self, layout: &BucketLayout) -> Result<(), HistogramError> {
        let bounds = &layout.custom_values;
        let mut before = None;
        for (i, bound) in bounds.iter().enumerate() {
            if bound.is_nan() {
                return Err(HistogramError::CustomBoundNan { bound: i + 1 });
            }
            if before.is_some_and(|before| bound <= before) {
                return Err(HistogramError::CustomBoundsNotAscending { bound: i + 1 });
            }
            before = Some(bound);
        }
        if before == Some(&f64::INFINITY) {
            return Err(HistogramError::CustomBoundInfinite);
        }
        let spans = &layout.positive_spans;
        check_offsets(Side::Positive, spans, 0)?;
        check_bucket_number(Side::Positive, spans, self.positive_buckets.len())?;
        let gaps = spans.iter().map(|span| u64::from(span.offset.unsigned_abs()));
        let covered = gaps.fold(covered(spans), u64::saturating_add);
        if (bounds.len() as u64 + 1) < covered {
            return Err(HistogramError::CustomBoundsTooFew { bounds: bounds.len(), covered });
        }
        if self.zero_count != C::default() {
            return Err(HistogramError::CustomZeroCount);
        }
        if layout.zero_threshold != 0.0 {
            return Err(HistogramError::CustomZeroThreshold);
        }
        if !layout.negative_spans.is_empty() {
            return Err(HistogramError::CustomNegativeSpans);
        }
        if !self.negative_buckets.is_empty() {
            return Err(HistogramError::CustomNegativeBuckets);
        }
        Ok(())
    }
}

/// The first span of exponential buckets may begin below index 0, hence `from`.
fn check_offsets(side: Side, spans: &[Span], from: usize) -> Result<(), HistogramError> {
    let mut checked = spans.iter().enumerate().skip(from);
    match checked.find(|(_, span)| span.offset < 0) {
        Some((i, span)) => {
            Err(HistogramError::SpanNegativeOffset { side, span: i + 1, offset: span.offset })
        }
        None => Ok(()),
    }
}

fn check_bucket_number(side: Side, spans: &[Span], given: usize) -> Result<(), HistogramError> {
    let wanted = covered(spans);
    match wanted == given as u64 {
        true => Ok(()),
        false => Err(HistogramError::SpansBucketsMismatch { side, wanted, given }),
    }
}
