//! Clients that send or read too slowly, do nothing, or disconnect in the middle.

use super::{
    assert_left_nothing, assert_serves, connect, figure, rest_of, send, start, write_head,
};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;
use tidepool_tests::http::request_bytes;
use tidepool_tests::remote_write::{Version, compress};
use tidepool_tests::sender::{assert_holds, recent_data, send_all};

#[test]
fn heads_and_bodies_that_come_too_slowly_are_given_up() {
    let store = start(&["--request-timeout=1s"]);
    // Requests before the server was ready have been counted, too.
    let unavailable =
        || figure(&store, "tidepool_http_requests_refused_total{reason=\"unavailable\"}");
    let before = unavailable();
    let slow_head = send(&store, b"GET /-/healthy HTTP/1.1\r\nHost: loc");
    let slow_body = send(&store, &write_head("Content-Length: 100\r\n"));
    let slow_chunks = send(&store, &write_head("Transfer-Encoding: chunked\r\n"));
    let drip = |mut stream: TcpStream, bytes: &'static [u8]| {
        std::thread::spawn(move || {
            // The thread ends when the server has closed.
            while stream.write_all(bytes).is_ok() {
                std::thread::sleep(Duration::from_millis(50));
            }
        })
    };
    let threads = [
        drip(slow_head.try_clone().expect("a socket"), b"a"),
        drip(slow_body.try_clone().expect("a socket"), b"b"),
        drip(slow_chunks.try_clone().expect("a socket"), b"1\r\nc\r\n"),
    ];
    // After a 4xx a sender would drop the samples.
    for (stream, status, text) in [
        (slow_head, 408, "--request-timeout"),
        (slow_body, 503, "--request-timeout"),
        (slow_chunks, 503, "retry-after"),
    ] {
        let answer = rest_of(stream);
        let start = format!("HTTP/1.1 {status}");
        assert!(answer.starts_with(&start) && answer.contains(text), "{answer}");
    }
    for thread in threads {
        thread.join().expect("the client ends");
    }
    assert_left_nothing(&store);
    assert_eq!(figure(&store, "tidepool_http_connections_closed_total{reason=\"slow_head\"}"), 1.0);
    assert_eq!(unavailable() - before, 2.0);
}

/// Senders of other kinds are also asked to retry if their bodies come too slowly: none of them
/// retries after 408.
#[test]
fn slow_bodies_of_all_senders_may_come_again() {
    let store = start(&["--request-timeout=1s"]);
    for (path, kind, wanted) in [
        ("/api/v1/otlp/v1/metrics", "application/x-protobuf", "application/x-protobuf"),
        ("/api/v1/import/prometheus", "text/plain", "text/plain"),
        ("/api/v1/import/prometheus/metrics/job/a", "text/plain", "text/plain"),
    ] {
        for length in ["Content-Length: 100", "Transfer-Encoding: chunked"] {
            let head = format!(
                "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\n{length}\r\n\r\n"
            );
            let answer = rest_of(send(&store, head.as_bytes())).to_lowercase();
            assert!(answer.starts_with("http/1.1 503"), "{path}: {answer}");
            assert!(answer.contains("\r\nretry-after: "), "{path}: {answer}");
            assert!(answer.contains(&format!("content-type: {wanted}")), "{path}: {answer}");
            assert!(answer.contains("--request-timeout"), "{path}: {answer}");
        }
    }
    // A reader gets 408, because no sample could be lost.
    let head = b"POST /api/v1/labels HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\
                 Content-Type: application/x-www-form-urlencoded\r\n\r\n";
    let answer = rest_of(send(&store, head));
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
}

#[test]
fn connections_that_do_nothing_are_closed() {
    let store = start(&["--idle-timeout=1s"]);
    let silent = connect(&store);
    let mut kept = send(&store, b"GET /-/healthy HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let mut answer = [0; 15];
    kept.read_exact(&mut answer).expect("an answer");
    assert_eq!(&answer, b"HTTP/1.1 200 OK");
    assert_eq!(rest_of(silent), "");
    rest_of(kept);
    assert_left_nothing(&store);
    let closed = figure(&store, "tidepool_http_connections_closed_total{reason=\"idle\"}");
    assert!(closed >= 2.0, "{closed}");
}

/// All connections are taken by clients that do (almost) nothing: others are accepted at once.
#[test]
fn those_who_do_nothing_give_their_places_to_others() {
    let store = start(&["--max-connections=8", "--request-timeout=1h", "--idle-timeout=1h"]);
    let mut idle: Vec<TcpStream> = (0..4).map(|_| connect(&store)).collect();
    idle.extend((0..4).map(|_| send(&store, b"POST /api/v1/wri")));
    let data = recent_data(3, 20, 50);
    for _ in 0..20 {
        idle.push(connect(&store));
        // Each request on a connection of its own.
        assert_serves(&store, "place");
    }
    send_all(&store, Version::V2, &data);
    let name = "tidepool_http_connections_closed_total{reason=\"crowded_out\"}";
    drop(idle);
    assert_left_nothing(&store);
    assert!(figure(&store, name) >= 20.0, "{}", figure(&store, name));
}

/// Clients that sent a head and a byte of a body held all connections for `--request-timeout`.
#[test]
fn those_who_send_next_to_nothing_give_their_places_to_others() {
    let store = start(&["--max-connections=8", "--request-timeout=1h", "--idle-timeout=1h"]);
    let head = [&write_head("Content-Length: 1000000\r\n")[..], b"a"].concat();
    let mut slow: Vec<TcpStream> = (0..8).map(|_| send(&store, &head)).collect();
    for _ in 0..8 {
        slow.push(send(&store, &head));
        // Each request on a connection of its own.
        assert_serves(&store, "place");
    }
    let name = "tidepool_http_connections_closed_total{reason=\"slow_body\"}";
    assert!(figure(&store, name) >= 8.0, "{}", figure(&store, name));
    // After a 4xx a sender would drop the samples.
    let answer = rest_of(slow.remove(0));
    assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("retry-after"), "{answer}");
    drop(slow);
    assert_left_nothing(&store);
}

#[test]
fn clients_that_go_away_in_the_middle_leave_nothing() {
    let store = start(&[]);
    let body = compress(&vec![7; 3 << 20]);
    let head = write_head(&format!("Content-Length: {}\r\n", body.len()));
    for cut in [1, head.len() - 1, head.len(), head.len() + 1, head.len() + body.len() - 1] {
        let bytes = &[head.as_slice(), &body].concat()[..cut];
        // Closed at once, with the server's data unread: a reset.
        drop(send(&store, bytes));
        // Half closed: the client sends nothing more, but could read an answer.
        let half = send(&store, bytes);
        half.shutdown(Shutdown::Write).expect("it can be shut");
        let answer = rest_of(half);
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 400"), "{cut}: {answer}");
    }
    assert_left_nothing(&store);
    assert_serves(&store, "up");
}

/// A client that requests a large answer and reads nothing of it.
#[test]
fn clients_that_do_not_read_their_answers_are_cut_off() {
    let store = start(&["--send-timeout=1s", "--read-concurrency=2"]);
    let data = recent_data(5, 2_000, 400);
    send_all(&store, Version::V2, &data);
    let query = tidepool_tests::remote_read::everything(i64::MIN, i64::MAX);
    for accepted in [vec![], vec![1]] {
        let message = tidepool_tests::proto::prometheus::ReadRequest {
            queries: vec![query.clone()],
            accepted_response_types: accepted,
        };
        let body = compress(&prost::Message::encode_to_vec(&message));
        let request = request_bytes("POST", "/api/v1/read", &[], body.len(), &body);
        let deaf: Vec<TcpStream> = (0..6).map(|_| send(&store, &request)).collect();
        assert_left_nothing(&store);
        drop(deaf);
    }
    assert_left_nothing(&store);
    let name = "tidepool_http_connections_closed_total{reason=\"slow_reader\"}";
    assert_eq!(figure(&store, name), 12.0);
    assert_holds(&store, &data);
}
