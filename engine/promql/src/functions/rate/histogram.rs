//! Change of a series of native histograms between its samples in a window.

use std::borrow::Cow;

use super::{Change, Context, Kind, Overlap, Sampled, StartPair, Window};
use crate::annotations::{HistogramOperation, Note};
use crate::functions::combine;
use crate::model::{CounterReset, Histogram, HistogramPoint};

pub(super) fn sample(
    window: &Window<'_>,
    kind: Kind,
    context: &mut Context<'_>,
) -> Option<Sampled> {
    let points = window.histograms;
    let (first, last) = (points.first()?, points.last()?);
    let start_ms = window.start_within(kind, window.histogram_starts, first.time_ms);
    let mut change = match points.len() {
        0 | 1 => None,
        _ => Some(change(points, window.histogram_starts, kind, context)?),
    };
    if start_ms.is_some() {
        match &mut change {
            Some(change) => combine(change, &first.histogram, HistogramOperation::Add, context)?,
            None => change = Some(first.histogram.as_ref().clone()),
        }
    }
    Some(Sampled {
        change: Change::Histogram(change?),
        first: first.histogram.count,
        first_ms: first.time_ms,
        last_ms: last.time_ms,
        samples: points.len(),
        start_ms,
    })
}

/// Returns the change from the first to the last of at least two points.
fn change(
    points: &[HistogramPoint],
    starts: &[i64],
    kind: Kind,
    context: &mut Context<'_>,
) -> Option<Histogram> {
    let first = &*points.first()?.histogram;
    let last = &*points.last()?.histogram;
    let is_gauge = |histogram: &Histogram| histogram.counter_reset == CounterReset::Gauge;
    if kind.is_counter && (is_gauge(first) || is_gauge(last)) {
        context.note(0, Note::HistogramNotCounter);
    }
    let begins_anew = |i: usize, before: &Histogram| {
        StartPair::of(starts, i).is_reset(points[i].time_ms, points[i + 1].time_ms)
            || points[i + 1].histogram.detect_reset(before)
    };
    // A first histogram that a reset follows contributes nothing, whatever its layout.
    let base = match kind.is_counter && begins_anew(0, first) {
        true => Cow::Owned(empty_like(&points[1].histogram)),
        false => Cow::Borrowed(first),
    };
    // Upstream reduces to the lowest resolution of all histograms, used or not.
    let schema = common_schema(points, &base, kind, context)?;
    let mut change = last.with_schema(schema);
    combine(&mut change, &base, HistogramOperation::Sub, context)?;
    if kind.is_counter {
        let mut overlap = Overlap::default();
        let mut before = &*base;
        for i in 0..points.len() - 1 {
            overlap.check(StartPair::of(starts, i), points[i].time_ms, context);
            if begins_anew(i, before) {
                combine(&mut change, before, HistogramOperation::Add, context)?;
            }
            before = &points[i + 1].histogram;
        }
    } else if !(is_gauge(first) && is_gauge(last)) {
        context.note(0, Note::HistogramNotGauge);
    }
    change.counter_reset = CounterReset::Gauge;
    change.compact();
    Some(change)
}

/// Returns the lowest resolution in use; `None` if exponential and custom buckets are mixed.
fn common_schema(
    points: &[HistogramPoint],
    base: &Histogram,
    kind: Kind,
    context: &mut Context<'_>,
) -> Option<i32> {
    let last = &points.last()?.histogram;
    let mut schema = base.schema.min(last.schema);
    let mut is_mixed = last.has_custom_buckets() != base.has_custom_buckets();
    // Gauges use the first and the last point only.
    for point in &points[1..points.len() - 1] {
        if is_mixed || !kind.is_counter {
            break;
        }
        if point.histogram.counter_reset == CounterReset::Gauge {
            context.note(0, Note::HistogramNotCounter);
        }
        schema = schema.min(point.histogram.schema);
        is_mixed = point.histogram.has_custom_buckets() != base.has_custom_buckets();
    }
    if is_mixed {
        context.note(0, Note::MixedExponentialCustom);
        return None;
    }
    Some(schema)
}

fn empty_like(histogram: &Histogram) -> Histogram {
    Histogram {
        schema: histogram.schema,
        custom_values: histogram.custom_values.clone(),
        ..Histogram::default()
    }
}
