//! Change of a series between the ends of a window, with a value at each end: that of the last
//! sample before the end (`anchored`), or an interpolated value (`smoothed`).

use super::{Context, Kind, Window};
use crate::annotations::{HistogramOperation, Note};
use crate::functions::combine;
use crate::model::{CounterReset, FloatPoint, Histogram, HistogramPoint};
use crate::syntax::RangeBounds;

/// Returns the first and last index to use; `None` if all samples are before or after the window.
fn ends(
    window: &Window<'_>,
    count: usize,
    time_ms: &dyn Fn(usize) -> i64,
) -> Option<(usize, usize)> {
    let mut last = count.checked_sub(1)?;
    let is_smoothed = window.bounds == RangeBounds::Smoothed;
    // The last sample at or before the start has the value at the start.
    let first = (0..last).take_while(|i| time_ms(*i) <= window.start_ms).count().saturating_sub(1);
    if is_smoothed {
        // Interpolation at the end needs the first sample at or after the end.
        last = (0..last).take_while(|i| time_ms(*i) < window.end_ms).count();
    }
    let is_outside =
        time_ms(last) <= window.start_ms || is_smoothed && time_ms(first) > window.end_ms;
    (!is_outside).then_some((first, last))
}

pub(super) fn floats(window: &Window<'_>, kind: Kind) -> Option<f64> {
    let floats = window.floats;
    let (first, last) = ends(window, floats.len(), &|i| floats[i].time_ms)?;
    let is_smoothed = window.bounds == RangeBounds::Smoothed;
    let left = match is_smoothed && floats[first].time_ms < window.start_ms {
        true => between(&floats[first], &floats[first + 1], window.start_ms, kind),
        false => floats[first].value,
    };
    let right = match is_smoothed && last > 0 && floats[last].time_ms > window.end_ms {
        true => between(&floats[last - 1], &floats[last], window.end_ms, kind),
        false => floats[last].value,
    };
    let mut change = right - left;
    if kind.is_counter {
        // `left` and `right` replace the samples at the ends, which are left out here.
        let from = first + usize::from(floats[first].time_ms <= window.start_ms);
        let to = last + usize::from(floats[last].time_ms < window.end_ms);
        change += lost(left, right, floats.get(from..to).unwrap_or(&[]));
    }
    Some(if kind.per_second { change / window.seconds() } else { change })
}

/// Interpolates between two samples. A counter that was reset started from zero.
fn between(a: &FloatPoint, b: &FloatPoint, time_ms: i64, kind: Kind) -> f64 {
    let from = if kind.is_counter && b.value < a.value { 0.0 } else { a.value };
    from + (b.value - from) * (time_ms - a.time_ms) as f64 / (b.time_ms - a.time_ms) as f64
}

/// Returns the sum of the values before resets, from the value `left` to the value `right`.
fn lost(left: f64, right: f64, within: &[FloatPoint]) -> f64 {
    let mut lost = 0.0;
    let mut before = left;
    for value in within.iter().map(|point| point.value).chain([right]) {
        if value < before {
            lost += before;
        }
        before = value;
    }
    lost
}

pub(super) fn histograms(
    window: &Window<'_>,
    kind: Kind,
    context: &mut Context<'_>,
) -> Option<Histogram> {
    let points = window.histograms;
    let (first, last) = ends(window, points.len(), &|i| points[i].time_ms)?;
    // All points are checked first, because an interpolation needs buckets of one kind.
    check_kinds(&points[first..=last], kind, context)?;
    let is_smoothed = window.bounds == RangeBounds::Smoothed;
    let is_left_between = is_smoothed && points[first].time_ms < window.start_ms;
    let left = match is_left_between {
        true => histogram_between(&points[first..], window.start_ms, kind, context)?,
        false => points[first].histogram.as_ref().clone(),
    };
    let right = match is_smoothed && last > 0 && points[last].time_ms > window.end_ms {
        true => histogram_between(&points[last - 1..], window.end_ms, kind, context)?,
        false => points[last].histogram.as_ref().clone(),
    };
    let is_gauge = |histogram: &Histogram| histogram.counter_reset == CounterReset::Gauge;
    let has_counter = !is_gauge(&left) || !is_gauge(&right);
    if !kind.is_counter && has_counter {
        context.note(0, Note::HistogramNotGauge);
    }
    let mut change = right.clone();
    combine(&mut change, &left, HistogramOperation::Sub, context)?;
    if kind.is_counter {
        // A left value that was interpolated across a reset already includes the reset.
        let is_spanned =
            is_left_between && points[first + 1].histogram.detect_reset(&points[first].histogram);
        let from = first + 1 + usize::from(is_spanned);
        let before = if is_spanned { &*points[first + 1].histogram } else { &left };
        if from <= last {
            let within = points[from..last].iter().map(|point| &*point.histogram);
            if let Some(lost) = histograms_lost(before, within.chain([&right]), context)? {
                combine(&mut change, &lost, HistogramOperation::Add, context)?;
            }
        }
    }
    if kind.per_second {
        change.divide(window.seconds());
    }
    change.counter_reset = CounterReset::Gauge;
    change.compact();
    Some(change)
}

fn check_kinds(points: &[HistogramPoint], kind: Kind, context: &mut Context<'_>) -> Option<()> {
    let is_custom = points.first()?.histogram.has_custom_buckets();
    for point in points {
        if point.histogram.has_custom_buckets() != is_custom {
            context.note(0, Note::MixedExponentialCustom);
            return None;
        }
        if kind.is_counter && point.histogram.counter_reset == CounterReset::Gauge {
            context.note(0, Note::HistogramNotCounter);
        }
    }
    Some(())
}

/// Interpolates between the first two points. A counter that was reset started from zero.
fn histogram_between(
    points: &[HistogramPoint],
    time_ms: i64,
    kind: Kind,
    context: &mut Context<'_>,
) -> Option<Histogram> {
    let [a, b, ..] = points else {
        return None;
    };
    let mut between = b.histogram.as_ref().clone();
    // Exact times need no arithmetic, which would round and could reconcile bounds.
    if time_ms == a.time_ms {
        return Some(a.histogram.as_ref().clone());
    }
    if time_ms == b.time_ms {
        return Some(between);
    }
    let fraction = (time_ms - a.time_ms) as f64 / (b.time_ms - a.time_ms) as f64;
    let began_anew = kind.is_counter && b.histogram.detect_reset(&a.histogram);
    if !began_anew {
        combine(&mut between, &a.histogram, HistogramOperation::Sub, context)?;
    }
    between.scale(fraction);
    if !began_anew {
        combine(&mut between, &a.histogram, HistogramOperation::Add, context)?;
    }
    Some(between)
}

/// Returns the sum of the histograms before resets; `Some(None)` if there was no reset.
fn histograms_lost<'h>(
    mut before: &'h Histogram,
    behind: impl Iterator<Item = &'h Histogram>,
    context: &mut Context<'_>,
) -> Option<Option<Histogram>> {
    let mut lost: Option<Histogram> = None;
    for histogram in behind {
        if histogram.detect_reset(before) {
            match &mut lost {
                Some(lost) => combine(lost, before, HistogramOperation::Add, context)?,
                None => lost = Some(before.clone()),
            }
        }
        before = histogram;
    }
    Some(lost)
}
