//! Comparison of answers with expected ones.

use super::script::{Eval, Expected, ExpectedSeries, When};
use super::series::Item;
use std::collections::BTreeMap;
use std::rc::Rc;
use tidepool_promql::histogram::test_notation;
use tidepool_promql::model::{Histogram, Labels, Span, Value, is_stale_nan};

/// Permitted difference of two values, relative to their sum.
const EPSILON: f64 = 1e-6;

#[derive(Debug)]
pub enum Answer {
    Scalar(f64),
    String(String),
    Vector(Vec<(Labels, Value)>),
    Matrix(Vec<AnsweredSeries>),
}

#[derive(Debug)]
pub struct AnsweredSeries {
    pub labels: Labels,
    pub floats: Vec<(i64, f64)>,
    pub histograms: Vec<(i64, Rc<Histogram>)>,
}

type Checked = Result<(), String>;

pub fn check(eval: &Eval, answer: &Answer) -> Checked {
    match (answer, &eval.answer) {
        (Answer::Scalar(found), Expected::Scalar(wanted)) => match is_close(*wanted, *found) {
            true => Ok(()),
            false => Err(format!("{found} instead of {wanted}")),
        },
        (Answer::String(found), Expected::String(wanted)) => match found == wanted {
            true => Ok(()),
            false => Err(format!("{found:?} instead of {wanted:?}")),
        },
        (Answer::Vector(found), Expected::Series(wanted)) => vector(eval, found, wanted),
        (Answer::Matrix(found), Expected::Series(wanted)) => {
            let When::Range(start, _, step) = eval.when else {
                return Err("a matrix instead of a vector".into());
            };
            matrix(found, start, step, wanted)
        }
        (Answer::Matrix(found), Expected::Samples(start, step, wanted)) => {
            matrix(found, *start, *step, wanted)
        }
        _ => Err(format!("an answer of the wrong type: {answer:?}")),
    }
}

/// The last of several series with the same labels counts.
fn by_labels(wanted: &[ExpectedSeries]) -> BTreeMap<&Labels, (usize, &[Item])> {
    let entries = wanted.iter().enumerate();
    entries.map(|(i, series)| (&series.labels, (i, &series.items[..]))).collect()
}

fn vector(eval: &Eval, found: &[(Labels, Value)], wanted: &[ExpectedSeries]) -> Checked {
    let mut missing = by_labels(wanted);
    for (i, (labels, value)) in found.iter().enumerate() {
        let Some((place, items)) = missing.remove(labels) else {
            return Err(format!("{labels} {} is not expected, or comes twice", shown(value)));
        };
        if eval.is_ordered && place != i {
            return Err(format!("{labels} is in place {i} instead of {place}"));
        }
        let fits = match (items.first(), value) {
            (Some(Item::Float(wanted)), Value::Float(found)) => is_close(*wanted, *found),
            (Some(Item::Histogram(wanted, has_hint)), Value::Histogram(found)) => {
                is_close_histogram(wanted, found, *has_hint)
            }
            _ => false,
        };
        if !fits {
            let wanted = items.first().map(shown_item).unwrap_or_default();
            return Err(format!("{labels} is {} instead of {wanted}", shown(value)));
        }
    }
    match missing.keys().next() {
        None => Ok(()),
        Some(labels) => Err(format!("{labels} is missing")),
    }
}

fn matrix(found: &[AnsweredSeries], start: i64, step: i64, wanted: &[ExpectedSeries]) -> Checked {
    if let Some(pair) = found.windows(2).find(|pair| pair[0].labels > pair[1].labels) {
        return Err(format!("{} comes before {}", pair[0].labels, pair[1].labels));
    }
    let mut missing = by_labels(wanted);
    for series in found {
        let labels = &series.labels;
        let Some((_, items)) = missing.remove(labels) else {
            return Err(format!("{labels} is not expected, or comes twice: {series:?}"));
        };
        let (mut floats, mut histograms) = (series.floats.iter(), series.histograms.iter());
        for (i, item) in items.iter().enumerate() {
            let time = start + i as i64 * step;
            let (fits, shown) = match item {
                Item::Omitted => continue,
                Item::Float(wanted) => {
                    let found = floats.next();
                    let fits = found.is_some_and(|(at, it)| *at == time && is_close(*wanted, *it));
                    (fits, format!("{found:?}"))
                }
                Item::Histogram(wanted, has_hint) => {
                    let found = histograms.next();
                    let fits = found.is_some_and(|(at, it)| {
                        *at == time && is_close_histogram(wanted, it, *has_hint)
                    });
                    (fits, format!("{:?}", found.map(|(at, it)| (at, test_notation(it)))))
                }
            };
            if !fits {
                let wanted = shown_item(item);
                return Err(format!("{labels} at {time} is {shown} instead of {wanted}"));
            }
        }
        if let Some((time, value)) = floats.next() {
            return Err(format!("{labels} has {value} at {time}, which is not expected"));
        }
        if let Some((time, value)) = histograms.next() {
            let value = test_notation(value);
            return Err(format!("{labels} has {value} at {time}, which is not expected"));
        }
    }
    match missing.keys().next() {
        None => Ok(()),
        Some(labels) => Err(format!("{labels} is missing")),
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Float(value) => value.to_string(),
        Value::Histogram(histogram) => test_notation(histogram),
    }
}

fn shown_item(item: &Item) -> String {
    match item {
        Item::Omitted => "nothing".into(),
        Item::Float(value) => value.to_string(),
        Item::Histogram(histogram, _) => test_notation(histogram),
    }
}

/// Returns whether two values are nearly the same. All NaN but the stale marker are equal.
fn is_close(wanted: f64, found: f64) -> bool {
    if is_stale_nan(wanted) || is_stale_nan(found) {
        return is_stale_nan(wanted) && is_stale_nan(found);
    }
    if wanted == found || (wanted.is_nan() && found.is_nan()) {
        return true;
    }
    let sum = wanted.abs() + found.abs();
    let apart = (wanted - found).abs();
    if wanted == 0.0 || found == 0.0 || sum < f64::MIN_POSITIVE {
        return apart < EPSILON * f64::MIN_POSITIVE;
    }
    apart / sum.min(f64::MAX) < EPSILON
}

fn is_close_histogram(wanted: &Histogram, found: &Histogram, has_hint: bool) -> bool {
    let compacted = |histogram: &Histogram| {
        let mut histogram = histogram.clone();
        histogram.compact();
        histogram
    };
    let (wanted, found) = (compacted(wanted), compacted(found));
    let close_all = |wanted: &[f64], found: &[f64]| {
        wanted.len() == found.len() && wanted.iter().zip(found).all(|(a, b)| is_close(*a, *b))
    };
    wanted.schema == found.schema
        && is_close(wanted.count, found.count)
        && is_close(wanted.sum, found.sum)
        && wanted.custom_values == found.custom_values
        && wanted.zero_threshold == found.zero_threshold
        && is_close(wanted.zero_count, found.zero_count)
        && indices(&wanted.positive_spans) == indices(&found.positive_spans)
        && indices(&wanted.negative_spans) == indices(&found.negative_spans)
        && close_all(&wanted.positive_buckets, &found.positive_buckets)
        && close_all(&wanted.negative_buckets, &found.negative_buckets)
        && (!has_hint || wanted.counter_reset == found.counter_reset)
}

fn indices(spans: &[Span]) -> Vec<i32> {
    let mut next = 0;
    let mut indices = Vec::new();
    for span in spans {
        next += span.offset;
        indices.extend(next..next + span.length as i32);
        next += span.length as i32;
    }
    indices
}
