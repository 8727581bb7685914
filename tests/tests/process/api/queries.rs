//! Limits of queries in PromQL: turns, timeouts, samples, features, and clients that disconnect.

use prost::Message;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};
use tidepool_tests::clock::now_ms;
use tidepool_tests::http::{Client, Response, exchange, request_bytes};
use tidepool_tests::process::Server;
use tidepool_tests::prometheus::percent_encode;
use tidepool_tests::proto::prometheus::histogram::{Count, ResetHint, ZeroCount};
use tidepool_tests::proto::prometheus::{
    BucketSpan, Histogram, Label, QueryResult, TimeSeries, WriteRequest,
};
use tidepool_tests::proto::tidepool::{QueryResponse, ResultType};
use tidepool_tests::remote_write::Version;
use tidepool_tests::series::Series;
use tidepool_tests::tidepool::Store;
use tidepool_tests::wait;

const TIMEOUT: Duration = Duration::from_secs(60);

/// Seven billion additions, which would take minutes if the query were not ended.
const SLOW: &str = "sum_over_time(sum_over_time(vector(1)[1d:1s])[1d:1s])";

fn start(flags: &[&str]) -> Store {
    let store =
        Store::start_with(|config| flags.iter().fold(config, |config, flag| config.flag(flag)));
    store.expect("tidepool starts")
}

fn path(expression: &str, more: &str) -> String {
    format!("/api/v1/query?query={}{more}", percent_encode(expression))
}

fn ask(server: &Server, expression: &str, more: &str) -> Response {
    let url = format!("{}{}", server.url(), path(expression, more));
    Client::default().get(&url).expect("an answer")
}

fn json_of(response: &Response) -> Value {
    serde_json::from_slice(&response.body)
        .unwrap_or_else(|error| panic!("{error}: {}", response.text()))
}

#[track_caller]
fn assert_refused(response: &Response, status: u16, kind: &str, text: &str) {
    let answer = json_of(response);
    assert_eq!((response.status, &answer["errorType"]), (status, &json!(kind)), "{answer}");
    let error = answer["error"].as_str().unwrap_or_default();
    assert!(error.contains(text), "{error}");
}

/// Sends a query without waiting for the answer.
fn ask_silently(server: &Server, expression: &str) -> TcpStream {
    let mut stream = TcpStream::connect(server.address()).expect("a connection");
    let request = request_bytes("GET", &path(expression, ""), &[], 0, b"");
    stream.write_all(&request).expect("the server takes it");
    stream
}

#[test]
fn a_query_ends_at_its_timeout() {
    let store = start(&["--query.timeout=300ms"]);
    let text = "query timed out in expression evaluation";
    for more in ["", "&timeout=100ms", "&timeout=1h"] {
        let begun = Instant::now();
        assert_refused(&ask(&store.server, SLOW, more), 503, "timeout", text);
        assert!(begun.elapsed() < Duration::from_secs(20), "{more}: {:?}", begun.elapsed());
    }
    assert_eq!(ask(&store.server, "1 + 1", "").status, 200);
}

#[test]
fn queries_take_turns_and_a_client_that_goes_away_gives_its_turn_back() {
    let store = start(&["--query.max-concurrency=1", "--query.timeout=1h", "--read-concurrency=1"]);
    for _ in 0..3 {
        let first = ask_silently(&store.server, SLOW);
        let is_refused = || {
            let second = ask(&store.server, "1 + 1", "&timeout=100ms");
            (second.status != 200).then_some(second)
        };
        let second = wait::until("a turn that is taken", TIMEOUT, is_refused).expect("it is");
        assert_refused(&second, 503, "timeout", "query timed out in query queue");
        // Lookups have turns of their own.
        let labels = format!("{}/api/v1/labels", store.server.url());
        assert_eq!(Client::default().get(&labels).expect("an answer").status, 200);

        // The first query would keep its turn for an hour.
        drop(first);
        assert_eq!(ask(&store.server, "1 + 1", "&timeout=30s").status, 200);
    }
    let freed = || (store.metric("tidepool_reads_memory_bytes")? == 0.0).then_some(());
    wait::until("the queries' memory", TIMEOUT, freed).expect("given back");
}

#[test]
fn more_than_the_queue_holds_is_refused() {
    let store = start(&["--query-max-concurrency=1", "--query-timeout=1h"]);
    let waiting: Vec<TcpStream> = (0..11).map(|_| ask_silently(&store.server, SLOW)).collect();
    // A query sent earlier would take the place of one of them.
    let is_full = || (store.metric("prometheus_engine_queries")? >= 11.0).then_some(());
    wait::until("a queue that is full", TIMEOUT, is_full).expect("it is");
    let refused = ask(&store.server, "1 + 1", "&timeout=100ms");
    assert_refused(&refused, 503, "unavailable", "10 queries wait already");
    drop(waiting);
    assert_eq!(ask(&store.server, "1 + 1", "&timeout=30s").status, 200);
}

fn write(store: &Store, names: &[&str], samples: &[(i64, f64)]) {
    let series: Vec<Series> = names
        .iter()
        .map(|name| Series::new(&[("__name__", name), ("job", "a")], samples))
        .collect();
    let rows: Vec<_> = series.iter().map(Series::row).collect();
    let response = store.writer().send(Version::V2, &rows).expect("an answer");
    assert_eq!(response.status, 204, "{}", response.text());
}

#[test]
fn samples_lookback_and_features_are_as_the_flags_say() {
    let store = start(&[
        "--query.max-samples=50",
        "--query.lookback-delta=10s",
        "--enable-feature=promql-experimental-functions,promql-delayed-name-removal",
    ]);
    let now_ms = now_ms() / 1000 * 1000;
    let samples: Vec<(i64, f64)> =
        (0..100).map(|n| (now_ms - 30_000 - n * 1000, n as f64)).rev().collect();
    write(&store, &["a_total", "b_total"], &samples);
    let at = format!("&time={}", now_ms / 1000);
    let ask = |expression: &str| ask(&store.server, expression, &at);
    assert_refused(&ask("a_total[5m]"), 422, "execution", "too many samples");
    let result = |expression: &str| {
        let response = ask(expression);
        let answer = json_of(&response);
        assert_eq!(response.status, 200, "{answer}");
        answer["data"]["result"].clone()
    };
    assert_eq!(result("a_total"), json!([]));
    assert_eq!(result("count(a_total offset 30s)")[0]["value"][1], json!("1"));
    assert_eq!(result("mad_over_time(a_total[40s])")[0]["value"][1], json!("2.5"));
    // Without the feature, the two would have the same labels.
    assert_eq!(result("count(abs({job=\"a\"} offset 30s))")[0]["value"][1], json!("2"));
    assert_refused(&ask("a_total + fill (0) b_total"), 400, "bad_data", "fill");
}

const MESSAGE: &str = "application/vnd.tidepool.queryresponse+protobuf";

fn label(name: &str, value: &str) -> Label {
    Label { name: name.into(), value: value.into() }
}

/// Returns a histogram with custom bounds, and a gauge with exponential buckets.
fn histograms(now_ms: i64) -> [Histogram; 2] {
    let custom = Histogram {
        count: Some(Count::CountFloat(6.5)),
        sum: 3.25,
        schema: -53,
        zero_count: Some(ZeroCount::ZeroCountFloat(0.0)),
        positive_spans: vec![BucketSpan { offset: 0, length: 3 }],
        positive_counts: vec![1.0, 2.0, 3.5],
        custom_values: vec![0.25, 4.0],
        timestamp: now_ms,
        ..Histogram::default()
    };
    let gauge = Histogram {
        count: Some(Count::CountFloat(4.0)),
        sum: -1.5,
        schema: 3,
        zero_threshold: 1e-9,
        zero_count: Some(ZeroCount::ZeroCountFloat(1.0)),
        negative_spans: vec![BucketSpan { offset: -2, length: 1 }],
        negative_counts: vec![3.0],
        reset_hint: ResetHint::Gauge.into(),
        timestamp: now_ms,
        ..Histogram::default()
    };
    [custom, gauge]
}

fn in_message(server: &Server, path: &str) -> Response {
    let headers = [("Accept", MESSAGE), ("Connection", "close")];
    let request = request_bytes("GET", path, &headers, 0, b"");
    exchange(server.address(), request, TIMEOUT).expect("an answer")
}

fn message(server: &Server, path: &str) -> QueryResponse {
    let response = in_message(server, path);
    assert_eq!(response.status, 200, "{}", response.text());
    assert_eq!(response.header("content-type"), Some(MESSAGE));
    assert!(response.headers.iter().any(|(name, value)| name == "vary" && value == "Accept"));
    QueryResponse::decode(&response.body[..]).expect("a message")
}

#[test]
fn an_answer_in_protobuf_has_whole_histograms() {
    let store = start(&["--enable-feature=promql-per-step-stats"]);
    let now_ms = now_ms() / 1000 * 1000;
    let written = histograms(now_ms);
    let series = |(name, histogram): (&str, &Histogram)| TimeSeries {
        labels: vec![label("__name__", name), label("job", "a")],
        histograms: vec![histogram.clone()],
        ..TimeSeries::default()
    };
    let timeseries: Vec<_> = ["custom", "gauge"].into_iter().zip(&written).map(series).collect();
    let request = WriteRequest { timeseries, ..WriteRequest::default() };
    let answer = store.writer().send_message(Version::V1, &request).expect("an answer");
    assert!(answer.is_success(), "{}", answer.text());

    let at = format!("&time={}", now_ms / 1000);
    let all = path("{job=\"a\"}", &at);
    let answer = message(&store.server, &all);
    assert_eq!(answer.result_type(), ResultType::Vector);
    let mut found = answer.timeseries;
    found.sort_by_key(|series| series.labels[0].value.clone());
    let found: Vec<_> = found.into_iter().flat_map(|series| series.histograms).collect();
    assert_eq!(found, written);
    let result = QueryResult::decode(&in_message(&store.server, &all).body[..]);
    assert_eq!(result.expect("a result of remote read").timeseries.len(), 2);

    let rest = message(&store.server, &path("\"text\"", ""));
    assert_eq!((rest.result_type(), rest.text.as_str()), (ResultType::String, "text"));
    let rest = message(&store.server, &path("1 + 1", ""));
    assert_eq!(
        (rest.result_type(), rest.timeseries[0].samples[0].value),
        (ResultType::Scalar, 2.0)
    );
    let (start, end) = (now_ms / 1000 - 60, now_ms / 1000);
    let query = percent_encode("quantile(2, {job=\"a\"})");
    let range =
        format!("/api/v1/query_range?query={query}&start={start}&end={end}&step=30&stats=all");
    let answer = message(&store.server, &range);
    assert_eq!(answer.result_type(), ResultType::Matrix);
    assert!(answer.warnings.iter().any(|text| text.contains("quantile")), "{answer:?}");
    assert!(!answer.infos.is_empty(), "{answer:?}");
    let stats = answer.stats.expect("stats");
    assert_eq!(stats.total_queryable_samples_per_step.len(), 3);
    let total = stats.total_queryable_samples_per_step.iter().sum::<u64>();
    assert!(total > 0 && total == stats.total_queryable_samples, "{stats:?}");

    let wrong = in_message(&store.server, &path("sum(", ""));
    assert_refused(&wrong, 400, "bad_data", "parse error");
}

/// The two expressions of upstream's `parse_test.go` that are not UTF-8; upstream refuses them.
#[test]
fn expressions_that_are_no_utf8_are_refused() {
    let store = start(&[]);
    let url = |rest: &str| format!("{}/api/v1/query{rest}", store.server.url());
    let form = [("Content-Type", "application/x-www-form-urlencoded")];
    for (encoded, place) in [
        ("some_metric%7Ba%3D%22%FF%22%7D", 15),
        ("label_replace(a,+%60b%60,+%60c%ff%60,+%60d%60,+%60.*%60)", 23),
    ] {
        let parameter = format!("query={encoded}");
        let got = Client::default().get(&url(&format!("?{parameter}"))).expect("an answer");
        let posted = Client::default().post(&url(""), &form, parameter.as_bytes());
        for response in [got, posted.expect("an answer")] {
            let text =
                format!("invalid parameter \"query\": 1:{place}: parse error: invalid UTF-8 rune");
            assert_refused(&response, 400, "bad_data", &text);
        }
    }
    // Replacement characters for such bytes are refused in an expression, as by Prometheus.
    let response =
        ask(&store.server, "label_replace(vector(1), \"a\", \"\u{fffd}\", \"b\", \"\")", "");
    assert_refused(&response, 400, "bad_data", "invalid UTF-8 rune");
}

#[test]
fn queries_that_a_crash_ended_are_named_at_the_next_start() {
    let store = start(&["--query-timeout=1h"]);
    let waiting = ask_silently(&store.server, SLOW);
    let runs = || (store.metric("prometheus_engine_queries")? == 1.0).then_some(());
    wait::until("a query that runs", TIMEOUT, runs).expect("it does");
    let file = store.config.data_dir().join("queries.active");
    let is_noted = || {
        let noted = std::fs::read(&file).ok()?;
        String::from_utf8_lossy(&noted).contains(SLOW).then_some(noted.len())
    };
    let bytes = wait::until("a note of it", TIMEOUT, is_noted).expect("it is noted");
    assert_eq!(bytes, 20_001);
    let store = store.restart(Server::kill).expect("it starts again");
    drop(waiting);
    let log = store.server.log();
    assert!(log.contains("did not finish in the last run") && log.contains(SLOW), "{log}");
    // The ended query is not named again.
    assert_eq!(ask(&store.server, "1 + 1", "").status, 200);
    let is_empty = || (std::fs::read(&file).ok()?[1..].iter().all(|byte| *byte == 0)).then_some(());
    wait::until("an empty list", TIMEOUT, is_empty).expect("it is");
}

#[test]
fn slow_queries_are_logged_with_their_cost() {
    // Far longer than the quick query takes, on a busy machine, too.
    let store = start(&["--query-log-min-duration=2s", "--query-timeout=3s"]);
    assert_eq!(ask(&store.server, "1 + 2", "").status, 200);
    assert_eq!(ask(&store.server, SLOW, "").status, 503);
    let line = || {
        let log = store.server.log();
        log.lines().find(|line| line.contains("slow query")).map(str::to_owned)
    };
    let line = wait::until("a line of the log", TIMEOUT, line).expect("it is there");
    for part in [
        "request_id=",
        "query=\"sum_over_time(",
        "error=\"query timed out in expression evaluation\"",
    ] {
        assert!(line.contains(part), "{part}: {line}");
    }
    let figure = |name: &str| -> Option<f64> {
        let (_, rest) = line.split_once(&format!(" {name}="))?;
        rest.split(' ').next()?.parse().ok()
    };
    let (all, evaluation) = (figure("seconds"), figure("evaluation_seconds"));
    assert!(all >= Some(2.0) && evaluation > Some(0.0) && evaluation <= all, "{line}");
    assert!(!store.server.log().contains("1 + 2"), "{}", store.server.log());
    for name in [
        "prometheus_engine_query_duration_seconds_count{slice=\"inner_eval\"}",
        "prometheus_engine_query_duration_histogram_seconds_count{slice=\"prepare_time\"}",
    ] {
        assert_eq!(store.metric(name), Some(2.0), "{name}");
    }
}

/// An answer that fails after its beginning must not look complete.
#[test]
fn an_answer_that_fails_on_its_way_is_cut_short() {
    let store = start(&["--query-timeout=2s"]);
    let now_ms = now_ms();
    let filler = "x".repeat(4000);
    for first in (0..8000).step_by(1000) {
        let series: Vec<Series> = (first..first + 1000)
            .map(|number| {
                let value = format!("{number:06}{filler}");
                Series::new(&[("__name__", "long"), ("value", &value)], &[(now_ms, 1.0)])
            })
            .collect();
        let rows: Vec<_> = series.iter().map(Series::row).collect();
        let response = store.writer().send(Version::V2, &rows).expect("an answer");
        assert_eq!(response.status, 204, "{}", response.text());
    }
    let url = format!("{}/api/v1/query", store.server.url());
    let form = [("Content-Type", "application/x-www-form-urlencoded")];
    let mut answer =
        Client::default().post_streaming(&url, &form, b"query=long").expect("an answer");
    assert_eq!(answer.status, 200);
    // The client reads nothing of 32 megabytes until the query has given up.
    let ended = || (store.metric("prometheus_engine_queries")? == 0.0).then_some(());
    wait::until("the query's end", TIMEOUT, ended).expect("it ends");
    let mut bytes = Vec::new();
    let read = answer.body.read_to_end(&mut bytes);
    assert!(read.is_err(), "{} bytes look whole", bytes.len());
    assert!(bytes.len() < 8000 * 4000, "{} bytes", bytes.len());
}
