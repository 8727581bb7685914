//! Native histograms: contents, validity, and equality.
//!
//! A histogram counts observations in buckets. Its [`BucketLayout`] lists the buckets, and is
//! shared by the histograms of a chunk. Counts are whole numbers ([`Histogram`]) or fractions
//! ([`FloatHistogram`]) of one generic type; the trait [`Count`] has their differences.
//!
//! ```text
//! spans     offset 2, length 2      offset 1, length 3
//! buckets   . . [2] [3]             .  [5] [6] [7]        an offset counts the gap before a span
//! ```
//!
//! Whole counts are kept as in Prometheus: each bucket as the difference to the bucket before it in
//! its list. A histogram whose sum is the marker NaN [`STALE_NAN_BITS`] is a staleness
//! marker, and its other fields have no meaning.
//!
//! Source: prometheus/prometheus, `model/histogram`. Reading order: this file, `count.rs`,
//! `validate.rs`, `resolution.rs`.

mod count;
mod resolution;
mod spans;
mod validate;

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

pub use count::Count;
pub use spans::{SpanBuilder, fewest_spans, indices};
pub use tidepool_model::buckets::CUSTOM_BUCKETS_SCHEMA;
pub use tidepool_model::{STALE_NAN_BITS, is_stale_nan};
pub use validate::{HistogramError, Side};

use std::rc::Rc;

/// Coarsest exponential schema that is stored: a bucket spans 16 powers of two.
pub const EXPONENTIAL_SCHEMA_MIN: i32 = -4;

/// Finest exponential schema that is stored: 256 buckets for each power of two.
pub const EXPONENTIAL_SCHEMA_MAX: i32 = 8;

/// Exponential schemas that are received; finer ones are reduced to [`EXPONENTIAL_SCHEMA_MAX`].
pub const EXPONENTIAL_SCHEMAS_KNOWN: std::ops::RangeInclusive<i32> = -9..=52;

/// A run of neighbouring buckets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Number of buckets left out since the last span; for the first span, its start index.
    pub offset: i32,
    /// Number of buckets of the run.
    pub length: u32,
}

/// Counter-reset hint: the relation to the histogram before, numbered as in log and on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum ResetHint {
    /// No hint, so that readers must compare the two histograms.
    #[default]
    Unknown = 0,
    /// The counter was reset before this histogram.
    Reset = 1,
    /// The counter was not reset before this histogram.
    NotReset = 2,
    /// The histogram is no counter at all.
    Gauge = 3,
}

/// Schema, thresholds and spans of a histogram's buckets.
#[derive(Clone, Debug, Default)]
pub struct BucketLayout {
    /// Width of buckets: -4 to 8 for powers of two, or [`CUSTOM_BUCKETS_SCHEMA`].
    pub schema: i32,
    /// Largest absolute value that the zero bucket counts.
    pub zero_threshold: f64,
    /// Buckets of positive observations; with custom bounds, all buckets.
    pub positive_spans: Box<[Span]>,
    /// Buckets of negative observations, by absolute value.
    pub negative_spans: Box<[Span]>,
    /// Upper bounds of custom buckets, ascending, without the last bound, which is infinite.
    pub custom_values: Box<[f64]>,
}

/// A native histogram whose counts are of the type `C`.
#[derive(Clone, Debug)]
pub struct NativeHistogram<C: Count> {
    /// Buckets that the histogram has, shared within a chunk.
    pub layout: Rc<BucketLayout>,
    /// Counter-reset hint relative to the last histogram of the series.
    pub reset_hint: ResetHint,
    /// Number of observations, those in no bucket included.
    pub count: C,
    /// Number of observations in the zero bucket.
    pub zero_count: C,
    /// Sum of all observed values.
    pub sum: f64,
    /// Buckets of `layout.positive_spans`, as [`Count::Bucket`] describes.
    pub positive_buckets: Vec<C::Bucket>,
    /// Buckets of `layout.negative_spans`, in the same form.
    pub negative_buckets: Vec<C::Bucket>,
}

/// A native histogram with whole counts.
pub type Histogram = NativeHistogram<u64>;

/// A native histogram with fractional counts.
pub type FloatHistogram = NativeHistogram<f64>;

impl ResetHint {
    /// Returns the hint with this number; an unknown number counts as no hint.
    pub fn from_number(number: u64) -> ResetHint {
        match number {
            1 => ResetHint::Reset,
            2 => ResetHint::NotReset,
            3 => ResetHint::Gauge,
            _ => ResetHint::Unknown,
        }
    }
}

impl BucketLayout {
    /// Returns whether the bounds of buckets are listed one by one.
    pub fn has_custom_buckets(&self) -> bool {
        self.schema == CUSTOM_BUCKETS_SCHEMA
    }

    /// Returns whether the schema can be stored, or be reduced to one that can.
    pub fn has_known_schema(&self) -> bool {
        self.has_custom_buckets() || EXPONENTIAL_SCHEMAS_KNOWN.contains(&self.schema)
    }

    /// Returns whether both layouts have equal custom bounds, as numbers; NaN equals itself.
    pub fn same_bounds(&self, other: &BucketLayout) -> bool {
        let same = |(a, b): (&f64, &f64)| a == b || a.to_bits() == b.to_bits();
        self.custom_values.len() == other.custom_values.len()
            && self.custom_values.iter().zip(&other.custom_values).all(same)
    }
}

impl PartialEq for BucketLayout {
    fn eq(&self, other: &Self) -> bool {
        let same_bits = |a: &[f64], b: &[f64]| {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits())
        };
        self.schema == other.schema
            && self.zero_threshold.to_bits() == other.zero_threshold.to_bits()
            && self.positive_spans == other.positive_spans
            && self.negative_spans == other.negative_spans
            && same_bits(&self.custom_values, &other.custom_values)
    }
}

impl Eq for BucketLayout {}

impl<C: Count> NativeHistogram<C> {
    /// Returns a staleness marker for a series of histograms.
    pub fn stale() -> NativeHistogram<C> {
        NativeHistogram {
            layout: Rc::default(),
            reset_hint: ResetHint::Unknown,
            count: C::default(),
            zero_count: C::default(),
            sum: f64::from_bits(STALE_NAN_BITS),
            positive_buckets: Vec::new(),
            negative_buckets: Vec::new(),
        }
    }

    /// Returns whether the histogram is a staleness marker.
    pub fn is_stale(&self) -> bool {
        is_stale_nan(self.sum)
    }

    /// Iterates over indices and counts of one side, up to the shorter of spans and buckets.
    pub fn counts(&self, side: Side) -> impl Iterator<Item = (i64, C::Bucket)> + '_ {
        let (spans, buckets) = self.side(side);
        spans::indices(spans).zip(C::running(buckets.iter().copied()))
    }

    /// Returns spans and buckets of one side.
    pub fn side(&self, side: Side) -> (&[Span], &[C::Bucket]) {
        match side {
            Side::Positive => (&self.layout.positive_spans, &self.positive_buckets),
            Side::Negative => (&self.layout.negative_spans, &self.negative_buckets),
        }
    }

    /// Returns whether both have the same observations. Reset hint, empty buckets and the split of
    /// neighbouring buckets into spans may differ, because a chunk does not keep them. So a
    /// histogram can be compared with a stored one.
    pub fn same_observations(&self, other: &NativeHistogram<C>) -> bool {
        // Other fields of a staleness marker have no meaning.
        if self.is_stale() || other.is_stale() {
            return self.is_stale() && other.is_stale();
        }
        let same_side = |side| {
            // An empty bucket inside of a span equals a gap.
            let used = |(_, count): &(i64, C::Bucket)| *count != C::Bucket::default();
            let (mut these, mut those) =
                (self.counts(side).filter(used), other.counts(side).filter(used));
            loop {
                match (these.next(), those.next()) {
                    (None, None) => return true,
                    (Some((i, a)), Some((j, b))) if i == j && C::same_bucket(a, b) => {}
                    _ => return false,
                }
            }
        };
        let (a, b) = (&self.layout, &other.layout);
        a.schema == b.schema
            // By value, so that 0 equals -0; by bits, so that NaN equals itself.
            && (a.zero_threshold == b.zero_threshold
                || a.zero_threshold.to_bits() == b.zero_threshold.to_bits())
            && (!a.has_custom_buckets() || a.same_bounds(b))
            && self.count.same(other.count)
            && self.zero_count.same(other.zero_count)
            && self.sum.to_bits() == other.sum.to_bits()
            && same_side(Side::Positive)
            && same_side(Side::Negative)
    }
}

impl<C: Count> PartialEq for NativeHistogram<C> {
    fn eq(&self, other: &Self) -> bool {
        let same_buckets = |a: &[C::Bucket], b: &[C::Bucket]| {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| C::same_bucket(*a, *b))
        };
        self.layout == other.layout
            && self.reset_hint == other.reset_hint
            && self.count.same(other.count)
            && self.zero_count.same(other.zero_count)
            && self.sum.to_bits() == other.sum.to_bits()
            && same_buckets(&self.positive_buckets, &other.positive_buckets)
            && same_buckets(&self.negative_buckets, &other.negative_buckets)
    }
}

impl<C: Count> Eq for NativeHistogram<C> {}
