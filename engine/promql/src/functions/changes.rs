//! `changes` and `resets`: number of changes of a series, or of resets of its counter.

use super::rate::StartPair;
use super::{Context, Entry, FloatPoint, FunctionError, HistogramPoint, Window, range};
use crate::model::{Histogram, Value};
use crate::syntax::RangeBounds;

pub(super) const TABLE: &[Entry] = &[range("changes", changes), range("resets", resets)];

#[derive(Clone, Copy)]
enum Either<'a> {
    Float(f64),
    Histogram(&'a Histogram),
}

/// A sample with its start time, 0 if unknown.
#[derive(Clone, Copy)]
struct Sample<'a> {
    value: Either<'a>,
    time_ms: i64,
    start_ms: i64,
}

fn changes(
    window: &Window<'_>,
    _: &[f64],
    _: &mut Context<'_>,
) -> Result<Option<Value>, FunctionError> {
    count(window, |before, here| match (before.value, here.value) {
        (Either::Float(before), Either::Float(here)) => {
            // NaN after NaN is not a change, although the values are not equal.
            here != before && !(here.is_nan() && before.is_nan())
        }
        (Either::Histogram(before), Either::Histogram(here)) => !here.is_same(before),
        _ => true,
    })
}

fn resets(
    window: &Window<'_>,
    _: &[f64],
    _: &mut Context<'_>,
) -> Result<Option<Value>, FunctionError> {
    count(window, |before, here| {
        let starts = [before.start_ms, here.start_ms];
        let began_anew = || StartPair::of(&starts, 0).is_reset(before.time_ms, here.time_ms);
        match (before.value, here.value) {
            (Either::Float(before), Either::Float(here)) => here < before || began_anew(),
            (Either::Histogram(before), Either::Histogram(here)) => {
                began_anew() || here.detect_reset(before)
            }
            // Upstream counts a switch between floats and histograms as change and as reset.
            _ => true,
        }
    })
}

/// Counts the pairs of neighbouring samples that pass a test.
fn count(
    window: &Window<'_>,
    test: impl Fn(Sample<'_>, Sample<'_>) -> bool,
) -> Result<Option<Value>, FunctionError> {
    let Some((mut float, mut histogram)) = first_places(window) else {
        return Ok(None);
    };
    let mut count = 0;
    let mut before: Option<Sample<'_>> = None;
    loop {
        let (next_float, next_histogram) =
            (window.floats.get(float), window.histograms.get(histogram));
        let sample = match (next_float, next_histogram) {
            (Some(a), b) if b.is_none_or(|b| a.time_ms < b.time_ms) => {
                float += 1;
                let start_ms = window.float_starts.get(float - 1).copied().unwrap_or(0);
                Sample { value: Either::Float(a.value), time_ms: a.time_ms, start_ms }
            }
            (_, Some(b)) => {
                histogram += 1;
                let start_ms = window.histogram_starts.get(histogram - 1).copied().unwrap_or(0);
                Sample { value: Either::Histogram(&b.histogram), time_ms: b.time_ms, start_ms }
            }
            _ => break,
        };
        if before.is_some_and(|before| test(before, sample)) {
            count += 1;
        }
        before = Some(sample);
    }
    Ok(Some(Value::Float(f64::from(count))))
}

/// Returns the first float and histogram to use. An anchored window begins with the last sample at
/// or before its start, and has no result without a sample after its start.
fn first_places(window: &Window<'_>) -> Option<(usize, usize)> {
    if window.bounds != RangeBounds::Anchored {
        return Some((0, 0));
    }
    let is_before = |time_ms: i64| time_ms <= window.start_ms;
    let floats = window.floats.partition_point(|point: &FloatPoint| is_before(point.time_ms));
    let histograms =
        window.histograms.partition_point(|point: &HistogramPoint| is_before(point.time_ms));
    if floats == window.floats.len() && histograms == window.histograms.len() {
        return None;
    }
    let last_float = floats.checked_sub(1).map(|place| (window.floats[place].time_ms, place));
    let last_histogram =
        histograms.checked_sub(1).map(|place| (window.histograms[place].time_ms, place));
    // Of the two samples at or before the start, only the later sample anchors the window.
    Some(match (last_float, last_histogram) {
        (None, None) => (0, 0),
        (Some((a, place)), b) if b.is_none_or(|(b, _)| a >= b) => (place, histograms),
        (_, Some((_, place))) => (floats, place),
        (Some((_, place)), None) => (place, histograms),
    })
}
