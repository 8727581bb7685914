//! Values between samples, for `smoothed` and `anchored`.
//!
//! Source: prometheus/prometheus, `promql/engine.go` (`smoothSeries`, `extendFloats`).

use crate::annotations::{HistogramOperation, Note};
use crate::histogram::Incompatible;
use crate::model::{CounterReset, FloatPoint, Histogram, HistogramPoint, Value};
use crate::syntax::RangeBounds;
use std::rc::Rc;

/// Returns the value interpolated at a time; the last value if no later sample exists.
pub fn between(
    floats: &[FloatPoint],
    histograms: &[HistogramPoint],
    time_ms: i64,
    note: &mut dyn FnMut(Note<'static>),
) -> Option<Value> {
    match (floats.is_empty(), histograms.is_empty()) {
        (true, true) => None,
        (false, false) => {
            note(Note::MixedFloatsHistograms);
            None
        }
        (false, true) => {
            let at = floats.partition_point(|point| point.time_ms < time_ms);
            let value = match (at.checked_sub(1).map(|at| floats[at]), floats.get(at)) {
                (_, Some(next)) if next.time_ms == time_ms => next.value,
                (Some(last), Some(next)) => line(last, *next, time_ms),
                (Some(last), None) => last.value,
                (None, _) => return None,
            };
            Some(Value::Float(value))
        }
        (true, false) => {
            let at = histograms.partition_point(|point| point.time_ms < time_ms);
            let value = match (at.checked_sub(1).map(|at| &histograms[at]), histograms.get(at)) {
                (_, Some(next)) if next.time_ms == time_ms => next.histogram.clone(),
                (Some(last), Some(next)) => mixed(last, next, time_ms, note)?,
                (Some(last), None) => {
                    let counter_reset = CounterReset::Unknown;
                    Rc::new(Histogram { counter_reset, ..(*last.histogram).clone() })
                }
                (None, _) => return None,
            };
            Some(Value::Histogram(value))
        }
    }
}

fn line(a: FloatPoint, b: FloatPoint, time_ms: i64) -> f64 {
    let (part, whole) = ((time_ms - a.time_ms) as f64, (b.time_ms - a.time_ms) as f64);
    a.value + (b.value - a.value) * part / whole
}

fn mixed(
    last: &HistogramPoint,
    next: &HistogramPoint,
    time_ms: i64,
    note: &mut dyn FnMut(Note<'static>),
) -> Option<Rc<Histogram>> {
    let is_gauge = |point: &HistogramPoint| point.histogram.counter_reset == CounterReset::Gauge;
    let part = (time_ms - last.time_ms) as f64 / (next.time_ms - last.time_ms) as f64;
    // Exponential and custom buckets cannot be reconciled.
    if last.histogram.has_custom_buckets() != next.histogram.has_custom_buckets() {
        note(Note::MixedExponentialCustom);
        return None;
    }
    let mut value = (*next.histogram).clone();
    // A counter that was reset starts from zero, so the interpolation starts from zero.
    if !(is_gauge(last) && is_gauge(next)) && next.histogram.detect_reset(&last.histogram) {
        value.scale(part);
        return Some(Rc::new(value));
    }
    let mut mix = || -> Result<(), Incompatible> {
        // `last + (next - last) * part`, without a copy of `last`.
        if value.subtract(&last.histogram)?.custom_bounds {
            note(Note::MismatchedCustomBuckets(HistogramOperation::Sub));
        }
        value.scale(part);
        if value.add(&last.histogram)?.custom_bounds {
            note(Note::MismatchedCustomBuckets(HistogramOperation::Add));
        }
        Ok(())
    };
    if mix().is_err() {
        note(Note::MixedExponentialCustom);
        return None;
    }
    Some(Rc::new(value))
}

/// Returns the samples of a range; `smoothed` and `anchored` ranges have values at both ends.
pub fn floats(
    points: &[FloatPoint],
    start_ms: i64,
    end_ms: i64,
    bounds: RangeBounds,
) -> Vec<FloatPoint> {
    let Some(mut last) = points.len().checked_sub(1) else { return Vec::new() };
    if bounds == RangeBounds::Samples {
        return points.to_vec();
    }
    let is_smoothed = bounds == RangeBounds::Smoothed;
    // The last sample at or before the start serves as the value at the start.
    let first = points[..last].partition_point(|p| p.time_ms <= start_ms).saturating_sub(1);
    if is_smoothed {
        last = points[..last].partition_point(|p| p.time_ms < end_ms);
    }
    // No sample is newer than the start, so nothing can be extended.
    if points[last].time_ms <= start_ms {
        return Vec::new();
    }
    let left = match is_smoothed && points[first].time_ms < start_ms {
        true => line(points[first], points[first + 1], start_ms),
        false => points[first].value,
    };
    let right = match is_smoothed && last > 0 && points[last].time_ms > end_ms {
        true => line(points[last - 1], points[last], end_ms),
        false => points[last].value,
    };
    let mut out = vec![FloatPoint { time_ms: start_ms, value: left }];
    let is_within = |p: &&FloatPoint| p.time_ms > start_ms && p.time_ms < end_ms;
    out.extend(points[first..=last].iter().filter(is_within));
    out.push(FloatPoint { time_ms: end_ms, value: right });
    out
}
