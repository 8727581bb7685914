//! Grafana's backend library gets the same answers from tidepool as from Prometheus 3: "Save &
//! test", the query editor, panels, exemplars and annotations.

use serde_json::Value;
use std::collections::BTreeMap;
use std::process::Command;
use tidepool_tests::clock::now_ms;
use tidepool_tests::peers::{self, Release};
use tidepool_tests::process::Server;
use tidepool_tests::prometheus::Config;
use tidepool_tests::proto::prometheus::{Exemplar, Label};
use tidepool_tests::remote_write::{Version, Writer, message_v1};
use tidepool_tests::series::Series;
use tidepool_tests::tidepool::Store;

const INTERVAL_MS: i64 = 15_000;
const SAMPLES: i64 = 40;
/// Number of requests that the tool sends.
const QUESTIONS: usize = 25;

/// Makes gauges, counters with a reset, and a classic histogram, until `end_ms`.
fn series(end_ms: i64) -> Vec<Series> {
    let mut all = Vec::new();
    let mut add = |pairs: &[(&str, &str)], value: &dyn Fn(i64) -> f64| {
        let times = (0..SAMPLES).map(|at| (end_ms - (SAMPLES - 1 - at) * INTERVAL_MS, value(at)));
        all.push(Series::new(pairs, &times.collect::<Vec<_>>()));
    };
    for (instance, phase) in [("a:1", 0), ("b:1", 3)] {
        let up = move |at: i64| f64::from(u8::from((at + phase) % 13 != 0));
        add(&[("__name__", "up"), ("instance", instance), ("job", "node")], &up);
    }
    for (code, step) in [("200", 7.0), ("500", 0.5)] {
        let count = move |at: i64| (at % 25) as f64 * step;
        add(&[("__name__", "requests_total"), ("code", code), ("job", "web")], &count);
    }
    for (le, share) in [("0.1", 2.0), ("0.5", 5.0), ("+Inf", 6.0)] {
        let count = move |at: i64| at as f64 * share;
        add(&[("__name__", "latency_seconds_bucket"), ("job", "web"), ("le", le)], &count);
    }
    add(&[("__name__", "dotted.name"), ("job", "web")], &|at| at as f64 / 3.0);
    all
}

fn write(server: &Server, series: &[Series], end_ms: i64) {
    let rows: Vec<_> = series.iter().map(Series::row).collect();
    let mut message = message_v1(&rows);
    for (number, series) in message.timeseries.iter_mut().enumerate() {
        if series.labels.iter().any(|label| label.value == "requests_total") {
            let trace = Label { name: "trace_id".into(), value: format!("trace-{number}") };
            let timestamp = end_ms - 60_000;
            series.exemplars = vec![Exemplar { labels: vec![trace], value: 0.25, timestamp }];
        }
    }
    let response = Writer::new(&server.url()).send_message(Version::V1, &message);
    let response = response.expect("an answer");
    assert!(response.is_success(), "{} {}", response.status, response.text());
}

/// Returns the answer to each request.
fn answers(server: &Server, end_ms: i64) -> BTreeMap<String, String> {
    let tool = peers::built("go-grafana").unwrap_or_else(|error| panic!("{error}"));
    let first = (end_ms - SAMPLES * INTERVAL_MS) / 1000;
    let output = Command::new(tool)
        .args([server.url(), first.to_string(), (end_ms / 1000).to_string()])
        .output()
        .expect("the tool runs");
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let pair = |line: &str| line.split_once('\t').map(|(a, b)| (a.to_owned(), b.to_owned()));
    text.lines().filter_map(pair).collect()
}

/// Removes the texts of errors, which may differ, and sorts lists of series.
fn comparable(answer: &str) -> Value {
    if answer.contains("error\":") || answer.contains("bad_data") {
        return Value::from("an error");
    }
    let mut answer: Value = serde_json::from_str(answer).expect("JSON");
    if let Some(list) = answer.pointer_mut("/1/data").and_then(Value::as_array_mut) {
        list.sort_by_key(Value::to_string);
    }
    answer
}

#[test]
fn grafana_gets_prometheus_answers() {
    let store = Store::start().expect("tidepool starts");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let config = Config::new(Release::V3, directory.path()).expect("a directory");
    let config = config.receiver().flag("--enable-feature=exemplar-storage");
    let peer = config.start().expect("Prometheus starts");
    let end_ms = now_ms() / INTERVAL_MS * INTERVAL_MS;
    let series = series(end_ms);
    write(&store.server, &series, end_ms);
    write(&peer, &series, end_ms);

    let (ours, theirs) = (answers(&store.server, end_ms), answers(&peer, end_ms));
    assert_eq!(ours.len(), QUESTIONS, "{ours:#?}");
    assert!(ours["health"].contains("Successfully queried the Prometheus API."), "{ours:#?}");
    for (question, expected) in &theirs {
        let found = ours.get(question).map(String::as_str).unwrap_or_default();
        assert_eq!(comparable(found), comparable(expected), "{question}");
    }
}
