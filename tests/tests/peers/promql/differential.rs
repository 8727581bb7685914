//! Random expressions over random data: the real Prometheus and two stores with the same samples
//! must answer alike. One store has all in its head, the other one blocks and a head.

use serde_json::Value;
use std::collections::BTreeMap;
use tidepool_tests::clock::now_ms;
use tidepool_tests::histogram::stored::{rows, send, wait_for};
use tidepool_tests::http::Client;
use tidepool_tests::peers::Release;
use tidepool_tests::process::Server;
use tidepool_tests::prometheus::{self, percent_encode};
use tidepool_tests::promql::{Data, Expressions, data};
use tidepool_tests::remote_write::Version;
use tidepool_tests::series::Random;
use tidepool_tests::soak;
use tidepool_tests::tidepool::Store;

/// Scrapes of the data: two hours.
const SCRAPES: usize = 480;

/// Largest difference of two numbers, as a part of the larger one.
const TOLERANCE: f64 = 1e-12;

/// All that upstream offers behind flags.
const FEATURES: &str = "--enable-feature=promql-experimental-functions";

/// An answer in a form that can be compared: its type, its series by their labels, and its remarks.
#[derive(Debug, PartialEq)]
enum Answer {
    Failed(String),
    Value { kind: String, series: BTreeMap<String, Points>, remarks: Vec<String> },
}

/// A time and its numbers; a histogram has many.
type Point = (String, Vec<f64>);

/// A series.
type Points = Vec<Point>;

/// When an expression is evaluated: parameters of a request.
#[derive(Clone, Debug)]
struct Times {
    path: &'static str,
    parameters: String,
}

fn times(random: &mut Random, start_ms: i64, end_ms: i64) -> Times {
    let seconds = |ms: i64| format!("{}.{:03}", ms / 1000, ms % 1000);
    let span_ms = (end_ms - start_ms) as u64;
    let from_ms = start_ms + random.below(span_ms) as i64;
    if random.one_in(2) {
        return Times { path: "query", parameters: format!("time={}", seconds(from_ms)) };
    }
    let step_ms = random.pick(&[1_000, 15_000, 60_000, 77_000, 300_000]);
    let steps = 1 + random.below(60) as i64;
    let (start, end) = (seconds(from_ms), seconds(from_ms + step_ms * steps));
    let step = seconds(step_ms);
    Times { path: "query_range", parameters: format!("start={start}&end={end}&step={step}") }
}

fn ask(server: &Server, expression: &str, times: &Times) -> Answer {
    let url = format!("{}/api/v1/{}", server.url(), times.path);
    let form = format!("query={}&{}", percent_encode(expression), times.parameters);
    let headers = [("Content-Type", "application/x-www-form-urlencoded")];
    let answer = Client::default().post(&url, &headers, form.as_bytes()).expect("an answer");
    let json: Value = serde_json::from_slice(&answer.body).expect("JSON");
    if json["status"] != "success" {
        return Answer::Failed(format!("{} {}", answer.status, json["errorType"]));
    }
    let mut remarks: Vec<String> = ["warnings", "infos"]
        .iter()
        .flat_map(|kind| json[kind].as_array().cloned().unwrap_or_default())
        .map(|text| without_count(&text.to_string()))
        .collect();
    remarks.sort();
    let kind = json["data"]["resultType"].as_str().unwrap_or_default().to_owned();
    let result = &json["data"]["result"];
    let series = match kind.as_str() {
        "scalar" => BTreeMap::from([(String::new(), vec![point(result)])]),
        _ => result.as_array().expect("series").iter().map(series).collect(),
    };
    Answer::Value { kind, series, remarks }
}

/// A remark without the number of samples that it is about: upstream counts them twice each time
/// that it meets the remark again.
fn without_count(remark: &str) -> String {
    match (remark.split_once(", over "), remark.split_once(" samples from ")) {
        (Some((before, _)), Some((_, after))) => {
            format!("{before}, over some samples from {after}")
        }
        _ => remark.to_owned(),
    }
}

fn series(series: &Value) -> (String, Points) {
    let labels: BTreeMap<&String, &Value> =
        series["metric"].as_object().expect("labels").iter().collect();
    let mut points = Points::new();
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
    (point[0].to_string(), numbers)
}

/// All numbers of a value, in the order of their keys.
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

/// What differs first, if anything does.
fn difference(ours: &Answer, theirs: &Answer) -> Option<String> {
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
    let names = |series: &BTreeMap<String, Points>| series.keys().cloned().collect::<Vec<_>>();
    if names(series) != names(their_series) {
        return Some(format!("{:?} instead of {:?}", names(series), names(their_series)));
    }
    let is_near = |(a, b): (&f64, &f64)| {
        a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= TOLERANCE * a.abs().max(b.abs())
    };
    let is_same = |((time, numbers), (their_time, theirs)): (&Point, &Point)| {
        time == their_time
            && numbers.len() == theirs.len()
            && numbers.iter().zip(theirs).all(is_near)
    };
    for ((labels, points), theirs) in series.iter().zip(their_series.values()) {
        if points.len() != theirs.len() {
            return Some(format!("{labels}: {} points instead of {}", points.len(), theirs.len()));
        }
        if let Some((point, their_point)) = points.iter().zip(theirs).find(|pair| !is_same(*pair)) {
            return Some(format!("{labels}: {point:?} instead of {their_point:?}"));
        }
    }
    None
}

fn write(server: &Server, data: &Data) {
    // The second version of the protocol has custom bounds.
    send(server, Version::V2, &rows(&data.series));
    send(server, Version::V2, &rows(&data.out_of_order));
}

#[test]
fn random_expressions_have_prometheus_answers() {
    let seed = 20_261;
    let end_ms = now_ms() - 60_000;
    let start_ms = end_ms - SCRAPES as i64 * 15_000;
    let data = data(seed, SCRAPES, end_ms);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let config = prometheus::Config::new(Release::V3, directory.path()).expect("a directory");
    let config = config.receiver().out_of_order_window("3h").flag(FEATURES);
    let peer = config.start().expect("Prometheus starts");
    let start = |duration: &str| {
        let window = "--out-of-order-window=3h";
        let store =
            Store::start_with(|config| config.block_duration(duration).flag(window).flag(FEATURES));
        store.expect("tidepool starts")
    };
    let (head, blocks) = (start("2h"), start("10m"));
    for server in [&peer, &head.server, &blocks.server] {
        write(server, &data);
    }
    wait_for("blocks", blocks.config.data_dir(), |blocks| blocks.len() >= 5);
    let mut random = Random::new(seed, 1);
    let mut expressions = Expressions::new(seed, (start_ms / 1000, end_ms / 1000));
    let mut differences = Vec::new();
    let (mut count, mut with_values) = (0, 0);
    for _ in 0..soak::count(400, 5_000) {
        let expression = expressions.next_expression();
        let times = times(&mut random, start_ms, end_ms);
        let theirs = ask(&peer, &expression, &times);
        count += 1;
        with_values +=
            usize::from(matches!(&theirs, Answer::Value { series, .. } if !series.is_empty()));
        for (what, store) in [("the head", &head), ("blocks", &blocks)] {
            let ours = ask(&store.server, &expression, &times);
            if let Some(difference) = difference(&ours, &theirs) {
                differences.push(format!("{what}: {expression}\n  {times:?}\n  {difference}"));
            }
        }
    }
    assert!(
        differences.is_empty(),
        "seed {seed}: {} of {count}:\n{}",
        differences.len(),
        differences.join("\n")
    );
    // Empty answers are alike without a reason.
    assert!(with_values * 5 > count * 2, "only {with_values} of {count} answers have values");
}
