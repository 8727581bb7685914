//! Tables with results of Prometheus: their numbers and histograms.

use serde_json::Value;
use tidepool_promql::model::{CounterReset, Histogram, Span};

/// Fields of the lines of a table with the line itself; the first is a name, the others are JSON.
pub fn rows(table: &str) -> impl Iterator<Item = (&str, &str, Vec<Value>)> {
    table.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let (name, fields) = line.split_once('\t').expect("fields");
        let field = |field| serde_json::from_str(field).expect("a field of JSON");
        (line, name, fields.split('\t').map(field).collect())
    })
}

/// Fails if some lines differ from the results.
pub fn assert_none(count: usize, wrong: &[String]) {
    assert!(count > 100, "{count} cases");
    assert!(wrong.is_empty(), "{} of {count} differ:\n{}", wrong.len(), wrong.join("\n"));
}

pub fn number(value: &Value) -> f64 {
    match value {
        Value::String(text) => text.parse().expect("a number"),
        value => value.as_f64().expect("a number"),
    }
}

pub fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().expect("a list").iter().map(number).collect()
}

pub fn spans(value: &Value) -> Vec<Span> {
    let span =
        |span: &Value| Span { offset: number(&span[0]) as i32, length: number(&span[1]) as u32 };
    value.as_array().expect("a list").iter().map(span).collect()
}

const RESETS: [CounterReset; 4] =
    [CounterReset::Unknown, CounterReset::Reset, CounterReset::NotReset, CounterReset::Gauge];

pub fn histogram(value: &Value) -> Histogram {
    Histogram {
        schema: number(&value[0]) as i32,
        counter_reset: RESETS[number(&value[1]) as usize],
        zero_threshold: number(&value[2]),
        zero_count: number(&value[3]),
        count: number(&value[4]),
        sum: number(&value[5]),
        positive_spans: spans(&value[6]),
        positive_buckets: numbers(&value[7]),
        negative_spans: spans(&value[8]),
        negative_buckets: numbers(&value[9]),
        custom_values: numbers(&value[10]),
    }
}

/// Returns whether two numbers differ by the rounding of logarithms only.
pub fn near(a: f64, b: f64) -> bool {
    a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= 1e-12 * (a.abs() + b.abs())
}

pub fn all_near(a: &[f64], b: &[f64]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| near(*a, *b))
}

pub fn alike(a: &Histogram, b: &Histogram) -> bool {
    a.schema == b.schema
        && a.counter_reset == b.counter_reset
        && all_near(
            &[a.zero_threshold, a.zero_count, a.count, a.sum],
            &[b.zero_threshold, b.zero_count, b.count, b.sum],
        )
        && (&a.positive_spans, &a.negative_spans) == (&b.positive_spans, &b.negative_spans)
        && all_near(&a.positive_buckets, &b.positive_buckets)
        && all_near(&a.negative_buckets, &b.negative_buckets)
        && a.custom_values == b.custom_values
}
