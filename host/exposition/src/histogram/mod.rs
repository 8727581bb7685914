//! Native histograms of a scrape or import.
//!
//! Sources: `model/histogram` in prometheus/prometheus and the "Native Histograms" specification.

mod error;

pub use error::{ClassicError, HistogramError};
pub use tidepool_model::buckets::CUSTOM_BUCKETS_SCHEMA;
use tidepool_model::buckets::coarser_index;

/// Schemas with exponential bucket bounds, both ends included.
pub const EXPONENTIAL_SCHEMAS: std::ops::RangeInclusive<i32> = -4..=8;

#[derive(Clone, Debug, PartialEq)]
pub struct NativeHistogram {
    /// Bucket layout: one of [`EXPONENTIAL_SCHEMAS`], or [`CUSTOM_BUCKETS_SCHEMA`].
    pub schema: i32,
    /// Maximum absolute value of the observations in the zero bucket.
    pub zero_threshold: f64,
    pub sum: f64,
    /// Whether the histogram is a gauge; otherwise it is a counter, which grows until a reset.
    pub is_gauge: bool,
    /// Positions of the buckets of positive observations.
    pub positive_spans: Vec<Span>,
    /// Positions of the buckets of negative observations.
    pub negative_spans: Vec<Span>,
    pub counts: Counts,
    /// Upper bounds for [`CUSTOM_BUCKETS_SCHEMA`], without infinity; otherwise empty.
    pub custom_values: Vec<f64>,
}

/// A run of consecutive buckets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Number of buckets between the previous span and this one; in the first span, its index.
    pub offset: i32,
    pub length: u32,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Counts {
    /// Integer counts. Each bucket has the difference to the previous bucket.
    Integer {
        /// Number of all observations, NaN included.
        count: u64,
        zero_count: u64,
        positive: Vec<i64>,
        negative: Vec<i64>,
    },
    /// Float counts. Each bucket has its own count.
    Float {
        /// Number of all observations, NaN included.
        count: f64,
        zero_count: f64,
        positive: Vec<f64>,
        negative: Vec<f64>,
    },
}

const POSITIVE: &str = "positive";
const NEGATIVE: &str = "negative";

impl NativeHistogram {
    /// Returns the number of buckets, the zero bucket excluded.
    pub fn buckets(&self) -> usize {
        match &self.counts {
            Counts::Integer { positive, negative, .. } => positive.len() + negative.len(),
            Counts::Float { positive, negative, .. } => positive.len() + negative.len(),
        }
    }

    /// Checks that the spans describe as many buckets as there are.
    pub fn check_spans(&self) -> Result<(), HistogramError> {
        let (positive, negative) = match &self.counts {
            Counts::Integer { positive, negative, .. } => (positive.len(), negative.len()),
            Counts::Float { positive, negative, .. } => (positive.len(), negative.len()),
        };
        check_lengths(POSITIVE, &self.positive_spans, positive)?;
        check_lengths(NEGATIVE, &self.negative_spans, negative)
    }

    /// Checks that the histogram can be stored (`Validate` of upstream's two histogram types).
    pub fn validate(&self) -> Result<(), HistogramError> {
        self.check_spans()?;
        if self.schema == CUSTOM_BUCKETS_SCHEMA {
            self.check_custom_bounds()?;
        } else if EXPONENTIAL_SCHEMAS.contains(&self.schema) {
            // The first offset is an index and may be negative; later offsets are gaps.
            check_offsets(POSITIVE, self.positive_spans.get(1..), 2)?;
            check_offsets(NEGATIVE, self.negative_spans.get(1..), 2)?;
            if !self.custom_values.is_empty() {
                return Err(HistogramError::CustomMix);
            }
        } else {
            return Err(HistogramError::Schema(self.schema));
        }
        match &self.counts {
            Counts::Integer { count, zero_count, positive, negative } => {
                let negative = sum_deltas(NEGATIVE, negative)?;
                let positive = sum_deltas(POSITIVE, positive)?;
                // Sums wrap as in Go, so that hostile counts cannot panic.
                let buckets = negative.wrapping_add(positive).wrapping_add(*zero_count);
                // NaN observations are in the count, but in no bucket.
                let is_right =
                    if self.sum.is_nan() { buckets <= *count } else { buckets == *count };
                match is_right {
                    true => Ok(()),
                    false => Err(HistogramError::CountMismatch { buckets, count: *count }),
                }
            }
            Counts::Float { count, zero_count, positive, negative } => {
                // Rounding makes float sums inexact, so they are not compared with the count.
                check_counts(NEGATIVE, negative)?;
                if *zero_count < 0.0 || *count < 0.0 {
                    return Err(HistogramError::Count);
                }
                check_counts(POSITIVE, positive)
            }
        }
    }

    fn check_custom_bounds(&self) -> Result<(), HistogramError> {
        let bounds = &self.custom_values;
        let ascend = bounds.windows(2).all(|pair| matches!(pair, [a, b] if a < b));
        let is_open = bounds.iter().any(|bound| bound.is_nan() || *bound == f64::INFINITY);
        // Custom buckets start at index 0, so even the first offset must not be negative.
        check_offsets(POSITIVE, Some(&self.positive_spans), 1)?;
        // 64-bit sums cannot overflow, because offsets and lengths have 32 bits.
        let reach = |span: &Span| i64::from(span.offset) + i64::from(span.length);
        let reach: i64 = self.positive_spans.iter().map(reach).sum();
        // The last bucket ends at infinity, which is not in the bounds: hence one more bucket.
        if !ascend || is_open || reach > bounds.len() as i64 + 1 {
            return Err(HistogramError::CustomBounds);
        }
        // With custom bounds, all observations are in the positive buckets.
        let has_zeros = match &self.counts {
            Counts::Integer { zero_count, negative, .. } => {
                *zero_count != 0 || !negative.is_empty()
            }
            Counts::Float { zero_count, negative, .. } => {
                *zero_count != 0.0 || !negative.is_empty()
            }
        };
        match has_zeros || self.zero_threshold != 0.0 || !self.negative_spans.is_empty() {
            true => Err(HistogramError::CustomMix),
            false => Ok(()),
        }
    }

    /// Removes empty buckets, except runs of up to `empty_max` between non-empty buckets. Requires
    /// valid spans ([`Self::check_spans`]).
    pub fn compact(&mut self, empty_max: u32) {
        self.rebuild(empty_max, None);
    }

    /// Merges buckets to reach a coarser schema. Keeps custom bounds and coarser schemas unchanged.
    pub fn reduce_schema(&mut self, schema: i32) {
        // No schema above 52 or below -4 is defined; custom bounds (-53) cannot be merged.
        if self.schema <= schema || self.schema > 52 || schema < -4 {
            return;
        }
        // Between 1 and 56, since `52 >= self.schema > schema >= -4`.
        let shift = (self.schema - schema) as u32;
        self.rebuild(0, Some(shift));
        self.schema = schema;
    }

    fn rebuild(&mut self, empty_max: u32, shift: Option<u32>) {
        let NativeHistogram { positive_spans, negative_spans, counts, .. } = self;
        match counts {
            Counts::Integer { positive, negative, .. } => {
                for (spans, deltas) in [(positive_spans, positive), (negative_spans, negative)] {
                    // Counts replace the deltas, which depend on the previous bucket.
                    let mut last = 0i64;
                    for delta in deltas.iter_mut() {
                        last = last.wrapping_add(*delta);
                        *delta = last;
                    }
                    rebuild_side(spans, deltas, empty_max, shift, i64::wrapping_add);
                    let mut last = 0i64;
                    for count in deltas.iter_mut() {
                        (*count, last) = (count.wrapping_sub(last), *count);
                    }
                }
            }
            Counts::Float { positive, negative, .. } => {
                rebuild_side(positive_spans, positive, empty_max, shift, |a, b| a + b);
                rebuild_side(negative_spans, negative, empty_max, shift, |a, b| a + b);
            }
        }
    }
}

fn check_lengths(side: &'static str, spans: &[Span], found: usize) -> Result<(), HistogramError> {
    let wanted: u64 = spans.iter().map(|span| u64::from(span.length)).sum();
    let found = found as u64;
    if wanted == found { Ok(()) } else { Err(HistogramError::Spans { side, wanted, found }) }
}

fn check_offsets(
    side: &'static str,
    spans: Option<&[Span]>,
    first: usize,
) -> Result<(), HistogramError> {
    let spans = spans.unwrap_or_default();
    match spans.iter().position(|span| span.offset < 0) {
        None => Ok(()),
        Some(at) => {
            let offset = spans.get(at).map_or(0, |span| span.offset);
            Err(HistogramError::Offset { side, number: at + first, offset })
        }
    }
}

fn sum_deltas(side: &'static str, deltas: &[i64]) -> Result<u64, HistogramError> {
    let (mut last, mut sum) = (0i64, 0u64);
    for (at, delta) in deltas.iter().enumerate() {
        last = last.wrapping_add(*delta);
        let count = u64::try_from(last)
            .map_err(|_| HistogramError::BucketCount { side, number: at + 1 })?;
        sum = sum.wrapping_add(count);
    }
    Ok(sum)
}

fn check_counts(side: &'static str, counts: &[f64]) -> Result<(), HistogramError> {
    match counts.iter().position(|count| *count < 0.0) {
        None => Ok(()),
        Some(at) => Err(HistogramError::BucketCount { side, number: at + 1 }),
    }
}

/// Rebuilds the spans of one side around its non-empty buckets. With `shift`, merges buckets to a
/// schema that is lower by `shift`.
fn rebuild_side<T: Copy + PartialEq + Default>(
    spans: &mut Vec<Span>,
    counts: &mut Vec<T>,
    empty_max: u32,
    shift: Option<u32>,
    add: impl Fn(T, T) -> T,
) {
    let empty = T::default();
    let mut new_spans: Vec<Span> = Vec::with_capacity(spans.len());
    let mut new_counts: Vec<T> = Vec::with_capacity(counts.len());
    // Index after the last bucket that was kept.
    let mut end = 0i64;
    let mut index = 0i64;
    let mut left = counts.iter();
    for span in spans.iter() {
        index += i64::from(span.offset);
        for count in left.by_ref().take(span.length as usize) {
            let place = shift.map_or(index, |shift| coarser_index(index, shift));
            index += 1;
            if *count == empty {
                continue;
            }
            let gap = place - end;
            match (new_spans.last_mut(), new_counts.last_mut()) {
                // With the coarser bounds, this bucket belongs to the previous one.
                (Some(_), Some(same)) if gap == -1 && shift.is_some() => {
                    *same = add(*same, *count);
                    continue;
                }
                (Some(last), Some(_)) if (0..=i64::from(empty_max)).contains(&gap) => {
                    // Filling a short gap needs less memory than another span.
                    last.length += gap as u32 + 1;
                    new_counts.extend(std::iter::repeat_n(empty, gap as usize));
                }
                _ => {
                    let offset = i32::try_from(gap).unwrap_or(i32::MAX);
                    new_spans.push(Span { offset, length: 1 });
                }
            }
            new_counts.push(*count);
            end = place + 1;
        }
    }
    (*spans, *counts) = (new_spans, new_counts);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans(of: &[(i32, u32)]) -> Vec<Span> {
        of.iter().map(|(offset, length)| Span { offset: *offset, length: *length }).collect()
    }

    fn float(positive_spans: &[(i32, u32)], positive: &[f64]) -> NativeHistogram {
        NativeHistogram {
            schema: 0,
            zero_threshold: 0.0,
            sum: 1.0,
            is_gauge: false,
            positive_spans: spans(positive_spans),
            negative_spans: Vec::new(),
            counts: Counts::Float {
                count: positive.iter().sum(),
                zero_count: 0.0,
                positive: positive.to_vec(),
                negative: Vec::new(),
            },
            custom_values: Vec::new(),
        }
    }

    fn integer(positive_spans: &[(i32, u32)], deltas: &[i64], count: u64) -> NativeHistogram {
        let counts = Counts::Integer {
            count,
            zero_count: 0,
            positive: deltas.to_vec(),
            negative: Vec::new(),
        };
        NativeHistogram { counts, ..float(positive_spans, &[]) }
    }

    /// Cases of upstream's `TestHistogramCompact` and `TestFloatHistogramCompact`.
    #[test]
    fn empty_buckets_are_left_out() {
        for (before, counts, empty_max, after, wanted) in [
            (
                &[(-2, 1), (2, 3)][..],
                &[1., 3., 0., 0.][..],
                0,
                &[(-2, 1), (2, 1)][..],
                &[1., 3.][..],
            ),
            (&[(-2, 1), (2, 3)], &[0., 0., 3., 0.], 0, &[(2, 1)], &[3.]),
            (&[(-2, 3), (0, 2)], &[1., 0., 0., 4., 2.], 0, &[(-2, 1), (2, 2)], &[1., 4., 2.]),
            (&[(-2, 3), (0, 2)], &[1., 0., 0., 4., 2.], 2, &[(-2, 5)], &[1., 0., 0., 4., 2.]),
            (&[(-2, 1), (2, 2)], &[1., 4., 2.], 2, &[(-2, 5)], &[1., 0., 0., 4., 2.]),
            (&[(-2, 1), (3, 2)], &[1., 4., 2.], 2, &[(-2, 1), (3, 2)], &[1., 4., 2.]),
            (&[(-2, 1), (2, 0), (1, 1)], &[1., 2.], 0, &[(-2, 1), (3, 1)], &[1., 2.]),
            (&[(-2, 2), (3, 1)], &[0., 0., 0.], 0, &[], &[]),
            (&[(0, 0)], &[], 0, &[], &[]),
        ] {
            let mut histogram = float(before, counts);
            histogram.compact(empty_max);
            assert_eq!(histogram.positive_spans, spans(after), "{before:?} {counts:?}");
            let Counts::Float { positive, .. } = &histogram.counts else { return };
            assert_eq!(positive, wanted, "{before:?} {counts:?}");
        }
        let mut histogram = integer(&[(-2, 4)], &[1, -1, 0, 3], 4);
        histogram.compact(0);
        assert_eq!(histogram, integer(&[(-2, 1), (2, 1)], &[1, 2], 4));
        let mut histogram = integer(&[(-2, 4)], &[1, -1, 0, 3], 4);
        histogram.compact(2);
        assert_eq!(histogram, integer(&[(-2, 4)], &[1, -1, 0, 3], 4));
    }

    /// The cases of upstream's `TestReduceResolution`.
    #[test]
    fn buckets_become_wider() {
        let before = [(0, 4), (0, 0), (3, 2)];
        let mut histogram = integer(&before, &[1, 2, -2, 1, -1, 0], 9);
        histogram.reduce_schema(-1);
        let wanted =
            NativeHistogram { schema: -1, ..integer(&[(0, 3), (1, 1)], &[1, 3, -2, 0], 9) };
        assert_eq!(histogram, wanted);
        let mut histogram = float(&before, &[1., 3., 1., 2., 1., 1.]);
        histogram.reduce_schema(-1);
        let wanted = float(&[(0, 3), (1, 1)], &[1., 4., 2., 2.]);
        assert_eq!(histogram, NativeHistogram { schema: -1, ..wanted.clone() });
        histogram.reduce_schema(0);
        assert_eq!(histogram, NativeHistogram { schema: -1, ..wanted });
    }

    /// The cases of upstream's `TestHistogramValidation`.
    #[test]
    fn what_cannot_be_stored_is_refused() {
        let good = integer(&[(0, 2), (1, 1)], &[1, 0, -1], 2);
        assert_eq!(good.validate(), Ok(()));
        let wrong = |change: fn(&mut NativeHistogram)| {
            let mut histogram = good.clone();
            change(&mut histogram);
            histogram.validate().err()
        };
        let offset = HistogramError::Offset { side: POSITIVE, number: 2, offset: -1 };
        assert_eq!(wrong(|h| h.positive_spans[1].offset = -1), Some(offset));
        let spans = HistogramError::Spans { side: POSITIVE, wanted: 4, found: 3 };
        assert_eq!(wrong(|h| h.positive_spans[1].length = 2), Some(spans));
        assert_eq!(wrong(|h| h.schema = 9), Some(HistogramError::Schema(9)));
        assert_eq!(wrong(|h| h.custom_values.push(1.0)), Some(HistogramError::CustomMix));
        let negative = integer(&[(0, 1)], &[-1], 0).validate();
        assert_eq!(negative, Err(HistogramError::BucketCount { side: POSITIVE, number: 1 }));
        let mut more = integer(&[(0, 1)], &[1], 2);
        let mismatch = HistogramError::CountMismatch { buckets: 1, count: 2 };
        assert_eq!(more.validate(), Err(mismatch));
        more.sum = f64::NAN;
        assert_eq!(more.validate(), Ok(()));
        let of_floats = float(&[(0, 2)], &[2.0, -1.0]).validate();
        assert_eq!(of_floats, Err(HistogramError::BucketCount { side: POSITIVE, number: 2 }));
        assert_eq!(float(&[(0, 1)], &[-1.0]).validate(), Err(HistogramError::Count));
        let custom = |values: &[f64], spans: &[(i32, u32)]| NativeHistogram {
            schema: CUSTOM_BUCKETS_SCHEMA,
            custom_values: values.to_vec(),
            ..integer(spans, &[1], 1)
        };
        assert_eq!(custom(&[1.0, 2.0], &[(2, 1)]).validate(), Ok(()));
        for (values, place) in
            [(&[1.0, 2.0][..], 3), (&[2.0, 1.0], 0), (&[f64::NAN], 0), (&[f64::INFINITY], 0)]
        {
            let refused = custom(values, &[(place, 1)]).validate();
            assert_eq!(refused, Err(HistogramError::CustomBounds), "{values:?}");
        }
        let zero = NativeHistogram { zero_threshold: 1.0, ..custom(&[1.0], &[(0, 1)]) };
        assert_eq!(zero.validate(), Err(HistogramError::CustomMix));
    }
}
