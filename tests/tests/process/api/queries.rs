//! Queries in PromQL under their limits: turns, timeouts, samples, features, and clients that go away.

use serde_json::{Value, json};
use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};
use tidepool_tests::http::{Client, Response, request_bytes};
use tidepool_tests::process::Server;
use tidepool_tests::prometheus::percent_encode;
use tidepool_tests::remote_write::Version;
use tidepool_tests::series::Series;
use tidepool_tests::tidepool::Store;
use tidepool_tests::wait::{self, now_ms};

const TIMEOUT: Duration = Duration::from_secs(60);

/// Seven billion additions: minutes, were it not ended.
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

/// Asks without waiting for the answer.
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

        drop(first);
        let gone = Instant::now();
        assert_eq!(ask(&store.server, "1 + 1", "&timeout=30s").status, 200);
        let waited = gone.elapsed();
        assert!(waited < Duration::from_secs(1), "{waited:?}");
    }
    let freed = || (store.metric("tidepool_reads_memory_bytes")? == 0.0).then_some(());
    wait::until("the queries' memory", TIMEOUT, freed).expect("given back");
}

#[test]
fn more_than_the_queue_holds_is_refused() {
    let store = start(&["--query-max-concurrency=1", "--query-timeout=1h"]);
    let waiting: Vec<TcpStream> = (0..11).map(|_| ask_silently(&store.server, SLOW)).collect();
    let is_full = || {
        let more = ask(&store.server, "1 + 1", "&timeout=100ms");
        more.text().contains("--query-max-concurrency").then_some(more)
    };
    let refused = wait::until("a queue that is full", TIMEOUT, is_full).expect("it is");
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
    // Without it, the two would have the same labels.
    assert_eq!(result("count(abs({job=\"a\"} offset 30s))")[0]["value"][1], json!("2"));
    assert_refused(&ask("a_total + fill (0) b_total"), 400, "bad_data", "fill");
}
