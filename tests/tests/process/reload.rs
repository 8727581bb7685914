//! Flags that a reload changes take effect. Those of retention, credentials and forwarding are
//! tested with their features; settings that a start would refuse, in `configuration.rs`.

use super::configuration::{reload, start};
use std::fs;
use std::io::Read as _;
use std::net::TcpStream;
use std::time::Duration;
use tidepool_tests::clock::now_ms;
use tidepool_tests::http::{Response, exchange, request_bytes};
use tidepool_tests::prometheus::percent_encode;
use tidepool_tests::proto::prometheus::read_request::ResponseType;
use tidepool_tests::remote_read::{everything, request};
use tidepool_tests::remote_write::{PATH, Version};
use tidepool_tests::sender::recent_data;
use tidepool_tests::tidepool::Store;
use tidepool_tests::wait;

const TIMEOUT: Duration = Duration::from_secs(30);

/// Sends one request on a connection of its own, announcing this number of bytes of a body.
fn ask(
    store: &Store,
    method: &str,
    path: &str,
    fields: &[(&str, &str)],
    body_bytes: usize,
) -> Response {
    let bytes = request_bytes(method, path, fields, body_bytes, &vec![0; body_bytes]);
    exchange(store.server.address(), bytes, TIMEOUT).expect("an answer")
}

/// Returns whether a read of everything as samples is refused because of this flag.
fn is_read_refused(store: &Store, flag: &str) -> bool {
    let all = everything(i64::MIN / 2, i64::MAX / 2);
    let answer = store.reader().post(&request(&[all], ResponseType::Samples));
    let answer = answer.expect("an answer");
    answer.status == 400 && answer.text().contains(flag)
}

fn frames(store: &Store) -> u64 {
    let all = everything(i64::MIN / 2, i64::MAX / 2);
    store.reader().visit_parts(&[all], |_| Ok(())).expect("an answer").frames
}

/// Returns what the server sends to a client that is silent after these bytes, until it closes.
fn said_to_the_silent(store: &Store, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(store.server.address()).expect("a connection");
    stream.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
    std::io::Write::write_all(&mut stream, bytes).expect("it is sent");
    let mut said = String::new();
    stream.read_to_string(&mut said).expect("the server closes");
    said
}

/// Requests more than the sockets' buffers hold: each series 10,001 times.
fn ask_and_do_not_read(store: &Store) -> TcpStream {
    let (start, expression) =
        (now_ms() / 1000, percent_encode("last_over_time({instance=~\".+\"}[1d])"));
    let range = format!("start={start}&end={}&step=1", start + 10_000);
    let path = format!("/api/v1/query_range?query={expression}&{range}");
    let mut stream = TcpStream::connect(store.server.address()).expect("a connection");
    let request = request_bytes("GET", &path, &[], 0, &[]);
    std::io::Write::write_all(&mut stream, &request).expect("it is sent");
    stream
}

fn has_label(store: &Store, name: &str, value: &str) -> bool {
    let read = store.reader().streamed(&[everything(i64::MIN / 2, i64::MAX / 2)]);
    let read = read.expect("an answer");
    !read[0].is_empty() && read[0].iter().all(|series| series.labels.value(name) == value)
}

fn query(store: &Store, expression: &str) -> Response {
    // The answer is streamed: it ends with the connection.
    let close = [("Connection", "close")];
    ask(store, "GET", &format!("/api/v1/query?query={}", percent_encode(expression)), &close, 0)
}

fn allows_origin(store: &Store, origin: &str) -> bool {
    let answer = ask(store, "GET", "/api/v1/labels", &[("Origin", origin)], 0);
    answer.header("access-control-allow-origin").is_some()
}

type Check = fn(&Store) -> bool;

#[test]
fn every_flag_holds_once_it_is_loaded_again() {
    let directory = tempfile::tempdir().expect("a directory");
    let (store, path) = start(directory.path(), "enable-lifecycle: true\n", &[]);
    let data = recent_data(302, 40, 600);
    for rows in data.requests(2_000) {
        assert_eq!(store.writer().send(Version::V2, &rows).expect("an answer").status, 204);
    }
    // Each condition holds after the reload, and not before.
    let flags: [(&str, Check); 13] = [
        ("external-label: [region=north]", |store| has_label(store, "region", "north")),
        ("cors-origin: 'https://a\\.example'", |store| {
            allows_origin(store, "https://a.example") && !allows_origin(store, "https://b.example")
        }),
        ("allowed-host: [node.example]", |store| {
            let bytes = b"GET /metrics HTTP/1.1\r\nHost: node.example\r\nConnection: close\r\n\r\n";
            let answer = exchange(store.server.address(), bytes.to_vec(), TIMEOUT);
            answer.expect("an answer").status == 200
        }),
        ("max-request-size: 64KiB", |store| ask(store, "POST", PATH, &[], 65_537).status == 413),
        ("read-sample-limit: 7", |store| is_read_refused(store, "7")),
        ("read-response-limit: 1KiB", |store| is_read_refused(store, "--read-response-limit")),
        ("read-max-bytes-in-frame: 1KiB", |store| frames(store) > 60),
        ("query-max-samples: 7", |store| {
            query(store, "{job=~\".*\",instance=~\".+\"}[1h]").status == 422
        }),
        // Some ten million additions.
        ("query-timeout: 1ms", |store| {
            let slow = "sum_over_time(sum_over_time(vector(1)[1h:1s])[1h:1s])";
            query(store, slow).status == 503
        }),
        // More than a million samples.
        ("read-timeout: 1ms", |store| {
            let all = vec![everything(i64::MIN / 2, i64::MAX / 2); 50];
            let answer = store.reader().post(&request(&all, ResponseType::Samples));
            let answer = answer.expect("an answer");
            answer.status == 503 && answer.text().contains("--read-timeout")
        }),
        ("query-lookback-delta: 1ms", |store| {
            query(store, "{instance=~\".+\"}").text().contains("\"result\":[]")
        }),
        ("enable-feature: [promql-experimental-functions]", |store| {
            query(store, "mad_over_time(up[5m])").status == 200
        }),
        ("disk-reserve: 1EB", |store| {
            let one = recent_data(303, 1, 1);
            let row: Vec<_> = one.scrapes().flatten().collect();
            store.writer().send(Version::V2, &row).expect("an answer").status == 503
        }),
    ];
    for (line, holds) in flags {
        assert!(!holds(&store), "{line}: before");
        fs::write(&path, format!("enable-lifecycle: true\n{line}\n")).expect("a file");
        assert_eq!(reload(&store), (200, String::new()), "{line}");
        assert!(holds(&store), "{line}: after\n{}", store.server.log());
    }
    let wait_for_log = |what: &str| {
        wait::until(what, TIMEOUT, || store.server.log().contains(what).then_some(()))
            .unwrap_or_else(|error| panic!("{error}"));
    };
    // Requests and queries are logged once their answers are sent.
    assert!(!store.server.log().contains("access_log"));
    fs::write(&path, "enable-lifecycle: true\naccess-log: true\n").expect("a file");
    assert_eq!(reload(&store), (200, String::new()));
    ask(&store, "GET", "/-/healthy", &[], 0);
    wait_for_log("path=\"/-/healthy\"");
    assert!(!store.server.log().contains("slow query"));
    fs::write(&path, "enable-lifecycle: true\nquery-log-min-duration: 1ms\n").expect("a file");
    assert_eq!(reload(&store), (200, String::new()));
    query(&store, "sum_over_time(sum_over_time(vector(1)[20m:1s])[20m:1s])");
    wait_for_log("slow query");
    // Clients that do nothing are closed long before the defaults of a minute and more.
    let timeouts =
        "enable-lifecycle: true\nrequest-timeout: 1s\nidle-timeout: 1s\nsend-timeout: 1s\n";
    fs::write(&path, timeouts).expect("a file");
    assert_eq!(reload(&store), (200, String::new()));
    let half = said_to_the_silent(&store, b"GET /-/healthy HTTP/1.1\r\nHost: loc");
    assert!(half.starts_with("HTTP/1.1 408") && half.contains("--request-timeout"), "{half}");
    let whole = said_to_the_silent(&store, b"GET /-/healthy HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(whole.starts_with("HTTP/1.1 200"), "{whole}");
    let closed = "tidepool_http_connections_closed_total{reason=\"slow_reader\"}";
    assert_eq!(store.metric(closed), Some(0.0));
    let deaf = ask_and_do_not_read(&store);
    wait::until("the slow reader to be cut off", TIMEOUT, || {
        (store.metric(closed) == Some(1.0)).then_some(())
    })
    .unwrap_or_else(|error| panic!("{error}"));
    drop(deaf);
}
