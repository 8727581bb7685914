//! Long answers, answers before the store is ready, and the forms of answers: in pages, compressed,
//! or without a body.

use serde_json::{Value, json};
use std::io::Read;
use std::time::{Duration, Instant};
use tidepool_tests::clock::now_ms;
use tidepool_tests::http::{Client, exchange, request_bytes, unchunked};
use tidepool_tests::process::Server;
use tidepool_tests::remote_write::Version;
use tidepool_tests::series::Series;
use tidepool_tests::tidepool::Store;

const SERIES: usize = 40_000;
const LABEL_BYTES: usize = 400;
const TIMEOUT: Duration = Duration::from_secs(60);

fn fill(store: &Store) {
    let now_ms = now_ms();
    let writer = store.writer();
    let filler = "x".repeat(LABEL_BYTES);
    for first in (0..SERIES).step_by(4000) {
        let series: Vec<Series> = (first..first + 4000)
            .map(|number| {
                let value = format!("{number:08}-{filler}");
                Series::new(&[("__name__", "long"), ("value", &value)], &[(now_ms, 1.0)])
            })
            .collect();
        let rows: Vec<_> = series.iter().map(Series::row).collect();
        let response = writer.send(Version::V2, &rows).expect("an answer");
        assert_eq!(response.status, 204, "{}", response.text());
    }
}

fn get(server: &Server, path: &str, headers: &[(&str, &str)]) -> tidepool_tests::http::Response {
    let headers: Vec<_> = headers.iter().copied().chain([("Connection", "close")]).collect();
    let bytes = request_bytes("GET", path, &headers, 0, b"");
    exchange(server.address(), bytes, TIMEOUT).expect("an answer")
}

#[test]
fn memory_does_not_grow_with_an_answer() {
    let store = Store::start_with(|config| config.flag("--head-snapshot=false")).expect("a start");
    fill(&store);
    let url = |path: &str| format!("{}/api/v1/{path}", store.server.url());
    // Any lookup takes this memory, however short its answer.
    Client::default().get(&url("series?match[]=long&limit=1")).expect("an answer");
    for (path, count) in [("series?match[]=long", SERIES), ("label/value/values", SERIES)] {
        store.server.reset_peak_memory().expect("the peak can be set back");
        let before = store.server.usage().expect("usage").memory_bytes;
        let response = Client::default().get(&url(path)).expect("an answer");
        let growth = store.server.usage().expect("usage").peak_memory_bytes.saturating_sub(before);
        assert_eq!(response.header("content-length"), None, "{path}");
        let bytes = response.body.len();
        let answer: Value = serde_json::from_slice(&response.body).expect("JSON");
        assert_eq!(answer["data"].as_array().map(Vec::len), Some(count), "{path}");
        assert!(bytes > SERIES * LABEL_BYTES, "{path}: {bytes} bytes");
        assert!(growth < bytes as u64, "{path}: {growth} bytes for an answer of {bytes}");
    }

    // A client that disconnects ends the lookup, and the head closes its cursor.
    drop(Client::default().post_streaming(&url("series"), &[FORM], b"match[]=long"));
    let closed = || (store.metric("tidepool_head_open_cursors") == Some(0.0)).then_some(());
    tidepool_tests::wait::until("the head's cursors", TIMEOUT, closed).expect("they are closed");

    is_answered_once_it_is_ready(store);
}

const FORM: (&str, &str) = ("Content-Type", "application/x-www-form-urlencoded");

/// Asserts that every request is refused until the log is replayed.
fn is_answered_once_it_is_ready(store: Store) {
    let Store { server, config, directory } = store;
    server.kill().expect("it is killed");
    let mut server = config.launch().expect("a launch").spawn().expect("it starts");
    let (mut early, started) = (0, Instant::now());
    loop {
        assert!(started.elapsed() < TIMEOUT, "{}", server.log());
        let Ok(response) = Client::default().get(&format!("{}/api/v1/labels", server.url())) else {
            continue;
        };
        if response.status == 200 {
            break;
        }
        let answer: Value = serde_json::from_slice(&response.body).expect("JSON");
        assert_eq!((response.status, &answer["errorType"]), (503, &json!("unavailable")));
        assert!(response.header("retry-after").is_some());
        let replay = Client::default().get(&format!("{}/api/v1/status/walreplay", server.url()));
        assert_eq!(replay.expect("an answer").status, 200);
        early += 1;
    }
    assert!(early > 0, "the log was replayed before anybody could ask");
    server.wait_ready("/-/ready").expect("it is ready");
    drop((server, directory));
}

#[test]
fn answers_are_compressed_for_those_who_take_it() {
    let store = Store::start().expect("tidepool starts");
    let path = "/api/v1/status/flags";
    let plain = get(&store.server, path, &[]);
    assert_eq!((plain.header("content-encoding"), plain.status), (None, 200));
    for taken in ["gzip", "deflate, gzip;q=0.8"] {
        let packed = get(&store.server, path, &[("Accept-Encoding", taken)]);
        assert_eq!(packed.header("content-encoding"), Some("gzip"));
        // With chunked transfer, sizes are written between the pieces.
        let bytes = unchunked(&packed.body);
        let mut text = Vec::new();
        flate2::read::GzDecoder::new(&bytes[..]).read_to_end(&mut text).expect("gzip");
        assert_eq!(text, plain.body);
    }
    for refused in ["gzip;q=0", "br", "identity"] {
        let answer = get(&store.server, path, &[("Accept-Encoding", refused)]);
        assert_eq!((answer.header("content-encoding"), &answer.body), (None, &plain.body));
    }
    // Short answers are not compressed.
    let short = get(&store.server, "/api/v1/alerts", &[("Accept-Encoding", "gzip")]);
    assert_eq!(short.header("content-encoding"), None);

    let head = request_bytes("HEAD", path, &[("Connection", "close")], 0, b"");
    let head = exchange(store.server.address(), head, TIMEOUT);
    // HEAD returns no body, so the answer ends with the connection.
    let head = head.expect("an answer");
    assert_eq!((head.status, head.body.len()), (200, 0));
    assert_eq!(head.header("content-type"), Some("application/json"));
}
