//! Heads and bodies that are not HTTP, too large, or framed in unusual ways.

use super::{TIMEOUT, assert_left_nothing, connect, figure, rest_of, send, start, write_head};
use std::io::{Read, Write};
use std::net::Shutdown;
use tidepool_tests::clock::now_ms;
use tidepool_tests::http::{exchange, request_bytes};
use tidepool_tests::remote_write::{PATH, Version, headers};
use tidepool_tests::series::Series;

#[test]
fn lengths_that_lie_are_believed_only_as_far_as_bytes_come() {
    let store = start(&["--request-timeout=1s"]);
    let series = Series::new(&[("__name__", "up")], &[(now_ms(), 1.0)]);
    let body = tidepool_tests::remote_write::encode(Version::V1, &[series.row()]);
    let with_length = |announced: usize| {
        let bytes = request_bytes("POST", PATH, &headers(Version::V1), announced, &body);
        exchange(store.server.address(), bytes, TIMEOUT).expect("an answer").status
    };
    assert_eq!(with_length(body.len()), 204);
    // Too short: the remaining bytes are not a request.
    assert_eq!(with_length(body.len() - 5), 400);
    assert_eq!(with_length(body.len() + 5), 503);
    assert_eq!(with_length(31 << 20), 503);
    assert_eq!(with_length(33 << 20), 413);
    for lines in [
        "Content-Length: -1\r\n",
        "Content-Length: 99999999999999999999999\r\n",
        "Content-Length: 1\r\nContent-Length: 2\r\n",
        "Transfer-Encoding: chunked, gzip\r\n",
    ] {
        let answer = rest_of(send(&store, &write_head(lines)));
        assert!(answer.starts_with("HTTP/1.1 400"), "{lines}: {answer}");
        assert!(answer.contains("\r\n\r\nthis is no request"), "{lines}: {answer}");
    }
    let broken = [write_head("Transfer-Encoding: chunked\r\n"), b"zz\r\n".to_vec()].concat();
    let answer = rest_of(send(&store, &broken));
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    assert_left_nothing(&store);
}

/// A body without end is cut off at the limit, whatever its chunks.
#[test]
fn chunked_bodies_without_end_are_cut_off() {
    let store = start(&["--max-request-size=2MiB"]);
    let before = store.server.usage().expect("tidepool runs").peak_memory_bytes;
    for chunk in [b"1\r\nx\r\n".as_slice(), &[b"10000\r\n", &[b'x'; 65536][..], b"\r\n"].concat()] {
        let mut stream = send(&store, &write_head("Transfer-Encoding: chunked\r\n"));
        let piece = chunk.repeat((1 << 20) / chunk.len());
        let mut reader = stream.try_clone().expect("a socket");
        let writer = std::thread::spawn(move || while stream.write_all(&piece).is_ok() {});
        let mut answer = [0; 12];
        reader.read_exact(&mut answer).expect("an answer");
        assert_eq!(&answer, b"HTTP/1.1 413");
        drop(reader);
        writer.join().expect("the client ends");
    }
    let peak = store.server.usage().expect("tidepool runs").peak_memory_bytes;
    // The kernel counts by processor: its value may be slightly less than before.
    assert!(peak.saturating_sub(before) < 12 << 20, "{before} bytes before, {peak} after");
    assert_left_nothing(&store);
}

#[test]
fn heads_that_are_too_large_or_no_http_are_refused() {
    let store = start(&[]);
    let get = "GET /-/healthy HTTP/1.1\r\nHost: localhost\r\n";
    let many: String = (0..200).map(|i| format!("X-{i}: y\r\n")).collect();
    for (head, status) in [
        (format!("{get}X: {}\r\n\r\n", "y".repeat(40_000)), "431"),
        (format!("{get}X: {}", "y".repeat(200_000)), "431"),
        (format!("{get}{many}\r\n"), "431"),
        (format!("GET /{} HTTP/1.1\r\n\r\n", "y".repeat(100_000)), "4"),
        ("\x16\x03\x01\x02\x00\x01\x00\x01\x7c\x03\x03".to_owned(), "400"),
        ("no http at all\r\n\r\n".to_owned(), "400"),
    ] {
        let mut stream = connect(&store);
        // The server may answer, and close, before it has read everything.
        let _ = stream.write_all(head.as_bytes());
        let _ = stream.shutdown(Shutdown::Write);
        let answer = rest_of(stream);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{status}: {answer}");
        // The answer gives the reason.
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
        let length = format!("content-length: {}", body.len());
        assert!(!body.is_empty() && head.contains(&length), "{answer}");
        let explains =
            status != "431" || (body.contains("32768 bytes") && body.contains("100 fields"));
        assert!(explains, "{answer}");
    }
    // A closed connection is counted after its client has seen its end.
    assert_left_nothing(&store);
    let name = "tidepool_http_connections_closed_total{reason=\"malformed\"}";
    assert!(figure(&store, name) >= 6.0, "{}", figure(&store, name));
}

/// Queries in the form of Prometheus' documentation, which `curl -g` sends: with characters that a
/// URI must not have. On kept-alive connections, between bodies of both kinds that look like
/// requests, in pieces and all at once.
#[test]
fn targets_that_nobody_encoded_are_understood() {
    let store = start(&[]);
    let series = Series::new(&[("__name__", "up"), ("job", "x")], &[(now_ms(), 1.0)]);
    let response = store.writer().send(Version::V2, &[series.row()]).expect("an answer");
    assert_eq!(response.status, 204);
    let ask = "GET /api/v1/series?match[]=up{job=\"x\"} HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let none = ask.replace('x', "y|^`<>\\\\#");
    // Text that is not a parameter is ignored, and a body may look like anything.
    let text = ask;
    let post = "POST /api/v1/series?match[]={job=\"x\"} HTTP/1.1\r\nHost: localhost\r\n\
                Content-Type: application/x-www-form-urlencoded\r\n";
    let whole = format!("{post}Content-Length: {}\r\n\r\n{text}", text.len());
    let (one, other) = text.split_at(40);
    let chunks = format!(
        "{post}Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{one}\r\n{:x}\r\n{other}\r\n0\r\n\r\n",
        one.len(),
        other.len()
    );
    let last = "GET /api/v1/label/job/values?match[]={job!=\"\"} HTTP/1.1\r\nHost: localhost\r\n\
                Connection: close\r\n\r\n";
    let requests = [ask, &whole, ask, &none, &chunks, &none, &whole, &chunks, ask, last].concat();
    for piece in [1, 7, 100, requests.len()] {
        let mut stream = connect(&store);
        stream.set_nodelay(true).expect("an option");
        for piece in requests.as_bytes().chunks(piece) {
            stream.write_all(piece).expect("the server takes it");
        }
        let answers = rest_of(stream);
        assert_eq!(answers.matches("HTTP/1.1 200 OK").count(), 10, "{piece}: {answers}");
        assert_eq!(answers.matches(r#"{"__name__":"up","job":"x"}"#).count(), 7, "{answers}");
        assert!(answers.contains(r#"{"status":"success","data":["x"]}"#), "{answers}");
    }
    assert_left_nothing(&store);
}

#[test]
fn pipelined_requests_are_answered_in_turn() {
    let store = start(&[]);
    let get = b"GET /-/healthy HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(500);
    let last = b"GET /-/ready HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let mut stream = connect(&store);
    let mut writer = stream.try_clone().expect("a socket");
    let requests = [get.as_slice(), last].concat();
    let writing = std::thread::spawn(move || writer.write_all(&requests));
    let mut answers = String::new();
    stream.read_to_string(&mut answers).expect("answers");
    assert_eq!(answers.matches("HTTP/1.1 200 OK").count(), 501);
    writing.join().expect("the client ends").expect("all is taken");
}

/// A sender that is refused before its body is read gets the reason, though it is still sending.
#[test]
fn a_refusal_reaches_a_sender_that_is_still_sending() {
    let store = start(&[]);
    let body = vec![7; 20 << 20];
    for _ in 0..5 {
        let headers = [("Content-Type", "text/plain")];
        let request = request_bytes("POST", PATH, &headers, body.len(), &body);
        let mut stream = send(&store, &request);
        stream.shutdown(Shutdown::Write).expect("it can be shut");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 415"), "{answer}");
    }
}
