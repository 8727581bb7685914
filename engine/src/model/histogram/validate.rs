//! Rules for accepting a histogram. The rules, and their order, are Prometheus'.

use super::spans::covered;
use super::{
    BucketLayout, Count, EXPONENTIAL_SCHEMA_MAX, EXPONENTIAL_SCHEMA_MIN, NativeHistogram, Span,
};
use std::fmt;

/// Observations above or below zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Observations above zero; with custom bounds, all of them.
    Positive,
    /// Observations below zero; with custom bounds, none.
    Negative,
}

/// Reasons why a histogram is refused.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum HistogramError {
    /// A schema that is not stored.
    #[error(
        "the histogram's schema {schema} is invalid: exponential buckets have -4 to 8, custom \
         buckets -53"
    )]
    InvalidSchema {
        /// Number of the refused schema.
        schema: i32,
    },
    /// A span begins before the end of the previous span.
    #[error("{side} side: span {span} of the histogram has the negative offset {offset}")]
    SpanNegativeOffset {
        /// Side that has the span.
        side: Side,
        /// Position of the span, from 1.
        span: usize,
        /// Offset of the span, below 0.
        offset: i32,
    },
    /// The spans cover more or fewer buckets than the histogram has.
    #[error("{side} side: the histogram's spans need {wanted} buckets, it has {given}")]
    SpansBucketsMismatch {
        /// Side with the wrong number of buckets.
        side: Side,
        /// The number of buckets of the spans.
        wanted: u64,
        /// Number of buckets that are given.
        given: usize,
    },
    /// A bucket index beyond 32 bits.
    #[error("{side} side: a bucket's index does not fit 32 bits")]
    IndexTooLarge {
        /// Side that has the bucket.
        side: Side,
    },
    /// A bucket has a negative count.
    #[error("{side} side: bucket {bucket} has the negative observation count {count}")]
    NegativeBucketCount {
        /// Side that has the bucket.
        side: Side,
        /// Position of the bucket, from 1.
        bucket: usize,
        /// Number of observations in the bucket.
        count: f64,
    },
    /// The zero bucket has a negative count.
    #[error("the zero bucket has a negative observation count")]
    NegativeZeroCount,
    /// The number of observations is negative.
    #[error("the histogram's observation count is negative")]
    NegativeCount,
    /// Buckets have more observations than the histogram, whose sum is NaN.
    #[error("{in_buckets} observations are in buckets, but the histogram counts only {count}")]
    CountNotBigEnough {
        /// Number of observations of the histogram.
        count: u64,
        /// Sum of the counts of all buckets.
        in_buckets: u64,
    },
    /// Buckets have another number of observations than the histogram, whose sum is not NaN.
    #[error("{in_buckets} observations are in buckets, but the histogram counts {count}")]
    CountMismatch {
        /// Number of observations of the histogram.
        count: u64,
        /// Sum of the counts of all buckets.
        in_buckets: u64,
    },
    /// A custom bound is NaN.
    #[error("custom buckets: bound {bound} is NaN")]
    CustomBoundNan {
        /// Position of the bound, from 1.
        bound: usize,
    },
    /// A custom bound is not above the bound before it.
    #[error("custom buckets: bound {bound} is not greater than the one before")]
    CustomBoundsNotAscending {
        /// Position of the bound, from 1.
        bound: usize,
    },
    /// The last custom bound is infinite.
    #[error("custom buckets: the last bound, which is infinite, must not be listed")]
    CustomBoundInfinite,
    /// Spans reach beyond the last custom bucket.
    #[error("custom buckets: {bounds} bounds are too few for spans that reach over {covered}")]
    CustomBoundsTooFew {
        /// Number of bounds that are given.
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
    /// Custom buckets cannot be made wider, nor exponential buckets narrower.
    #[error("the histogram's resolution cannot be reduced from schema {from} to {to}")]
    NotReducible {
        /// Number of the histogram's schema.
        from: i32,
        /// Number of the wanted schema.
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
    /// Checks everything that a sender can get wrong. Schemas that are finer than stored schemas
    /// fail, too: call [`NativeHistogram::limit_resolution`] first.
    pub fn validate(&self) -> Result<(), HistogramError> {
        let layout = &*self.layout;
        let schema = layout.schema;
        if layout.has_custom_buckets() {
            self.check_custom(layout)?;
        } else if (EXPONENTIAL_SCHEMA_MIN..=EXPONENTIAL_SCHEMA_MAX).contains(&schema) {
            // The shape comes first: counts are read by iterating over spans and buckets in pairs.
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

    /// Checks that spans ascend, and that there are as many buckets as the spans cover.
    pub fn check_shape(&self) -> Result<(), HistogramError> {
        for side in [Side::Positive, Side::Negative] {
            let (spans, buckets) = self.side(side);
            // The first offset is the index of a bucket, which may be negative.
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
        // The bound at infinity is implied.
        if before == Some(&f64::INFINITY) {
            return Err(HistogramError::CustomBoundInfinite);
        }
        let spans = &layout.positive_spans;
        // The first bucket has index 0, so no offset may be negative.
        check_offsets(Side::Positive, spans, 0)?;
        check_bucket_number(Side::Positive, spans, self.positive_buckets.len())?;
        // No offset is negative, so its absolute value is the gap.
        let gaps = spans.iter().map(|span| u64::from(span.offset.unsigned_abs()));
        let covered = gaps.fold(covered(spans), u64::saturating_add);
        // The last bucket, up to infinity, has no listed bound.
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
