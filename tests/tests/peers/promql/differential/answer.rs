//! Answers to queries in a comparable form, from JSON and from protobuf.

use super::buckets;
use prost::Message as _;
use serde_json::Value;
use std::collections::BTreeMap;
use tidepool_tests::http::Client;
use tidepool_tests::process::Server;
use tidepool_tests::prometheus::percent_encode;
use tidepool_tests::proto::prometheus::TimeSeries;
use tidepool_tests::proto::tidepool::{QueryResponse, ResultType};

/// Largest difference of two numbers, as a part of the larger one.
const TOLERANCE: f64 = 1e-12;

/// Media type of tidepool's answers without loss.
const LOSSLESS: &str = "application/vnd.tidepool.queryresponse+protobuf";

/// An answer: the error, or its type, its series in their order, and its annotations.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    Failed(String),
    Value { kind: String, series: Vec<Series>, remarks: Vec<String> },
}

/// The labels of a series as text, and its points.
pub type Series = (String, Vec<Point>);

/// A time with its numbers; a histogram has many.
pub type Point = (f64, Vec<f64>);

/// Times of an evaluation, as parameters of a request.
#[derive(Clone, Debug)]
pub struct Times {
    pub path: &'static str,
    pub parameters: String,
}

/// Required agreement on the order of an answer's series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// No agreement: neither engine promises an order.
    Any,
    /// The order of the labels.
    Labels,
    /// The order of the label `instance`, if all series have it: upstream's natural comparison is
    /// no order if a text is empty.
    Instances,
    /// The order of the values; equal ones may be exchanged.
    Values,
}

impl Order {
    /// Returns the order that an expression determines.
    pub fn of(expression: &str, times: &Times) -> Order {
        let starts_with = |names: &[&str]| names.iter().any(|name| expression.starts_with(name));
        match times.path {
            // A range query is sorted by labels, whatever the expression.
            "query_range" => Order::Labels,
            _ if starts_with(&["sort_by_label"]) => Order::Instances,
            _ if starts_with(&["sort", "topk (", "bottomk ("]) => Order::Values,
            _ => Order::Any,
        }
    }
}

fn post(server: &Server, expression: &str, times: &Times, accept: &str) -> (u16, Vec<u8>) {
    let url = format!("{}/api/v1/{}", server.url(), times.path);
    let form = format!("query={}&{}", percent_encode(expression), times.parameters);
    let headers = [("Content-Type", "application/x-www-form-urlencoded"), ("Accept", accept)];
    let answer = Client::default().post(&url, &headers, form.as_bytes()).expect("an answer");
    (answer.status, answer.body)
}

/// Sends a query for an answer in JSON.
pub fn ask(server: &Server, expression: &str, times: &Times) -> Answer {
    let (status, body) = post(server, expression, times, "application/json");
    of_json(status, &body)
}

/// Sends a query for an answer without loss; an error is JSON.
pub fn ask_lossless(server: &Server, expression: &str, times: &Times) -> Answer {
    let (status, body) = post(server, expression, times, LOSSLESS);
    if status != 200 {
        return of_json(status, &body);
    }
    let message = QueryResponse::decode(body.as_slice()).expect("a QueryResponse");
    let kind = match message.result_type() {
        ResultType::Scalar => "scalar",
        ResultType::Vector => "vector",
        ResultType::Matrix => "matrix",
        other => panic!("{other:?}"),
    };
    let kinds = [("warnings", &message.warnings), ("infos", &message.infos)];
    let remarks = kinds.iter().flat_map(|(kind, texts)| texts.iter().map(|it| remark(kind, it)));
    let mut remarks: Vec<_> = remarks.collect();
    remarks.sort();
    let series = message.timeseries.iter().map(of_message).collect();
    Answer::Value { kind: kind.to_owned(), series, remarks }
}

fn of_message(series: &TimeSeries) -> Series {
    let labels: BTreeMap<_, _> =
        series.labels.iter().map(|label| (label.name.clone(), label.value.clone())).collect();
    let seconds = |ms: i64| ms as f64 / 1000.0;
    let floats = series.samples.iter().map(|it| (seconds(it.timestamp), vec![it.value]));
    let histograms =
        series.histograms.iter().map(|it| (seconds(it.timestamp), buckets::as_in_json(it)));
    (format!("{labels:?}"), floats.chain(histograms).collect())
}

fn of_json(status: u16, body: &[u8]) -> Answer {
    let json: Value = serde_json::from_slice(body).expect("JSON");
    if json["status"] != "success" {
        let text = |key: &str| json[key].as_str().unwrap_or_default().to_owned();
        let error = without_series(&text("error"));
        return Answer::Failed(format!("{status} {}: {error}", text("errorType")));
    }
    let mut remarks = Vec::new();
    for kind in ["warnings", "infos"] {
        let texts = json[kind].as_array().into_iter().flatten().filter_map(Value::as_str);
        remarks.extend(texts.map(|text| remark(kind, text)));
    }
    remarks.sort();
    let kind = json["data"]["resultType"].as_str().unwrap_or_default().to_owned();
    let result = &json["data"]["result"];
    let series = match kind.as_str() {
        "scalar" => vec![("{}".to_owned(), vec![point(result)])],
        _ => result.as_array().expect("series").iter().map(series).collect(),
    };
    Answer::Value { kind, series, remarks }
}

/// Removes from an error the series that it names: if several occur twice, the first that upstream
/// finds depends on the order of a map.
fn without_series(error: &str) -> String {
    let (mut text, mut depth) = (String::new(), 0);
    for character in error.chars() {
        match character {
            '{' | '[' => depth += 1,
            '}' | ']' => depth -= 1,
            _ if depth == 0 => text.push(character),
            _ => {}
        }
    }
    text
}

/// Returns an annotation with its kind, and without its number of samples: upstream counts them
/// twice each time that the annotation is repeated.
fn remark(kind: &str, text: &str) -> String {
    match (text.split_once(", over "), text.split_once(" samples from ")) {
        (Some((before, _)), Some((_, after))) => {
            format!("{kind}: {before}, over some samples from {after}")
        }
        _ => format!("{kind}: {text}"),
    }
}

fn series(series: &Value) -> Series {
    let labels = series["metric"].as_object().expect("labels").iter();
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let labels: BTreeMap<_, _> = labels.map(|(name, value)| (name.clone(), text(value))).collect();
    let mut points = Vec::new();
    for key in ["value", "histogram"] {
        points.extend(series.get(key).map(point));
    }
    for key in ["values", "histograms"] {
        points.extend(series[key].as_array().into_iter().flatten().map(point));
    }
    (format!("{labels:?}"), points)
}

fn point(point: &Value) -> Point {
    let mut numbers = Vec::new();
    gather(&point[1], &mut numbers);
    (point[0].as_f64().expect("a time"), numbers)
}

/// Collects all numbers of a value, in the order of the keys.
fn gather(value: &Value, numbers: &mut Vec<f64>) {
    match value {
        Value::String(text) => numbers.push(text.parse().expect("a number")),
        Value::Number(number) => numbers.extend(number.as_f64()),
        Value::Array(items) => items.iter().for_each(|item| gather(item, numbers)),
        Value::Object(map) => {
            let sorted: BTreeMap<_, _> = map.iter().collect();
            sorted.values().for_each(|item| gather(item, numbers));
        }
        other => panic!("{other} in a value"),
    }
}

fn is_near(a: f64, b: f64) -> bool {
    a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= TOLERANCE * a.abs().max(b.abs())
}

fn is_same((time, numbers): &Point, (their_time, theirs): &Point) -> bool {
    let near = || numbers.iter().zip(theirs).all(|(a, b)| is_near(*a, *b));
    time == their_time && numbers.len() == theirs.len() && near()
}

/// Returns the first difference, if there is any.
pub fn difference(ours: &Answer, theirs: &Answer, order: Order) -> Option<String> {
    let (
        Answer::Value { kind, series, remarks },
        Answer::Value { kind: their_kind, series: their_series, remarks: their_remarks },
    ) = (ours, theirs)
    else {
        return (ours != theirs).then(|| format!("{ours:?} instead of {theirs:?}"));
    };
    if (kind, remarks) != (their_kind, their_remarks) {
        return Some(format!("{kind} {remarks:?} instead of {their_kind} {their_remarks:?}"));
    }
    let names = |series: &[Series], sorted: bool| {
        let mut names: Vec<_> = series.iter().map(|(labels, _)| labels.clone()).collect();
        if sorted {
            names.sort();
        }
        names
    };
    let has_instance = |(labels, _): &Series| labels.contains("\"instance\": ");
    let is_any = match order {
        Order::Labels => false,
        Order::Instances => !series.iter().all(has_instance),
        Order::Any | Order::Values => true,
    };
    if names(series, is_any) != names(their_series, is_any) {
        let (ours, theirs) = (names(series, is_any), names(their_series, is_any));
        return Some(format!("{ours:?} instead of {theirs:?}"));
    }
    let first = |series: &[Series]| -> Vec<f64> {
        series.iter().filter_map(|(_, points)| points.first()?.1.first().copied()).collect()
    };
    let (values, their_values) = (first(series), first(their_series));
    let in_order = values.iter().zip(&their_values).all(|(a, b)| is_near(*a, *b));
    if order == Order::Values && !in_order {
        return Some(format!("in the order {values:?} instead of {their_values:?}"));
    }
    let theirs: BTreeMap<_, _> = their_series.iter().map(|(labels, it)| (labels, it)).collect();
    for (labels, points) in series {
        let theirs = theirs[labels];
        if points.len() != theirs.len() {
            return Some(format!("{labels}: {} points instead of {}", points.len(), theirs.len()));
        }
        let differs = |(a, b): &(&Point, &Point)| !is_same(a, b);
        if let Some((point, their_point)) = points.iter().zip(theirs).find(differs) {
            return Some(format!("{labels}: {point:?} instead of {their_point:?}"));
        }
    }
    None
}
