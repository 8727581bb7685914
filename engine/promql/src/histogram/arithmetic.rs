//! Sums, differences and multiples of histograms.

use super::compensated::Compensation;
use super::custom;
use super::layout::{Side, Terms, indexes};
use crate::model::{CUSTOM_BUCKETS_SCHEMA, CounterReset, Histogram};

/// The operands have exponential and custom buckets, which cannot be combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "cannot apply this operation on histograms with a mix of exponential and custom bucket schemas"
)]
pub struct Incompatible;

/// Differences that were removed to combine two histograms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reconciled {
    /// Counter reset hints conflicted: one was a reset, the other stated that it was none.
    pub counter_resets: bool,
    /// Custom bounds differed; only common bounds remain.
    pub custom_bounds: bool,
}

impl Histogram {
    /// Returns whether the bounds of the buckets are listed in `custom_values`.
    pub fn has_custom_buckets(&self) -> bool {
        self.schema == CUSTOM_BUCKETS_SCHEMA
    }

    /// Multiplies counts and sum. A negative factor makes the histogram a gauge.
    pub fn scale(&mut self, factor: f64) {
        self.for_each_number(|number| *number *= factor);
        if factor < 0.0 {
            self.counter_reset = CounterReset::Gauge;
        }
    }

    /// Divides counts and sum. A negative divisor makes a gauge; zero removes the buckets.
    pub fn divide(&mut self, divisor: f64) {
        self.for_each_number(|number| *number /= divisor);
        // Upstream removes the buckets, whose counts would be infinite or NaN.
        if divisor == 0.0 {
            self.positive_spans.clear();
            self.positive_buckets.clear();
            self.negative_spans.clear();
            self.negative_buckets.clear();
        } else if divisor < 0.0 {
            self.counter_reset = CounterReset::Gauge;
        }
    }

    fn for_each_number(&mut self, mut change: impl FnMut(&mut f64)) {
        if !self.has_custom_buckets() {
            change(&mut self.zero_count);
        }
        change(&mut self.count);
        change(&mut self.sum);
        self.positive_buckets.iter_mut().for_each(&mut change);
        self.negative_buckets.iter_mut().for_each(change);
    }

    /// Adds another histogram. Resolution, zero bucket and custom bounds are reconciled.
    pub fn add(&mut self, other: &Histogram) -> Result<Reconciled, Incompatible> {
        self.combine(other, 1.0, None)
    }

    /// Subtracts another histogram, like [`Histogram::add`].
    pub fn subtract(&mut self, other: &Histogram) -> Result<Reconciled, Incompatible> {
        self.combine(other, -1.0, None)
    }

    /// Adds another histogram; rounding errors go into the compensation of this histogram.
    pub fn add_compensated(
        &mut self,
        other: &Histogram,
        compensation: &mut Compensation,
    ) -> Result<Reconciled, Incompatible> {
        self.combine(other, 1.0, Some(compensation))
    }

    fn combine(
        &mut self,
        other: &Histogram,
        sign: f64,
        mut lost: Option<&mut Compensation>,
    ) -> Result<Reconciled, Incompatible> {
        if self.has_custom_buckets() != other.has_custom_buckets() {
            return Err(Incompatible);
        }
        let counter_resets = self.reconcile_counter_reset(other.counter_reset);
        // The compensations need the layout of the buckets before the zero bucket changes both.
        if let Some(lost) = &mut lost {
            lost.fit(self);
        }
        let zero_count = match self.has_custom_buckets() {
            true => 0.0,
            false => self.reconcile_zero_bucket(other, lost.as_deref_mut()),
        };
        // `zero_count` is the count of the other zero bucket at the common width.
        self.add_totals([zero_count, other.count, other.sum], sign, lost.as_deref_mut());
        let custom_bounds = self.has_custom_buckets() && self.custom_values != other.custom_values;
        if custom_bounds {
            custom::combine(self, other, sign, lost);
        } else {
            self.add_buckets(other, sign, lost);
        }
        Ok(Reconciled { counter_resets, custom_bounds })
    }

    fn add_totals(&mut self, terms: [f64; 3], sign: f64, lost: Option<&mut Compensation>) {
        let totals = [&mut self.zero_count, &mut self.count, &mut self.sum];
        match lost {
            Some(lost) => {
                let lost = [&mut lost.zero_count, &mut lost.count, &mut lost.sum];
                for ((total, term), lost) in totals.into_iter().zip(terms).zip(lost) {
                    crate::kahan::add(term * sign, total, lost);
                }
            }
            None => {
                for (total, term) in totals.into_iter().zip(terms) {
                    *total += term * sign;
                }
            }
        }
    }

    fn add_buckets(&mut self, other: &Histogram, sign: f64, mut lost: Option<&mut Compensation>) {
        // Finer buckets can be merged into coarser ones, but not split.
        if other.schema < self.schema {
            self.reduce(other.schema, lost.as_deref_mut());
        }
        let shift = (other.schema - self.schema).max(0) as u32;
        let (lost_positive, lost_negative) = match lost {
            Some(lost) => (Some(&mut lost.positive), Some(&mut lost.negative)),
            None => (None, None),
        };
        let (schema, threshold) = (self.schema, self.zero_threshold);
        let mut positive = Side {
            spans: &mut self.positive_spans,
            counts: &mut self.positive_buckets,
            lost: lost_positive,
        };
        let side = (&other.positive_spans[..], &other.positive_buckets[..]);
        add_side(&mut positive, side, sign, shift, (schema, threshold));
        let mut negative = Side {
            spans: &mut self.negative_spans,
            counts: &mut self.negative_buckets,
            lost: lost_negative,
        };
        let side = (&other.negative_spans[..], &other.negative_buckets[..]);
        add_side(&mut negative, side, sign, shift, (schema, threshold));
    }

    /// Combines the hints about counter resets; true if one is a reset and the other denies it.
    fn reconcile_counter_reset(&mut self, other: CounterReset) -> bool {
        use CounterReset::{Gauge, Unknown};
        match (self.counter_reset, other) {
            (mine, other) if mine == other => false,
            (Gauge, _) | (_, Gauge) => {
                self.counter_reset = Gauge;
                false
            }
            (Unknown, _) | (_, Unknown) => {
                self.counter_reset = Unknown;
                false
            }
            _ => {
                self.counter_reset = Unknown;
                true
            }
        }
    }

    /// Returns a copy of at most this resolution. A reduction drops the counter reset hint.
    pub fn with_schema(&self, schema: i32) -> Histogram {
        let mut copy = self.clone();
        if schema < self.schema && !self.has_custom_buckets() {
            copy.counter_reset = CounterReset::Unknown;
            copy.reduce(schema, None);
        }
        copy
    }

    pub(super) fn reduce(&mut self, schema: i32, lost: Option<&mut Compensation>) {
        let shift = (self.schema - schema).max(0) as u32;
        self.schema = schema;
        self.for_each_side(lost, |side| side.reduce(shift));
    }

    /// Removes buckets without observations from both sides.
    pub fn compact(&mut self) {
        self.for_each_side(None, |side| side.compact());
    }

    pub(super) fn for_each_side(
        &mut self,
        lost: Option<&mut Compensation>,
        mut change: impl FnMut(&mut Side<'_>),
    ) {
        let (lost_positive, lost_negative) = match lost {
            Some(lost) => (Some(&mut lost.positive), Some(&mut lost.negative)),
            None => (None, None),
        };
        change(&mut Side {
            spans: &mut self.positive_spans,
            counts: &mut self.positive_buckets,
            lost: lost_positive,
        });
        change(&mut Side {
            spans: &mut self.negative_spans,
            counts: &mut self.negative_buckets,
            lost: lost_negative,
        });
    }

    /// Returns whether any number of the histogram is infinite.
    pub fn has_overflow(&self) -> bool {
        [self.zero_count, self.count, self.sum].iter().any(|number| number.is_infinite())
            || self.positive_buckets.iter().any(|count| count.is_infinite())
            || self.negative_buckets.iter().any(|count| count.is_infinite())
            || self.custom_values.iter().any(|bound| bound.is_infinite())
    }

    /// Returns whether two histograms have the same numbers, bit by bit, whatever their hints.
    /// Empty buckets are ignored: a chunk adds empty buckets that its other samples fill.
    pub fn is_same(&self, other: &Histogram) -> bool {
        // Bits, because NaN equals NaN here and the stale marker is a NaN of its own.
        let bits = |numbers: &[f64], others: &[f64]| {
            numbers.len() == others.len()
                && numbers.iter().zip(others).all(|(a, b)| a.to_bits() == b.to_bits())
        };
        self.schema == other.schema
            && (!self.has_custom_buckets() || self.custom_values == other.custom_values)
            && self.zero_threshold == other.zero_threshold
            && bits(
                &[self.count, self.sum, self.zero_count],
                &[other.count, other.sum, other.zero_count],
            )
            && filled(&self.positive_spans, &self.positive_buckets)
                .eq(filled(&other.positive_spans, &other.positive_buckets))
            && filled(&self.negative_spans, &self.negative_buckets)
                .eq(filled(&other.negative_spans, &other.negative_buckets))
    }
}

/// Iterates over the buckets that are not empty: their indexes, and the bits of their counts.
fn filled<'a>(
    spans: &'a [crate::model::Span],
    counts: &'a [f64],
) -> impl Iterator<Item = (i32, u64)> + 'a {
    let all = indexes(spans).zip(counts);
    all.filter(|(_, count)| **count != 0.0).map(|(index, count)| (index, count.to_bits()))
}

/// Adds buckets whose schema is finer by `shift`, without those within the zero bucket.
fn add_side(
    side: &mut Side<'_>,
    (spans, counts): (&[crate::model::Span], &[f64]),
    sign: f64,
    shift: u32,
    (schema, threshold): (i32, f64),
) {
    if counts.is_empty() {
        return;
    }
    let (mut spans, mut counts) =
        (std::borrow::Cow::Borrowed(spans), std::borrow::Cow::Borrowed(counts));
    let mut term_lost = None;
    if shift > 0 {
        let mut lost = side.lost.is_some().then(|| vec![0.0; counts.len()]);
        Side { spans: spans.to_mut(), counts: counts.to_mut(), lost: lost.as_mut() }.reduce(shift);
        term_lost = lost;
    }
    // Buckets within the zero bucket are already part of its count.
    let skip = match schema == CUSTOM_BUCKETS_SCHEMA || threshold == 0.0 {
        true => 0,
        false => indexes(&spans)
            .take(counts.len())
            .take_while(|index| tidepool_model::buckets::exponential(*index, schema) <= threshold)
            .count(),
    };
    let lost = term_lost.as_deref();
    side.add(&Terms { spans: &spans, counts: &counts, lost, skip, sign });
}
