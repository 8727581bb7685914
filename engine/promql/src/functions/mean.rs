//! Sums of histograms, and means of floats and histograms.

use super::Context;
use crate::annotations::{HistogramOperation, Note};
use crate::histogram::{Compensation, Incompatible, Reconciled};
use crate::kahan;
use crate::model::{CounterReset, FloatPoint, Histogram, HistogramPoint};

/// Returns sum divided by count; if the sum would overflow, the mean is updated sample by sample.
pub(super) fn floats(floats: &[FloatPoint]) -> f64 {
    let count = floats.len() as f64;
    // Almost all windows have a finite sum, which needs no decision for each sample.
    if let Some((sum, lost)) = kahan::finite_sum(floats) {
        return sum / count + lost / count;
    }
    let (mut sum, mut lost) = (floats[0].value, 0.0);
    let mut is_mean = false;
    for (i, point) in floats.iter().enumerate().skip(1) {
        let count = (i + 1) as f64;
        // A running mean loses digits, so upstream switches to it only on overflow.
        if !is_mean {
            let (mut next, mut next_lost) = (sum, lost);
            kahan::add(point.value, &mut next, &mut next_lost);
            if !next.is_infinite() {
                (sum, lost) = (next, next_lost);
                continue;
            }
            is_mean = true;
            sum /= count - 1.0;
            lost /= count - 1.0;
        }
        // Dividing before adding keeps the terms below the largest value.
        let share = (count - 1.0) / count;
        sum *= share;
        lost *= share;
        kahan::add(point.value / count, &mut sum, &mut lost);
    }
    match is_mean {
        true => sum + lost,
        false => sum / count + lost / count,
    }
}

/// Properties of the histograms that were added.
#[derive(Default)]
struct InputKinds {
    has_reset: bool,
    has_no_reset: bool,
    has_other_bounds: bool,
}

impl InputKinds {
    fn histogram(&mut self, histogram: &Histogram) {
        self.has_reset |= histogram.counter_reset == CounterReset::Reset;
        self.has_no_reset |= histogram.counter_reset == CounterReset::NotReset;
    }

    fn note(&self, context: &mut Context<'_>) {
        // Upstream notes a collision only if the window has both hints.
        if self.has_reset && self.has_no_reset {
            context.note(0, Note::CounterResetCollision(HistogramOperation::Aggregate));
        }
        if self.has_other_bounds {
            context.note(0, Note::MismatchedCustomBuckets(HistogramOperation::Aggregate));
        }
    }
}

/// Returns the sum; `None` for exponential and custom buckets in one window.
pub(super) fn sum_of_histograms(
    points: &[HistogramPoint],
    context: &mut Context<'_>,
) -> Option<Histogram> {
    finish(context, |seen| {
        let mut sum = points[0].histogram.as_ref().clone();
        let mut lost = Compensation::default();
        seen.histogram(&sum);
        for point in &points[1..] {
            seen.histogram(&point.histogram);
            let Reconciled { custom_bounds, .. } =
                sum.add_compensated(&point.histogram, &mut lost)?;
            seen.has_other_bounds |= custom_bounds;
        }
        lost.apply(&mut sum);
        Ok(sum)
    })
}

/// Returns the mean; `None` for exponential and custom buckets in one window.
pub(super) fn histograms(
    points: &[HistogramPoint],
    context: &mut Context<'_>,
) -> Option<Histogram> {
    finish(context, |seen| {
        let mut sum = points[0].histogram.as_ref().clone();
        let mut lost = Compensation::default();
        let mut is_mean = false;
        seen.histogram(&sum);
        for (i, point) in points.iter().enumerate().skip(1) {
            let count = (i + 1) as f64;
            seen.histogram(&point.histogram);
            if !is_mean {
                // Copies, because an overflow is known only after the addition.
                let (mut next, mut next_lost) = (sum.clone(), lost.clone());
                let reconciled = next.add_compensated(&point.histogram, &mut next_lost)?;
                seen.has_other_bounds |= reconciled.custom_bounds;
                if !next.has_overflow() {
                    (sum, lost) = (next, next_lost);
                    continue;
                }
                is_mean = true;
                sum.divide(count - 1.0);
                lost.divide(count - 1.0);
            }
            let share = (count - 1.0) / count;
            sum.scale(share);
            lost.scale(share);
            // The term is divided before the addition, so that the sum does not overflow again.
            let mut term = point.histogram.as_ref().clone();
            term.divide(count);
            let reconciled = sum.add_compensated(&term, &mut lost)?;
            seen.has_other_bounds |= reconciled.custom_bounds;
        }
        if !is_mean {
            sum.divide(points.len() as f64);
            lost.divide(points.len() as f64);
        }
        lost.apply(&mut sum);
        Ok(sum)
    })
}

fn finish(
    context: &mut Context<'_>,
    compute: impl FnOnce(&mut InputKinds) -> Result<Histogram, Incompatible>,
) -> Option<Histogram> {
    let mut seen = InputKinds::default();
    match compute(&mut seen) {
        Ok(histogram) => {
            seen.note(context);
            Some(histogram)
        }
        Err(Incompatible) => {
            context.note(0, Note::MixedExponentialCustom);
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(values: &[f64]) -> f64 {
        let points: Vec<_> =
            values.iter().map(|value| FloatPoint { time_ms: 0, value: *value }).collect();
        floats(&points)
    }

    #[test]
    fn means_of_large_numbers_do_not_overflow() {
        assert!((mean(&[1.5e308, 1.5e308, 1.5e308]) / 1.5e308 - 1.0).abs() < 1e-15);
        assert_eq!(mean(&[5.0, 0.0, 8.0, 8.0, 2.0]), 4.6);
        assert_eq!(mean(&[f64::INFINITY, 1.0]), f64::INFINITY);
        assert!(mean(&[f64::INFINITY, f64::NEG_INFINITY]).is_nan());
    }
}
