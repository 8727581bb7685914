//! Operations on counts that differ between whole and fractional counts.

use super::{HistogramError, NativeHistogram};
use std::fmt::Debug;

/// The type of a histogram's counts: `u64` or `f64`.
pub trait Count: Copy + Default + PartialOrd + Debug + 'static {
    /// A stored bucket: of whole counts, the difference to the bucket before; else the count.
    type Bucket: Copy + Default + PartialOrd + Debug;

    /// Returns the count of a stored bucket, given the count of the bucket before.
    fn bucket_count(before: Self::Bucket, kept: Self::Bucket) -> Self::Bucket;

    /// Returns the stored form of a bucket with this count.
    fn kept(before: Self::Bucket, count: Self::Bucket) -> Self::Bucket;

    /// Returns the sum of the counts of two buckets.
    fn bucket_sum(a: Self::Bucket, b: Self::Bucket) -> Self::Bucket;

    /// Returns whether two counts have the same bits.
    fn same(self, other: Self) -> bool;

    /// Returns whether two buckets have the same bits.
    fn same_bucket(a: Self::Bucket, b: Self::Bucket) -> bool;

    /// Converts a bucket to a float for messages, which may round it.
    fn to_float(bucket: Self::Bucket) -> f64;

    /// Checks that the number of observations agrees with the sum of the buckets.
    fn check_total(
        histogram: &NativeHistogram<Self>,
        buckets: impl Iterator<Item = Self::Bucket>,
    ) -> Result<(), HistogramError>;

    /// Returns whether the count is below zero; NaN is not.
    fn is_negative(self) -> bool;

    /// Iterates over the counts of stored buckets.
    fn running(kept: impl Iterator<Item = Self::Bucket>) -> impl Iterator<Item = Self::Bucket> {
        kept.scan(Self::Bucket::default(), |before, kept| {
            *before = Self::bucket_count(*before, kept);
            Some(*before)
        })
    }
}

impl Count for u64 {
    type Bucket = i64;

    fn bucket_count(before: i64, kept: i64) -> i64 {
        // A hostile sum wraps, as in Prometheus, instead of ending the program.
        before.wrapping_add(kept)
    }

    fn kept(before: i64, count: i64) -> i64 {
        count.wrapping_sub(before)
    }

    fn bucket_sum(a: i64, b: i64) -> i64 {
        a.wrapping_add(b)
    }

    fn same(self, other: u64) -> bool {
        self == other
    }

    fn same_bucket(a: i64, b: i64) -> bool {
        a == b
    }

    fn to_float(bucket: i64) -> f64 {
        bucket as f64
    }

    fn check_total(
        histogram: &NativeHistogram<u64>,
        buckets: impl Iterator<Item = i64>,
    ) -> Result<(), HistogramError> {
        let zero_count = histogram.zero_count;
        // Negative buckets were refused before, so the casts are exact.
        let in_buckets = buckets.fold(zero_count, |sum, bucket| sum.wrapping_add(bucket as u64));
        let count = histogram.count;
        // Observed NaNs are in no bucket and make the sum NaN, so buckets may have fewer.
        if histogram.sum.is_nan() {
            if in_buckets > count {
                return Err(HistogramError::CountNotBigEnough { count, in_buckets });
            }
        } else if in_buckets != count {
            return Err(HistogramError::CountMismatch { count, in_buckets });
        }
        Ok(())
    }

    fn is_negative(self) -> bool {
        false
    }
}

impl Count for f64 {
    type Bucket = f64;

    fn bucket_count(_before: f64, kept: f64) -> f64 {
        kept
    }

    fn kept(_before: f64, count: f64) -> f64 {
        count
    }

    fn bucket_sum(a: f64, b: f64) -> f64 {
        a + b
    }

    fn same(self, other: f64) -> bool {
        // Compared by bits, so that NaN equals itself.
        self.to_bits() == other.to_bits()
    }

    fn same_bucket(a: f64, b: f64) -> bool {
        a.to_bits() == b.to_bits()
    }

    fn to_float(bucket: f64) -> f64 {
        bucket
    }

    /// Accepts any total: fractions need not add up.
    fn check_total(
        _histogram: &NativeHistogram<f64>,
        _buckets: impl Iterator<Item = f64>,
    ) -> Result<(), HistogramError> {
        Ok(())
    }

    fn is_negative(self) -> bool {
        self < 0.0
    }
}
