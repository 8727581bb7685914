//! Native histograms: what one says, whether it may be stored, and what makes two the same.
//!
//! A histogram counts observations in buckets. Its [`BucketLayout`] says which buckets there are;
//! histograms of one chunk share it. Counts are whole numbers ([`Histogram`]) or fractions
//! ([`FloatHistogram`]); both are one type, and [`Count`] tells what differs.
//!
//! ```text
//! spans     offset 2, length 2      offset 1, length 3
//! buckets   . . [2] [3]             .  [5] [6] [7]        an offset counts the gap before a span
//! ```
//!
//! Whole counts are kept as upstream keeps them: each bucket as the difference to the bucket
//! before it in its list. A histogram whose sum is the marker NaN [`STALE_NAN_BITS`] says that
//! its series ended; nothing else in it counts.
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

/// Schemas that senders and newer versions may use; the finer ones are brought down to
/// [`EXPONENTIAL_SCHEMA_MAX`] where they come in.
pub const EXPONENTIAL_SCHEMAS_KNOWN: std::ops::RangeInclusive<i32> = -9..=52;

/// A run of neighbouring buckets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Buckets left out since the span before; for the first span the index of its first bucket.
    pub offset: i32,
    /// How many buckets there are.
    pub length: u32,
}

/// What is known about the counter since the histogram before. The numbers are those in the log
/// and on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum ResetHint {
    /// It is not known; readers must compare.
    #[default]
    Unknown = 0,
    /// The counter was reset before this histogram.
    Reset = 1,
    /// The counter went on.
    NotReset = 2,
    /// Not a counter at all.
    Gauge = 3,
}

/// Which buckets a histogram has.
#[derive(Clone, Debug, Default)]
pub struct BucketLayout {
    /// How wide buckets are: -4 to 8 for powers of two, or [`CUSTOM_BUCKETS_SCHEMA`].
    pub schema: i32,
    /// Largest absolute value that the zero bucket counts.
    pub zero_threshold: f64,
    /// Buckets of positive observations; with custom bounds, all buckets.
    pub positive_spans: Box<[Span]>,
    /// Buckets of negative observations, by absolute value.
    pub negative_spans: Box<[Span]>,
    /// Upper bounds of custom buckets, ascending, without the last one, which is infinite.
    pub custom_values: Box<[f64]>,
}

/// A native histogram whose counts are of the type `C`.
#[derive(Clone, Debug)]
pub struct NativeHistogram<C: Count> {
    /// Which buckets there are.
    pub layout: Rc<BucketLayout>,
    /// The counter-reset hint.
    pub reset_hint: ResetHint,
    /// Number of observations.
    pub count: C,
    /// Observations in the zero bucket.
    pub zero_count: C,
    /// Sum of all observations.
    pub sum: f64,
    /// Buckets of `layout.positive_spans`, as [`Count::Bucket`] says.
    pub positive_buckets: Vec<C::Bucket>,
    /// Buckets of `layout.negative_spans`.
    pub negative_buckets: Vec<C::Bucket>,
}

/// A native histogram with whole counts.
pub type Histogram = NativeHistogram<u64>;

/// A native histogram with fractional counts.
pub type FloatHistogram = NativeHistogram<f64>;

impl ResetHint {
    /// The hint with this number; an unknown number counts as no hint.
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
    /// Whether bucket bounds are listed one by one.
    pub fn has_custom_buckets(&self) -> bool {
        self.schema == CUSTOM_BUCKETS_SCHEMA
    }

    /// Whether the schema is one that can be stored, or be brought down to one.
    pub fn has_known_schema(&self) -> bool {
        self.has_custom_buckets() || EXPONENTIAL_SCHEMAS_KNOWN.contains(&self.schema)
    }

    /// Whether the two have equal custom bounds, as numbers; NaN equals itself.
    pub fn same_bounds(&self, other: &BucketLayout) -> bool {
        let same = |(a, b): (&f64, &f64)| a == b || a.to_bits() == b.to_bits();
        self.custom_values.len() == other.custom_values.len()
            && self.custom_values.iter().zip(&other.custom_values).all(same)
    }
}

impl PartialEq for BucketLayout {
    /// Floats are compared by their bits, so that NaN equals itself.
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
    /// The histogram that says that its series ended.
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

    /// Whether this says that its series ended.
    pub fn is_stale(&self) -> bool {
        is_stale_nan(self.sum)
    }

    /// Bucket indices and counts of one side, ascending. Ends with the shorter of spans and
    /// buckets.
    pub fn counts(&self, side: Side) -> impl Iterator<Item = (i64, C::Bucket)> + '_ {
        let (spans, buckets) = self.side(side);
        spans::indices(spans).zip(C::running(buckets.iter().copied()))
    }

    /// Spans and buckets of one side.
    pub fn side(&self, side: Side) -> (&[Span], &[C::Bucket]) {
        match side {
            Side::Positive => (&self.layout.positive_spans, &self.positive_buckets),
            Side::Negative => (&self.layout.negative_spans, &self.negative_buckets),
        }
    }

    /// Whether the two tell of the same observations. What may differ: the reset hint, empty
    /// buckets, and how neighbouring buckets are split into spans. A chunk does not keep these,
    /// so this is how a histogram is compared with a stored one.
    pub fn same_observations(&self, other: &NativeHistogram<C>) -> bool {
        if self.is_stale() || other.is_stale() {
            return self.is_stale() && other.is_stale();
        }
        let same_side = |side| {
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
    /// Everything is compared, floats by their bits.
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
