//! Backtests: what they find is what the server stored when it evaluated the same rules, with a
//! server and without one; and their errors and access rights.

use super::configuration::start;
use super::rules::{import, is_mark, of};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;
use tidepool_tests::arguments;
use tidepool_tests::cli::run_command;
use tidepool_tests::clock::now_ms;
use tidepool_tests::guarded::{Node, curl};
use tidepool_tests::http::{Client, Response};
use tidepool_tests::process::Server;
use tidepool_tests::sender::read_all;
use tidepool_tests::series::Series;
use tidepool_tests::tidepool::Store;
use tidepool_tests::wait;

const TIMEOUT: Duration = Duration::from_secs(120);

/// Evaluations are at a time of which all samples have arrived, so that a later evaluation over
/// what is stored finds the same.
const OFFSET_MS: i64 = 2000;

const CONFIG: &str = "rule_files: ['rules.yml']\n";

const RULES: &str = r#"
groups:
  - name: g
    interval: 250ms
    query_offset: 2s
    rules:
      - {record: "load:mean", expr: "avg_over_time(load[1s])"}
      - alert: High
        expr: load:mean > 5
        for: 1s
        keep_firing_for: 500ms
        annotations: {summary: "{{ $labels.instance }} has {{ $value }}"}
      - alert: Soon
        expr: load > 5
        for: 1h
"#;

/// Times in milliseconds of a change of an alert: active, firing, resolved.
type Times = (i64, i64, i64);

fn stored(store: &Store, name: &str, state: &str) -> Option<Series> {
    of(store, name).into_iter().find(|series| {
        (series.labels.value("alertname"), series.labels.value("alertstate")) == ("High", state)
    })
}

/// Has an alert fire and end; returns its times by the samples that the rules wrote. `None` if an
/// evaluation did not take place.
fn fire(store: &Store) -> Option<Times> {
    let is_over = || {
        let firing = stored(store, "ALERTS", "firing")?;
        let (last, before) = firing.samples.split_last()?;
        let is_over = is_mark(last) && !before.is_empty();
        is_over.then(|| (before[0].timestamp_ms, last.timestamp_ms))
    };
    let mut value = 1.0;
    let mut sent = 0;
    let (fired_ms, resolved_ms) = wait::until("an alert that ended", TIMEOUT, || {
        import(store, &format!("load{{instance=\"a\"}} {value}\n"));
        sent += 1;
        if sent == 10 || stored(store, "ALERTS", "firing").is_some() {
            value = if sent == 10 { 9.0 } else { 1.0 };
        }
        is_over()
    })
    .unwrap_or_else(|error| panic!("{error}\n{}", store.server.log()));
    let active_ms =
        stored(store, "ALERTS", "pending").expect("it was pending").samples[0].timestamp_ms;
    let page = Client::default().get(&(store.server.url() + "/metrics")).expect("metrics").text();
    let mut missed = page
        .lines()
        .filter(|line| line.starts_with("prometheus_rule_group_iterations_missed_total{"));
    missed.all(|line| line.ends_with(" 0")).then_some((active_ms, fired_ms, resolved_ms))
}

/// Milliseconds of a time in RFC 3339.
fn ms(time: &Value) -> i64 {
    let time: jiff::Timestamp = time.as_str().expect("a time").parse().expect("RFC 3339");
    time.as_millisecond()
}

fn rule<'v>(report: &'v Value, name: &str) -> &'v Value {
    let rules = report["groups"][0]["rules"].as_array().expect("rules");
    rules.iter().find(|rule| rule["name"] == name).expect("the rule")
}

fn by_command(arguments: &[&std::ffi::OsStr]) -> Value {
    let output = run_command("alerts", arguments, "");
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    serde_json::from_str(&output.stdout).expect("JSON")
}

#[test]
fn a_backtest_finds_the_alerts_that_a_server_had() {
    for _ in 0..5 {
        let directory = tempfile::tempdir().expect("a directory");
        let rules = directory.path().join("rules.yml");
        fs::write(&rules, RULES).expect("a file");
        let begin_ms = now_ms();
        let (store, _) = start(directory.path(), CONFIG, &[]);
        let Some(times) = fire(&store) else { continue };
        check(store, &rules, begin_ms, times);
        return;
    }
    panic!("the machine was too slow for four evaluations a second, five times");
}

fn check(store: Store, rules: &Path, begin_ms: i64, (active_ms, fired_ms, resolved_ms): Times) {
    let seconds = |time_ms: i64| format!("{}.{:03}", time_ms / 1000, time_ms % 1000);
    let from = format!("--from={}", seconds(begin_ms));
    let to = format!("--to={}", seconds(resolved_ms + OFFSET_MS + 100));
    let names = |store: &Store| -> BTreeSet<String> {
        let read = store.reader().streamed(&[read_all()]).expect("an answer");
        read.into_iter().flatten().map(|series| series.labels.to_string()).collect()
    };
    let before = names(&store);
    let server = format!("--server={}", store.server.url());
    let of_server = by_command(arguments!["backtest", rules, &from, &to, &server, "--format=json"]);
    assert_eq!(names(&store), before, "it stores nothing");
    let dir = format!("--dir={}", store.config.data_dir().display());
    store.server.terminate().expect("it ends");
    let report = by_command(arguments!["backtest", rules, &from, &to, &dir, "--format=json"]);
    for report in [&of_server, &report] {
        let high = rule(report, "High");
        assert_eq!((&high["fired"], &high["pending"]), (&1.into(), &0.into()), "{high}");
        assert_eq!(high["alerts"][0]["annotations"]["summary"], "a has 9");
        let soon = rule(report, "Soon");
        assert_eq!((&soon["fired"], &soon["pending"]), (&0.into(), &1.into()), "{soon}");
        let series = serde_json::json!(
            {"stored": ["load"], "computed": ["load:mean"], "any": false, "circular": []}
        );
        assert_eq!(report["series"], series);
    }
    // The file has the path that it had for the server, so the group has the same slots.
    let alert = &rule(&report, "High")["alerts"][0];
    let times = [&alert["activeAt"], &alert["firedAt"], &alert["resolvedAt"]].map(ms);
    assert_eq!(times, [active_ms, fired_ms, resolved_ms].map(|time_ms| time_ms + OFFSET_MS));
    let text = run_command("alerts", arguments!["backtest", rules, &from, &to, &dir], "").stdout;
    assert!(text.contains("  High: fired 1 time; ") && text.contains("value 9: {"), "{text}");
}

fn post(server: &Server, form: &str) -> Response {
    let headers = [("Content-Type", "application/x-www-form-urlencoded")];
    let url = server.url() + "/api/v1/alerts/backtest";
    Client::default().post(&url, &headers, form.as_bytes()).expect("an answer")
}

#[test]
fn what_cannot_be_tested_is_refused_with_the_reason() {
    let store = Store::start().expect("tidepool starts");
    let rules = "rules={groups: [{name: a, rules: [{alert: A, expr: up == 0}]}]}";
    for (form, status, expected) in [
        (format!("{rules}&start=0&end=60"), 200, r#""evaluations":1"#),
        (format!("{rules}&start=60&end=0"), 400, "end timestamp must not be before start time"),
        (rules.to_owned(), 400, r#"invalid parameter \"start\""#),
        ("start=0".to_owned(), 400, "no rules parameter provided"),
        ("start=0&rules={groups: [{name: a, rulez: []}]}".to_owned(), 400, "did you mean rules?"),
        (
            "start=0&rules={groups: [{name: a, rules: [{alert: A, expr: sum(}]}]}".to_owned(),
            400,
            "rules:1:",
        ),
        (format!("{rules}&start=-1e9&end=1e9"), 422, "give a shorter range"),
    ] {
        let answer = post(&store.server, &form);
        assert_eq!(answer.status, status, "{form}: {}", answer.text());
        assert!(answer.text().contains(expected), "{form}: {}", answer.text());
    }
    let get = store.server.url() + "/api/v1/alerts/backtest";
    assert_eq!(Client::default().get(&get).expect("an answer").status, 405);
    let output = run_command("alerts", arguments!["backtest", "none.yml", "--from=1h"], "");
    assert_eq!(output.code, Some(1));
    assert!(output.stderr.contains("none.yml"), "{}", output.stderr);
}

#[test]
fn a_backtest_needs_the_right_to_read() {
    const PATH: &str = "/api/v1/alerts/backtest";
    let server = Node::open_to_all().with_credentials().start();
    let status = |who: &[&str]| {
        let arguments = [who, &["--data-binary", "start=0"]].concat();
        curl(&server, "http", PATH, &arguments).0
    };
    assert_eq!(status(&[]), 401);
    assert_eq!(status(&["--user", "writer:wr1te-secret"]), 401);
    // The rules are missing: such an error shows that the client got access.
    assert_eq!(status(&["--user", "reader:re4d:secret"]), 400);
    let arguments = ["--user", "reader:re4d:secret", "--header", "Origin: http://other.example"];
    let (_, head) = curl(&server, "http", PATH, &arguments);
    assert!(!head.contains("access-control-allow-origin"), "{head}");
}
