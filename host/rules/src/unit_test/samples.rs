//! Compares the answer of an expression with the samples that a test expects.

use super::shown::labels_text;
use super::store::Store;
use super::{ExpectedSample, ExpressionTest};
use crate::engine::{Origin, Query, Sample, Value};
use crate::file::Labels;
use crate::number::scientific;
use crate::template::quoted;
use tidepool_settings::duration::duration_text;

/// A sample; a histogram has the value 0.
struct Shown {
    labels: Labels,
    value: f64,
    /// Empty for none.
    histogram: String,
}

/// Returns the text of the failure if the expression has another answer than expected.
pub fn failure<S: Store>(
    test: &ExpressionTest,
    time_ms: i64,
    store: &S,
    is_fuzzy: bool,
) -> Option<String> {
    let origin = Origin { file: "", group: "", rule: "", is_alert: false };
    let query = Query { expression: &test.expression, time_ms, origin };
    let answer = store.query(&query);
    let answer = answer.and_then(|it| it.into_vector().map_err(|error| error.to_string()));
    let head =
        format!("    expr: {}, time: {},", quoted(&test.expression), duration_text(test.eval_time));
    let (got, expected) = match (answer, &test.expected) {
        (Err(error), _) => return Some(format!("{head} err: {error}")),
        (Ok(_), Err(error)) => return Some(format!("{head} err: {error}")),
        (Ok(got), Ok(expected)) => (got, expected),
    };
    let mut got: Vec<Shown> = got.into_iter().map(|sample| of_answer(sample, store)).collect();
    let mut expected: Vec<Shown> = expected.iter().map(of_expected).collect();
    got.sort_by(|a, b| a.labels.cmp(&b.labels));
    expected.sort_by(|a, b| a.labels.cmp(&b.labels));
    let is_same = got.len() == expected.len()
        && got.iter().zip(&expected).all(|(got, expected)| {
            got.labels == expected.labels
                && got.histogram == expected.histogram
                && are_equal(expected.value, got.value, is_fuzzy)
        });
    if is_same {
        return None;
    }
    Some(format!("{head}\n        exp: {}\n        got: {}", texts(&expected), texts(&got)))
}

/// NaN equals nothing, as in upstream.
fn are_equal(one: f64, other: f64, is_fuzzy: bool) -> bool {
    one == other || is_fuzzy && (one.next_down() == other || one.next_up() == other)
}

fn of_answer<S: Store>(sample: Sample<S::Histogram>, store: &S) -> Shown {
    let labels = sample.labels.to_map();
    match sample.value {
        Value::Float(value) => Shown { labels, value, histogram: String::new() },
        Value::Histogram(histogram) => {
            let histogram = store.buckets_of(&histogram).to_string();
            Shown { labels, value: 0.0, histogram }
        }
    }
}

fn of_expected(sample: &ExpectedSample) -> Shown {
    let histogram = sample.histogram.as_ref().map(ToString::to_string).unwrap_or_default();
    Shown { labels: sample.labels.clone(), value: sample.value, histogram }
}

fn texts(samples: &[Shown]) -> String {
    let text = |sample: &Shown| {
        let labels = labels_text(&sample.labels);
        match sample.histogram.as_str() {
            "" => format!("{labels} {}", float_text(sample.value)),
            histogram => format!("{labels} {histogram}"),
        }
    };
    match samples {
        [] => "nil".to_owned(),
        _ => samples.iter().map(text).collect::<Vec<_>>().join(", "),
    }
}

/// The shortest digits with an exponent, as in `1.5E+01`.
fn float_text(value: f64) -> String {
    scientific(value).replace('e', "E")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Go: `strconv.FormatFloat(value, 'E', -1, 64)`.
    #[test]
    fn numbers_have_gos_texts() {
        for (value, expected) in [
            (0.0, "0E+00"),
            (-0.0, "-0E+00"),
            (50.0, "5E+01"),
            (0.1, "1E-01"),
            (1.7e300, "1.7E+300"),
            (-123.456, "-1.23456E+02"),
            (f64::INFINITY, "+Inf"),
            (f64::NEG_INFINITY, "-Inf"),
            (f64::NAN, "NaN"),
        ] {
            assert_eq!(float_text(value), expected);
        }
    }

    #[test]
    fn fuzzy_values_differ_in_the_last_bit() {
        assert!(are_equal(3.0, 3.0, false) && !are_equal(f64::NAN, f64::NAN, true));
        assert!(are_equal(3.0, 3.000_000_000_000_000_4, true));
        assert!(!are_equal(3.0, 3.000_000_000_000_000_4, false));
        assert!(!are_equal(3.0, 3.000_000_000_000_001_3, true));
        assert!(are_equal(0.0, -5e-324, true));
    }
}
