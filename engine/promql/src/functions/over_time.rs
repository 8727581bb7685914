//! Aggregations of one series over time.

use super::{Context, Entry, FunctionError, Memory, Window, mean, range, range_or_run};
use crate::annotations::Note;
use crate::kahan;
use crate::model::{FloatPoint, Value};
use crate::quantile;

pub(super) const TABLE: &[Entry] = &[
    range_or_run(
        "avg_over_time",
        |window, _, context| match is_mixed(window, context) {
            true => Ok(None),
            false if window.histograms.is_empty() => float(mean::floats(window.floats)),
            false => Ok(mean::histograms(window.histograms, context).map(Value::from)),
        },
        |run, _| run.each(|window| Some(mean::floats(window.floats()))),
    ),
    range_or_run(
        "count_over_time",
        |window, _, _| float((window.floats.len() + window.histograms.len()) as f64),
        |run, _| run.each(|window| Some(window.floats().len() as f64)),
    ),
    range("mad_over_time", |window, _, context| of_floats(window, context, deviation_from_median)),
    range_or_run(
        "max_over_time",
        |window, _, context| {
            of_floats(window, context, |floats, memory| memory.extremes.of(floats, |a, b| a > b))
        },
        |run, memory| run.each(|window| Some(memory.extremes.of(window.floats(), |a, b| a > b))),
    ),
    range_or_run(
        "min_over_time",
        |window, _, context| {
            of_floats(window, context, |floats, memory| memory.extremes.of(floats, |a, b| a < b))
        },
        |run, memory| run.each(|window| Some(memory.extremes.of(window.floats(), |a, b| a < b))),
    ),
    range_or_run("present_over_time", |_, _, _| float(1.0), |run, _| run.each(|_| Some(1.0))),
    range("quantile_over_time", quantile_over_time),
    range("stddev_over_time", |window, _, context| {
        of_floats(window, context, |floats, _| variance(floats).sqrt())
    }),
    range("stdvar_over_time", |window, _, context| {
        of_floats(window, context, |floats, _| variance(floats))
    }),
    range_or_run(
        "sum_over_time",
        |window, _, context| match is_mixed(window, context) {
            true => Ok(None),
            false if window.histograms.is_empty() => float(sum(window.floats)),
            false => Ok(mean::sum_of_histograms(window.histograms, context).map(Value::from)),
        },
        |run, _| run.each(|window| Some(sum(window.floats()))),
    ),
    range("ts_of_first_over_time", |window, _, _| {
        let float = window.floats.first().map(|point| point.time_ms);
        let histogram = window.histograms.first().map(|point| point.time_ms);
        seconds(float.into_iter().chain(histogram).min())
    }),
    range("ts_of_last_over_time", |window, _, _| {
        let float = window.floats.last().map(|point| point.time_ms);
        let histogram = window.histograms.last().map(|point| point.time_ms);
        seconds(float.into_iter().chain(histogram).max())
    }),
    range("ts_of_max_over_time", |window, _, context| {
        of_floats(window, context, |floats, _| {
            extreme(floats, |value, max| value >= max).time_ms as f64 / 1000.0
        })
    }),
    range("ts_of_min_over_time", |window, _, context| {
        of_floats(window, context, |floats, _| {
            extreme(floats, |value, min| value <= min).time_ms as f64 / 1000.0
        })
    }),
    Entry { dropped: super::Dropped::Nothing, ..range("first_over_time", first) },
    Entry {
        dropped: super::Dropped::Nothing,
        ..range_or_run("last_over_time", last, |run, _| {
            run.each(|window| window.floats().last().map(|point| point.value));
        })
    },
];

type Outcome = Result<Option<Value>, FunctionError>;

fn float(value: f64) -> Outcome {
    Ok(Some(Value::Float(value)))
}

fn seconds(time_ms: Option<i64>) -> Outcome {
    Ok(time_ms.map(|time_ms| Value::Float(time_ms as f64 / 1000.0)))
}

fn is_mixed(window: &Window<'_>, context: &mut Context<'_>) -> bool {
    let is_mixed = !window.floats.is_empty() && !window.histograms.is_empty();
    if is_mixed {
        context.note(0, Note::MixedFloatsHistograms);
    }
    is_mixed
}

/// Applies a function to the floats, if the window has any; histograms are ignored.
fn of_floats(
    window: &Window<'_>,
    context: &mut Context<'_>,
    apply: fn(&[FloatPoint], &mut Memory) -> f64,
) -> Outcome {
    if window.floats.is_empty() {
        return Ok(None);
    }
    if !window.histograms.is_empty() {
        context.note(0, Note::HistogramIgnoredInMixedRange);
    }
    float(apply(window.floats, context.memory))
}

fn first(window: &Window<'_>, _: &[f64], _: &mut Context<'_>) -> Outcome {
    Ok(match (window.floats.first(), window.histograms.first()) {
        // Of two samples at one time upstream prefers the histogram.
        (Some(float), Some(histogram)) if histogram.time_ms <= float.time_ms => {
            Some(Value::Histogram(histogram.histogram.clone()))
        }
        (None, Some(histogram)) => Some(Value::Histogram(histogram.histogram.clone())),
        (float, _) => float.map(|point| Value::Float(point.value)),
    })
}

fn last(window: &Window<'_>, _: &[f64], _: &mut Context<'_>) -> Outcome {
    Ok(match (window.floats.last(), window.histograms.last()) {
        (Some(float), Some(histogram)) if histogram.time_ms >= float.time_ms => {
            Some(Value::Histogram(histogram.histogram.clone()))
        }
        (None, Some(histogram)) => Some(Value::Histogram(histogram.histogram.clone())),
        (float, _) => float.map(|point| Value::Float(point.value)),
    })
}

/// Returns the last point that is at least as good as all others; NaN only if all are NaN.
fn extreme(floats: &[FloatPoint], is_better: fn(f64, f64) -> bool) -> FloatPoint {
    // Any value replaces NaN, because comparisons with NaN are always false.
    let mut best = floats[0];
    for point in floats {
        if is_better(point.value, best.value) || best.value.is_nan() {
            best = *point;
        }
    }
    best
}

fn sum(floats: &[FloatPoint]) -> f64 {
    // Almost all windows have a finite sum, whose loop has no branches.
    if let Some((sum, lost)) = kahan::finite_sum(floats) {
        return sum + lost;
    }
    let (mut sum, mut lost) = (0.0, 0.0);
    for point in floats {
        kahan::add(point.value, &mut sum, &mut lost);
    }
    if sum.is_infinite() { sum } else { sum + lost }
}

fn variance(floats: &[FloatPoint]) -> f64 {
    // Welford's method: a difference of sums of squares would cancel for values far from zero.
    let (mut mean, mut mean_lost) = (0.0, 0.0);
    let (mut squares, mut squares_lost) = (0.0, 0.0);
    let mut count = 0.0;
    for point in floats {
        count += 1.0;
        let delta = point.value - (mean + mean_lost);
        kahan::add(delta / count, &mut mean, &mut mean_lost);
        let square = delta * (point.value - (mean + mean_lost));
        kahan::add(square, &mut squares, &mut squares_lost);
    }
    (squares + squares_lost) / count
}

fn quantile_over_time(window: &Window<'_>, args: &[f64], context: &mut Context<'_>) -> Outcome {
    if window.floats.is_empty() {
        return Ok(None);
    }
    let q = args[0];
    // The negated test includes NaN.
    if !(0.0..=1.0).contains(&q) {
        context.note(0, Note::InvalidQuantile(q));
    }
    if !window.histograms.is_empty() {
        context.note(0, Note::HistogramIgnoredInMixedRange);
    }
    // `of_values` reorders its input, but later steps use the window.
    context.memory.scratch.clear();
    context.memory.scratch.extend(window.floats.iter().map(|point| point.value));
    float(quantile::of_values(q, &mut context.memory.scratch))
}

fn deviation_from_median(floats: &[FloatPoint], memory: &mut Memory) -> f64 {
    // `of_values` orders NaN below all numbers, so the median would hide NaN.
    if floats.iter().any(|point| point.value.is_nan()) {
        return f64::NAN;
    }
    let scratch = &mut memory.scratch;
    scratch.clear();
    scratch.extend(floats.iter().map(|point| point.value));
    let median = quantile::of_values(0.5, scratch);
    for value in scratch.iter_mut() {
        *value = (*value - median).abs();
    }
    quantile::of_values(0.5, scratch)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(values: &[f64]) -> Vec<FloatPoint> {
        let point = |(i, value): (usize, &f64)| FloatPoint { time_ms: i as i64, value: *value };
        values.iter().enumerate().map(point).collect()
    }

    #[test]
    fn the_last_extreme_counts() {
        let floats = points(&[f64::NAN, 1.0, 3.0, f64::NAN, 3.0, -1.0]);
        assert_eq!(extreme(&floats, |a, b| a >= b).time_ms, 4);
        assert_eq!(extreme(&floats, |a, b| a <= b).time_ms, 5);
        assert_eq!(extreme(&points(&[f64::NAN; 3]), |a, b| a <= b).time_ms, 2);
    }

    #[test]
    fn variance_of_far_numbers_is_exact() {
        let floats = points(&[1e15 + 4.0, 1e15 + 7.0, 1e15 + 13.0, 1e15 + 16.0]);
        assert_eq!(variance(&floats), 22.5);
    }

    #[test]
    fn deviation_from_the_median() {
        let floats = points(&[4.0, 6.0, 2.0, 1.0, 999.0, 1.0, 2.0]);
        assert_eq!(deviation_from_median(&floats, &mut Memory::default()), 1.0);
    }

    #[test]
    fn sums_keep_small_terms() {
        assert_eq!(sum(&points(&[1.0, 1e100, 1.0, -1e100])), 2.0);
        assert_eq!(sum(&points(&[f64::INFINITY, 1.0])), f64::INFINITY);
    }
}
