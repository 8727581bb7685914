//! Iteration over the buckets of a histogram with their bounds.

use super::layout::indexed;
use crate::logarithm::log2;
use crate::model::Histogram;
use tidepool_model::buckets::upper_bound;

/// A bucket with its bounds and count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bucket {
    /// Lower bound; infinite for an unbounded bucket.
    pub lower: f64,
    /// Upper bound; infinite for an unbounded bucket.
    pub upper: f64,
    /// Whether the lower bound is part of the bucket.
    pub has_lower: bool,
    /// Whether the upper bound is part of the bucket.
    pub has_upper: bool,
    /// Number of observations in the bucket.
    pub count: f64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum BucketPosition {
    Negative(i32),
    Zero,
    Positive(i32),
}

impl Histogram {
    /// Iterates over all buckets by ascending bounds, cut off at the threshold of the zero bucket.
    pub fn buckets(&self) -> impl DoubleEndedIterator<Item = Bucket> + '_ {
        // Spans can only be walked forward, so a list of all buckets allows backward iteration.
        let mut places: Vec<(BucketPosition, f64)> =
            Vec::with_capacity(self.negative_buckets.len() + self.positive_buckets.len() + 1);
        let negative = indexed(&self.negative_spans, &self.negative_buckets);
        places.extend(negative.map(|(index, count)| (BucketPosition::Negative(index), count)));
        places.reverse();
        if self.zero_count > 0.0 {
            places.push((BucketPosition::Zero, self.zero_count));
        }
        let positive = indexed(&self.positive_spans, &self.positive_buckets);
        places.extend(positive.map(|(index, count)| (BucketPosition::Positive(index), count)));
        places.into_iter().map(|(place, count)| match place {
            BucketPosition::Zero => self.zero_bucket(),
            BucketPosition::Negative(index) => {
                let mut bucket = self.negative_bucket(index, count);
                if bucket.upper < 0.0 && bucket.upper > -self.zero_threshold {
                    bucket.upper = -self.zero_threshold;
                }
                bucket
            }
            BucketPosition::Positive(index) => {
                let mut bucket = self.positive_bucket(index, count);
                if bucket.lower > 0.0 && bucket.lower < self.zero_threshold {
                    bucket.lower = self.zero_threshold;
                }
                bucket
            }
        })
    }

    pub(super) fn zero_bucket(&self) -> Bucket {
        Bucket {
            lower: -self.zero_threshold,
            upper: self.zero_threshold,
            has_lower: true,
            has_upper: true,
            count: self.zero_count,
        }
    }

    /// Iterates over positive buckets by ascending bounds, not cut off at the zero bucket.
    pub(super) fn positive_side(&self) -> impl Iterator<Item = Bucket> + '_ {
        indexed(&self.positive_spans, &self.positive_buckets)
            .map(|(index, count)| self.positive_bucket(index, count))
    }

    /// Iterates over negative buckets by descending bounds, not cut off at the zero bucket.
    pub(super) fn negative_side(&self) -> impl Iterator<Item = Bucket> + '_ {
        indexed(&self.negative_spans, &self.negative_buckets)
            .map(|(index, count)| self.negative_bucket(index, count))
    }

    fn positive_bucket(&self, index: i32, count: f64) -> Bucket {
        let bound = |index| upper_bound(index, self.schema, &self.custom_values);
        let (lower, upper) = (bound(index.wrapping_sub(1)), bound(index));
        let is_custom = self.has_custom_buckets();
        Bucket {
            lower,
            upper,
            // Upper bounds are inclusive; the first custom bucket begins at negative infinity.
            has_lower: if is_custom { index == 0 } else { lower < 0.0 },
            has_upper: is_custom || upper > 0.0,
            count,
        }
    }

    fn negative_bucket(&self, index: i32, count: f64) -> Bucket {
        let bound = |index| upper_bound(index, self.schema, &self.custom_values);
        Bucket {
            lower: -bound(index),
            upper: -bound(index.wrapping_sub(1)),
            has_lower: true,
            has_upper: false,
            count,
        }
    }
}

impl Bucket {
    /// Returns the fraction of the bucket below a value within its finite bounds: a fraction of its
    /// width if `is_linear`, else of the distance between the logarithms of its bounds.
    pub fn fraction_below(&self, value: f64, is_linear: bool) -> f64 {
        if is_linear {
            return (value - self.lower) / (self.upper - self.lower);
        }
        // Bounds of negative buckets have the same logarithms, in the opposite order.
        let [lower, upper, at] = [self.lower, self.upper, value].map(|bound| log2(bound.abs()));
        if value > 0.0 {
            (at - lower) / (upper - lower)
        } else {
            1.0 - (at - upper) / (lower - upper)
        }
    }
}
