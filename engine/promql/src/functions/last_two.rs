//! `irate` and `idelta`: change between the last two samples of a window.

use std::rc::Rc;

use super::rate::StartPair;
use super::{Context, Entry, FunctionError, Run, Window, combine, range_or_run};
use crate::annotations::{HistogramOperation, Note};
use crate::model::{CounterReset, Histogram, Value};

pub(super) const TABLE: &[Entry] = &[
    range_or_run(
        "idelta",
        |window, _, context| change(window, false, context),
        |run, _| changes(run, false),
    ),
    range_or_run(
        "irate",
        |window, _, context| change(window, true, context),
        |run, _| changes(run, true),
    ),
];

fn changes(run: &mut Run<'_>, is_rate: bool) {
    run.each(|window| {
        let [.., before, last] = window.floats() else { return None };
        let interval_ms = last.time_ms - before.time_ms;
        // Upstream has no result for samples of the same millisecond.
        if interval_ms == 0 {
            return None;
        }
        // A series with start times is not evaluated in runs, so no start can show a reset.
        Some(float_change(before.value, last.value, interval_ms as f64 / 1000.0, is_rate, false))
    });
}

fn float_change(before: f64, last: f64, seconds: f64, is_rate: bool, began_anew: bool) -> f64 {
    // After a reset the counter rose from zero to its last value.
    let is_reset = is_rate && (last < before || began_anew);
    let change = if is_reset { last } else { last - before };
    if is_rate { change / seconds } else { change }
}

struct Last {
    time_ms: i64,
    start_ms: i64,
    value: Value,
}

fn change(
    window: &Window<'_>,
    is_rate: bool,
    context: &mut Context<'_>,
) -> Result<Option<Value>, FunctionError> {
    let Some([before, last]) = last_two(window) else {
        return Ok(None);
    };
    let interval_ms = last.time_ms - before.time_ms;
    if interval_ms == 0 {
        return Ok(None);
    }
    let seconds = interval_ms as f64 / 1000.0;
    let starts = [before.start_ms, last.start_ms];
    // Start times show resets after which the counter already exceeds its old value.
    let began_anew = StartPair::of(&starts, 0).is_reset(before.time_ms, last.time_ms);
    Ok(match (before.value, last.value) {
        (Value::Float(before), Value::Float(last)) => {
            Some(Value::Float(float_change(before, last, seconds, is_rate, began_anew)))
        }
        (Value::Histogram(before), Value::Histogram(last)) => {
            let change = histogram_change(&before, &last, is_rate, began_anew, context);
            change.map(|mut change| {
                if is_rate {
                    change.divide(seconds);
                }
                Value::from(change)
            })
        }
        _ => {
            context.note(0, Note::MixedFloatsHistograms);
            None
        }
    })
}

fn histogram_change(
    before: &Rc<Histogram>,
    last: &Rc<Histogram>,
    is_rate: bool,
    began_anew: bool,
    context: &mut Context<'_>,
) -> Option<Histogram> {
    let is_gauge = |histogram: &Histogram| histogram.counter_reset == CounterReset::Gauge;
    if is_rate && (is_gauge(before) || is_gauge(last)) {
        context.note(0, Note::HistogramNotCounter);
    }
    let has_counter = !is_gauge(before) || !is_gauge(last);
    if !is_rate && has_counter {
        context.note(0, Note::HistogramNotGauge);
    }
    let mut change = last.as_ref().clone();
    // A difference across a reset would be negative.
    if !is_rate || !began_anew && !last.detect_reset(before) {
        combine(&mut change, before, HistogramOperation::Sub, context)?;
    }
    change.counter_reset = CounterReset::Gauge;
    change.compact();
    Some(change)
}

/// Returns the last two samples of either kind, the older sample first.
fn last_two(window: &Window<'_>) -> Option<[Last; 2]> {
    let (mut floats, mut histograms) = (window.floats, window.histograms);
    let mut last = || match (floats.split_last(), histograms.split_last()) {
        (Some((point, before)), other) if other.is_none_or(|(h, _)| h.time_ms < point.time_ms) => {
            floats = before;
            Some(Last {
                time_ms: point.time_ms,
                start_ms: window.float_starts.get(before.len()).copied().unwrap_or(0),
                value: Value::Float(point.value),
            })
        }
        (_, Some((point, before))) => {
            histograms = before;
            Some(Last {
                time_ms: point.time_ms,
                start_ms: window.histogram_starts.get(before.len()).copied().unwrap_or(0),
                value: Value::Histogram(point.histogram.clone()),
            })
        }
        _ => None,
    };
    let (last, before) = (last()?, last()?);
    Some([before, last])
}
