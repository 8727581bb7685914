//! Bounds for the memory of all requests together.

use super::{
    TIMEOUT, assert_left_nothing, assert_serves, figure, rest_of, send, start, write_head,
};
use std::net::TcpStream;
use tidepool_tests::clock::now_ms;
use tidepool_tests::http::Client;
use tidepool_tests::remote_write::{Version, compress};
use tidepool_tests::series::Series;
use tidepool_tests::wait;

/// The default of the flag `--max-inflight-bytes`.
const IN_FLIGHT_BYTES_MAX: u64 = 64 << 20;
/// The allocators' share of memory that was allocated and freed.
const NOISE_BYTES: u64 = 16 << 20;

/// Snappy announces a body's length. An impossible length is refused, a possible one is bounded.
#[test]
fn decompression_bombs_take_no_memory() {
    let store = start(&[]);
    let usage = || store.server.usage().expect("tidepool runs");
    let before = usage().peak_memory_bytes;
    let resident_before = usage().memory_bytes;
    // It announces 30 MiB, which the following bytes cannot decode to.
    let mut claim = Vec::new();
    prost::encoding::encode_varint(30 << 20, &mut claim);
    claim.extend_from_slice(&[0; 1000]);
    for _ in 0..100 {
        let response = store.writer().send_body(Version::V1, &claim).expect("an answer");
        assert_eq!(response.status, 400, "{}", response.text());
        assert!(response.text().contains("cannot have 31457280 bytes"), "{}", response.text());
    }
    let after = usage().peak_memory_bytes;
    // The kernel counts by processor: its value may be slightly less than before.
    assert!(after.saturating_sub(before) < 8 << 20, "{before} bytes before, {after} after");

    // The largest expansion that the format allows, eight requests at a time.
    let zeros = compress(&vec![0; 31 << 20]);
    let send_bombs = || {
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..8 {
                        let response = store.writer().send_body(Version::V1, &zeros);
                        let response = response.expect("an answer");
                        assert!([400, 503].contains(&response.status), "{}", response.text());
                    }
                });
            }
        });
        usage().peak_memory_bytes
    };
    let first = send_bombs();
    let head_bytes = figure(&store, "tidepool_head_memory_bytes") as u64;
    let again = send_bombs();
    // The bodies in flight have a bound (64 MiB by default), whatever their compressed size.
    let most = IN_FLIGHT_BYTES_MAX + head_bytes + NOISE_BYTES;
    assert!(
        first.saturating_sub(before) < most,
        "{before} before, {first} after, the head {head_bytes}"
    );
    assert!(
        again.saturating_sub(first) < NOISE_BYTES,
        "{first} after the first, {again} after the same again"
    );
    assert_left_nothing(&store);
    // Their memory returns to the system, except for the growth of the head's sandbox.
    let head_bytes = figure(&store, "tidepool_head_memory_bytes") as u64;
    let kept = usage().memory_bytes.saturating_sub(resident_before + head_bytes);
    assert!(kept < 24 << 20, "{resident_before} before, {kept} more after");
}

/// Half-sent bodies take all the memory for requests: others are asked to retry, and are accepted
/// again once the slow ones have timed out.
#[test]
fn slow_bodies_hold_bounded_room_for_a_bounded_time() {
    let flags = ["--max-request-size=1MiB", "--max-inflight-bytes=2MiB", "--request-timeout=7s"];
    let store = start(&flags);
    let before = store.server.usage().expect("tidepool runs").memory_bytes;
    let head = write_head("Content-Length: 1000000\r\n");
    let slow: Vec<TcpStream> =
        (0..40).map(|_| send(&store, &[head.as_slice(), &[7; 200_000]].concat())).collect();
    let is_full = || (figure(&store, "tidepool_http_inflight_bytes") >= 800e3).then_some(());
    wait::until("the room to be taken", TIMEOUT, is_full).expect("it is taken");
    let series = Series::new(&[("__name__", "up")], &[(now_ms(), 1.0)]);
    let response = store.writer().send(Version::V2, &[series.row()]).expect("an answer");
    if response.status == 503 {
        assert!(response.header("retry-after").is_some(), "{:?}", response.headers);
        assert!(response.text().contains("--max-inflight-bytes"), "{}", response.text());
    } else {
        assert_eq!(response.status, 204, "{}", response.text());
    }
    let held = store.server.usage().expect("tidepool runs").memory_bytes;
    assert!(held.saturating_sub(before) < 24 << 20, "{before} bytes before, {held} now");
    let answers: Vec<String> = slow.into_iter().map(rest_of).collect();
    for reason in ["--request-timeout", "--max-inflight-bytes"] {
        let told = |answer: &&String| answer.starts_with("HTTP/1.1 503") && answer.contains(reason);
        assert!(answers.iter().any(|answer| told(&answer)), "{reason}: {answers:#?}");
    }
    assert_left_nothing(&store);
    assert_serves(&store, "up");
}

/// The metrics page itself takes little, and answers under load.
#[test]
fn figures_are_served_to_many() {
    let store = start(&["--max-connections=4"]);
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                let url = format!("{}/metrics", store.server.url());
                for _ in 0..10 {
                    let page = Client::default().get(&url).expect("an answer");
                    assert!(page.text().contains("tidepool_http_connections "), "{}", page.status);
                }
            });
        }
    });
}
