//! Functions compared with those of Prometheus: `tests/peers/promqlcases` makes the table.

mod golden;

use golden::{alike, assert_none, histogram, near, number, numbers, rows};
use serde_json::Value as Json;
use tidepool_promql::annotations::{Annotations, Severity};
use tidepool_promql::functions::{Body, Context, Memory, RangeFunction, Window, lookup};
use tidepool_promql::model::{FloatPoint, HistogramPoint, Value};
use tidepool_promql::syntax::{RangeBounds, Span};

const BOUNDS: [RangeBounds; 3] =
    [RangeBounds::Samples, RangeBounds::Anchored, RangeBounds::Smoothed];

fn list(value: &Json) -> impl Iterator<Item = &Json> {
    value.as_array().expect("a list").iter()
}

fn integers(value: &Json) -> Vec<i64> {
    list(value).map(|number| number.as_i64().expect("an integer")).collect()
}

/// Returns whether a result, and the annotations of one, are as expected.
fn over_range(function: RangeFunction, fields: &[Json]) -> Result<(), String> {
    let [expected, messages, window, floats, histograms, float_starts, histogram_starts, args] =
        fields
    else {
        return Err("not eight fields".to_owned());
    };
    let times = integers(window);
    let float = |point: &Json| FloatPoint {
        time_ms: point[0].as_i64().expect("a time"),
        value: number(&point[1]),
    };
    let point = |point: &Json| HistogramPoint {
        time_ms: point[0].as_i64().expect("a time"),
        histogram: histogram(&point[1]).into(),
    };
    let floats: Vec<_> = list(floats).map(float).collect();
    let histograms: Vec<_> = list(histograms).map(point).collect();
    let window = Window {
        floats: &floats,
        histograms: &histograms,
        float_starts: &integers(float_starts),
        histogram_starts: &integers(histogram_starts),
        start_ms: times[0],
        end_ms: times[1],
        time_ms: times[2],
        bounds: BOUNDS[times[3] as usize],
    };
    let mut annotations = Annotations::default();
    let spans = [Span::default(); 3];
    let mut memory = Memory::default();
    let mut context = Context::new(&mut annotations, &mut memory, "m", &spans);
    let result = function(&window, &numbers(args), &mut context);
    let result = result.map_err(|error| error.to_string())?;
    let mut found: Vec<_> = annotations
        .iter()
        .map(|note| match note.severity {
            Severity::Warning => format!("PromQL warning: {}", note.text),
            Severity::Info => format!("PromQL info: {}", note.text),
        })
        .collect();
    found.sort();
    let is_right = match (&result, expected) {
        (None, Json::Null) => true,
        (Some(Value::Histogram(found)), Json::Array(_)) => {
            let (mut found, mut expected) = (found.as_ref().clone(), histogram(expected));
            found.compact();
            expected.compact();
            alike(&found, &expected)
        }
        (Some(Value::Float(found)), Json::String(_) | Json::Number(_)) => {
            near(*found, number(expected))
        }
        _ => false,
    };
    let are_messages = list(messages).eq(found.iter());
    match is_right && are_messages {
        true => Ok(()),
        false => Err(format!("{result:?} {found:?}")),
    }
}

fn over_value(body: Body, fields: &[Json]) -> Result<(), String> {
    let args = numbers(&fields[2]);
    let result = match (body, &fields[1]) {
        (Body::Float(_), Json::Array(_)) => None,
        (Body::Float(function), value) => function(number(value), &args),
        (Body::Histogram(function), value) => Some(function(&histogram(value))),
        _ => return Err("not a function of one value".to_owned()),
    };
    let is_right = match (result, &fields[0]) {
        (None, Json::Null) => true,
        (Some(_), Json::Null) | (None, _) => false,
        (Some(found), expected) => near(found, number(expected)),
    };
    if is_right { Ok(()) } else { Err(format!("{result:?}")) }
}

#[test]
fn functions_give_what_upstreams_give() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for (line, name, fields) in rows(include_str!("cases/functions.tsv")) {
        let outcome = match lookup(name).expect(name).body {
            Body::Range(function) => over_range(function.window, &fields),
            body => over_value(body, &fields),
        };
        count += 1;
        if let Err(found) = outcome {
            wrong.push(format!("{line}\n    found {found}"));
        }
    }
    assert_none(count, &wrong);
}
