//! Sums and differences of histograms.
//!
//! ```text
//! buckets of the other ─▶ resolution of this one ─▶ without those in the zero bucket ─▶ added
//! custom bounds that differ ─▶ those that both have ─▶ buckets merged ─▶ added
//! ```
//!
//! Source: `FloatHistogram.Add` and `Sub` in `model/histogram`, Prometheus 3.16.

use super::{Buckets, Histogram, ResetHint};
use tidepool_model::buckets::{coarser_index, exponential};

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CombineError {
    #[error("error combining histograms: cannot merge from schema {other} to {own}")]
    Finer { own: i32, other: i32 },
    #[error(
        "cannot apply this operation on histograms with a mix of exponential and custom bucket \
         schemas"
    )]
    Mixed,
}

impl Histogram {
    /// Adds the other one, of at least this resolution, or subtracts it with the sign -1.
    pub fn combine(&mut self, other: &Histogram, sign: f64) -> Result<(), CombineError> {
        if self.schema > other.schema {
            return Err(CombineError::Finer { own: self.schema, other: other.schema });
        }
        if self.has_custom_buckets() != other.has_custom_buckets() {
            return Err(CombineError::Mixed);
        }
        self.reset_hint = common_hint(self.reset_hint, other.reset_hint);
        if !self.has_custom_buckets() {
            self.zero_count += sign * self.reconcile_zero_bucket(other);
        }
        self.count += sign * other.count;
        self.sum += sign * other.sum;
        if !self.has_custom_buckets() {
            let shift = other.schema.abs_diff(self.schema);
            let (schema, threshold) = (self.schema, self.zero_threshold);
            let is_left = |index: i32| threshold == 0.0 || exponential(index, schema) > threshold;
            let sides =
                [(&mut self.positive, &other.positive), (&mut self.negative, &other.negative)];
            for (own, other) in sides {
                for (index, count) in coarser(other, shift) {
                    if is_left(index) {
                        *own.entry(index).or_default() += sign * count;
                    }
                }
            }
            return Ok(());
        }
        if self.custom_values != other.custom_values {
            let common = common_bounds(&self.custom_values, &other.custom_values);
            self.positive = merged(&self.positive, &self.custom_values, &common);
            let added = merged(&other.positive, &other.custom_values, &common);
            self.custom_values = common;
            add(&mut self.positive, &added, sign);
        } else {
            add(&mut self.positive, &other.positive, sign);
        }
        Ok(())
    }

    /// Widens the zero bucket until it contains that of the other and ends in no filled bucket of
    /// either. Returns the count of the other's zero bucket at this width.
    fn reconcile_zero_bucket(&mut self, other: &Histogram) -> f64 {
        let (mut count, mut threshold) = (other.zero_count, other.zero_threshold);
        // Two that are NaN never become equal.
        let are_numbers = !threshold.is_nan() && !self.zero_threshold.is_nan();
        while are_numbers && threshold != self.zero_threshold {
            if self.zero_threshold > threshold {
                (count, threshold) = other.widened_zero_bucket(self.zero_threshold);
            }
            if threshold > self.zero_threshold {
                (self.zero_count, self.zero_threshold) = self.widened_zero_bucket(threshold);
                let (schema, threshold) = (self.schema, self.zero_threshold);
                let is_left = |index: &i32| lower(*index, schema) >= threshold;
                self.positive.retain(|index, _| is_left(index));
                self.negative.retain(|index, _| is_left(index));
            }
        }
        count
    }

    /// Returns count and end of the zero bucket when it ends at a threshold, or at the end of the
    /// filled bucket around that.
    fn widened_zero_bucket(&self, mut threshold: f64) -> (f64, f64) {
        if threshold == self.zero_threshold {
            return (self.zero_count, threshold);
        }
        loop {
            let (mut count, before) = (self.zero_count, threshold);
            for side in [&self.positive, &self.negative] {
                for (index, bucket) in side {
                    if lower(*index, self.schema) >= threshold {
                        break;
                    }
                    count += bucket;
                    let upper = exponential(*index, self.schema);
                    if upper > threshold && *bucket != 0.0 {
                        threshold = upper;
                    }
                }
            }
            if threshold == before {
                return (count, threshold);
            }
        }
    }
}

fn lower(index: i32, schema: i32) -> f64 {
    exponential(i64::from(index) - 1, schema)
}

fn common_hint(own: ResetHint, other: ResetHint) -> ResetHint {
    match (own, other) {
        (own, other) if own == other => own,
        (ResetHint::Gauge, _) | (_, ResetHint::Gauge) => ResetHint::Gauge,
        _ => ResetHint::Unknown,
    }
}

fn add(own: &mut Buckets, other: &Buckets, sign: f64) {
    for (index, count) in other {
        *own.entry(*index).or_default() += sign * count;
    }
}

/// Buckets of a resolution that is lower by some steps.
fn coarser(buckets: &Buckets, steps: u32) -> Buckets {
    let mut coarser = Buckets::new();
    for (index, count) in buckets {
        // The index comes closer to zero, so that it fits.
        let index = i32::try_from(coarser_index(*index, steps)).unwrap_or(*index);
        *coarser.entry(index).or_default() += count;
    }
    coarser
}

/// Bounds that are in both of two ascending lists.
fn common_bounds(one: &[f64], other: &[f64]) -> Vec<f64> {
    let mut others = other.iter().peekable();
    let is_common = |bound: &&f64| {
        while others.next_if(|other| *other < *bound).is_some() {}
        others.next_if(|other| *other == *bound).is_some()
    };
    one.iter().filter(is_common).copied().collect()
}

/// Merges custom buckets into those that contain them.
fn merged(buckets: &Buckets, bounds: &[f64], common: &[f64]) -> Buckets {
    let mut merged = Buckets::new();
    for (index, count) in buckets {
        let bound = usize::try_from(*index).ok().and_then(|index| bounds.get(index));
        let place = bound.map_or(common.len(), |bound| common.partition_point(|it| it < bound));
        *merged.entry(i32::try_from(place).unwrap_or(i32::MAX)).or_default() += count;
    }
    merged
}
