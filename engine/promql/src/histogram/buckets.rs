//! Buckets with their bounds.

use super::layout::indexed;
use crate::logarithm::log2;
use crate::model::Histogram;
use tidepool_model::buckets::upper_bound;

/// A bucket with its bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bucket {
    /// Lower bound.
    pub lower: f64,
    /// Upper bound.
    pub upper: f64,
    /// Whether the lower bound belongs to it.
    pub has_lower: bool,
    /// Whether the upper bound belongs to it.
    pub has_upper: bool,
    /// Observations.
    pub count: f64,
}

/// Where a bucket stands in a histogram.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Negative(i32),
    Zero,
    Positive(i32),
}

impl Histogram {
    /// All buckets by ascending bounds. Those that overlap the zero bucket end where it begins.
    pub fn buckets(&self) -> impl DoubleEndedIterator<Item = Bucket> + '_ {
        let mut places: Vec<(Place, f64)> =
            Vec::with_capacity(self.negative_buckets.len() + self.positive_buckets.len() + 1);
        let negative = indexed(&self.negative_spans, &self.negative_buckets);
        places.extend(negative.map(|(index, count)| (Place::Negative(index), count)));
        places.reverse();
        if self.zero_count > 0.0 {
            places.push((Place::Zero, self.zero_count));
        }
        let positive = indexed(&self.positive_spans, &self.positive_buckets);
        places.extend(positive.map(|(index, count)| (Place::Positive(index), count)));
        places.into_iter().map(|(place, count)| match place {
            Place::Zero => self.zero_bucket(),
            Place::Negative(index) => {
                let mut bucket = self.negative_bucket(index, count);
                if bucket.upper < 0.0 && bucket.upper > -self.zero_threshold {
                    bucket.upper = -self.zero_threshold;
                }
                bucket
            }
            Place::Positive(index) => {
                let mut bucket = self.positive_bucket(index, count);
                if bucket.lower > 0.0 && bucket.lower < self.zero_threshold {
                    bucket.lower = self.zero_threshold;
                }
                bucket
            }
        })
    }

    /// The zero bucket.
    pub(super) fn zero_bucket(&self) -> Bucket {
        Bucket {
            lower: -self.zero_threshold,
            upper: self.zero_threshold,
            has_lower: true,
            has_upper: true,
            count: self.zero_count,
        }
    }

    /// Buckets of positive observations by ascending bounds, whatever the zero bucket holds.
    pub(super) fn positive_side(&self) -> impl Iterator<Item = Bucket> + '_ {
        indexed(&self.positive_spans, &self.positive_buckets)
            .map(|(index, count)| self.positive_bucket(index, count))
    }

    /// Buckets of negative observations by descending bounds, whatever the zero bucket holds.
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
    /// How much of the bucket lies below a value within its finite bounds: of its width, or, unless
    /// it is linear, of the logarithms of its bounds.
    pub fn fraction_below(&self, value: f64, is_linear: bool) -> f64 {
        if is_linear {
            return (value - self.lower) / (self.upper - self.lower);
        }
        let [lower, upper, at] = [self.lower, self.upper, value].map(|bound| log2(bound.abs()));
        if value > 0.0 {
            (at - lower) / (upper - lower)
        } else {
            1.0 - (at - upper) / (lower - upper)
        }
    }
}
