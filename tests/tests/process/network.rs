//! Clients that are slow, broken or hostile, over raw sockets: each gets the right answer or none,
//! loses its place in time, and leaves nothing behind. Honest clients are served meanwhile.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;
use tidepool_tests::http::{Client, exchange, request_bytes};
use tidepool_tests::remote_write::{PATH, Version, compress, headers};
use tidepool_tests::sender::{assert_holds, recent_data, send_all};
use tidepool_tests::series::Series;
use tidepool_tests::tidepool::{Config, Store};
use tidepool_tests::wait::{self, now_ms};

/// Nothing here takes longer, or it takes for ever.
const TIMEOUT: Duration = Duration::from_secs(30);

/// `--max-inflight-bytes` by default.
const IN_FLIGHT_BYTES_MAX: u64 = 64 << 20;
/// The allocators' share of what is taken and given back.
const NOISE_BYTES: u64 = 16 << 20;

fn start(flags: &[&str]) -> Store {
    let with = |config: Config| flags.iter().fold(config, |config, flag| config.flag(flag));
    Store::start_with(with).expect("tidepool starts")
}

fn connect(store: &Store) -> TcpStream {
    let stream = TcpStream::connect(store.server.address()).expect("a connection");
    stream.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
    stream.set_write_timeout(Some(TIMEOUT)).expect("a timeout");
    stream
}

fn send(store: &Store, bytes: &[u8]) -> TcpStream {
    let mut stream = connect(store);
    stream.write_all(bytes).expect("the server takes it");
    stream
}

/// All that comes until the server closes; a reset is an end too.
fn rest_of(mut stream: TcpStream) -> String {
    let mut bytes = Vec::new();
    match stream.read_to_end(&mut bytes) {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
        Err(error) => panic!("the server does not close: {error}"),
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The head of a write request, with these lines.
fn write_head(lines: &str) -> Vec<u8> {
    format!(
        "POST {PATH} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-protobuf\r\n\
         Content-Encoding: snappy\r\n{lines}\r\n"
    )
    .into_bytes()
}

/// A counter or gauge of `/metrics` with its labels.
fn figure(store: &Store, series: &str) -> f64 {
    store.metric(series).unwrap_or_else(|| panic!("{series} is missing"))
}

fn assert_serves(store: &Store, name: &str) {
    let series = Series::new(&[("__name__", name)], &[(now_ms(), 1.0)]);
    let response = store.writer().send(Version::V2, &[series.row()]).expect("an answer");
    assert_eq!(response.status, 204, "{}", response.text());
}

/// No connection but the one that asks, and no room taken.
#[track_caller]
fn assert_left_nothing(store: &Store) {
    let gone = || {
        let open = figure(store, "tidepool_http_connections");
        (open <= 1.0 && figure(store, "tidepool_http_inflight_bytes") == 0.0).then_some(())
    };
    wait::until("connections and room to be given back", TIMEOUT, gone)
        .unwrap_or_else(|e| panic!("{e}\n{}", store.server.log()));
}

#[test]
fn heads_and_bodies_that_come_too_slowly_are_given_up() {
    let store = start(&["--request-timeout=1s"]);
    // Whoever asked before it was ready has been counted, too.
    let unavailable =
        || figure(&store, "tidepool_http_requests_refused_total{reason=\"unavailable\"}");
    let before = unavailable();
    let slow_head = send(&store, b"GET /-/healthy HTTP/1.1\r\nHost: loc");
    let slow_body = send(&store, &write_head("Content-Length: 100\r\n"));
    let slow_chunks = send(&store, &write_head("Transfer-Encoding: chunked\r\n"));
    let drip = |mut stream: TcpStream, bytes: &'static [u8]| {
        std::thread::spawn(move || {
            // Ends when the server has closed.
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
    // What a sender is told 4xx of, it would throw away.
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

/// Senders of other kinds are told to come again, too, when their bodies come too slowly: none of them
/// tries 408 again.
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
    // A reader is told that it was too slow: it has nothing that could be lost.
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
    let closed = figure(&store, "tidepool_http_connections_closed_total{reason=\"idle\"}");
    assert!(closed >= 2.0, "{closed}");
}

/// All places are taken by clients that do nothing, or next to nothing: honest ones get in at once.
#[test]
fn those_who_do_nothing_give_their_places_to_others() {
    let store = start(&["--max-connections=8", "--request-timeout=1h", "--idle-timeout=1h"]);
    let mut idle: Vec<TcpStream> = (0..4).map(|_| connect(&store)).collect();
    idle.extend((0..4).map(|_| send(&store, b"POST /api/v1/wri")));
    let data = recent_data(3, 20, 50);
    for _ in 0..20 {
        idle.push(connect(&store));
        // Each on a connection of its own.
        assert_serves(&store, "place");
    }
    send_all(&store, Version::V2, &data);
    let name = "tidepool_http_connections_closed_total{reason=\"crowded_out\"}";
    assert!(figure(&store, name) >= 20.0, "{}", figure(&store, name));
    drop(idle);
    assert_left_nothing(&store);
}

#[test]
fn clients_that_go_away_in_the_middle_leave_nothing() {
    let store = start(&[]);
    let body = compress(&vec![7; 3 << 20]);
    let head = write_head(&format!("Content-Length: {}\r\n", body.len()));
    for cut in [1, head.len() - 1, head.len(), head.len() + 1, head.len() + body.len() - 1] {
        let bytes = &[head.as_slice(), &body].concat()[..cut];
        // Gone at once, with what the server sends unread: a reset.
        drop(send(&store, bytes));
        // Half closed: nothing more will come, but an answer could go.
        let half = send(&store, bytes);
        half.shutdown(Shutdown::Write).expect("it can be shut");
        let answer = rest_of(half);
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 400"), "{cut}: {answer}");
    }
    assert_left_nothing(&store);
    assert_serves(&store, "up");
}

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
    // Too short: what is left over is no request.
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

/// A body without end is cut off at the limit, whatever it is cut into.
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
    assert!(peak - before < 12 << 20, "{before} bytes before, {peak} after");
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
        // The server may answer, and close, before it has taken all.
        let _ = stream.write_all(head.as_bytes());
        let _ = stream.shutdown(Shutdown::Write);
        let answer = rest_of(stream);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{status}: {answer}");
        // It says why.
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
        let length = format!("content-length: {}", body.len());
        assert!(!body.is_empty() && head.contains(&length), "{answer}");
        let explains =
            status != "431" || (body.contains("32768 bytes") && body.contains("100 fields"));
        assert!(explains, "{answer}");
    }
    let name = "tidepool_http_connections_closed_total{reason=\"malformed\"}";
    assert!(figure(&store, name) >= 6.0, "{}", figure(&store, name));
    assert_left_nothing(&store);
}

/// As Prometheus' documentation writes them, and `curl -g` sends them: with characters that no URI
/// may have. On connections that are kept, between bodies of both kinds that look like requests, in
/// pieces and all at once.
#[test]
fn targets_that_nobody_encoded_are_understood() {
    let store = start(&[]);
    let series = Series::new(&[("__name__", "up"), ("job", "x")], &[(now_ms(), 1.0)]);
    let response = store.writer().send(Version::V2, &[series.row()]).expect("an answer");
    assert_eq!(response.status, 204);
    let ask = "GET /api/v1/series?match[]=up{job=\"x\"} HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let none = ask.replace('x', "y|^`<>\\\\#");
    // What is no parameter is none, and a body may look like anything.
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

/// A frame of HTTP/2 (RFC 9113 section 4.1).
fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let len = u8::try_from(payload.len()).expect("a short frame");
    [&[0, 0, len, kind, flags, 0, 0, 0, stream], payload].concat()
}

/// A client that goes after the preface alone is answered with the server's own, which is a frame
/// of settings (RFC 9113 section 3.4), and its place is given back.
#[test]
fn a_preface_of_http2_alone_is_answered_in_http2() {
    let store = start(&[]);
    let mut stream = send(&store, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    let mut head = [0; 9];
    stream.read_exact(&mut head).expect("a frame");
    let (kind, flags, number) = (head[3], head[4], &head[5..]);
    assert_eq!((kind, flags, number), (4, 0, &[0; 4][..]), "{head:?}");
    drop(stream);
    assert_left_nothing(&store);
}

/// In HTTP/2 a client can take nothing of its answers and everything else: it grants them no window.
/// Such clients lose their places in time, too.
#[test]
fn answers_that_nobody_takes_over_http2_are_given_up() {
    let store = start(&["--max-connections=4", "--send-timeout=1s"]);
    let no_window = frame(4, 0, 0, &[0, 4, 0, 0, 0, 0]);
    // Indexed and literal fields: GET, http, and a path (RFC 7541 section 6).
    let path = b"/metrics";
    let fields = [&[0x82, 0x86, 0x04, path.len() as u8], path.as_slice()].concat();
    let asks = [frame(1, 5, 1, &fields), frame(1, 5, 3, &fields)].concat();
    let acknowledged = frame(4, 1, 0, b"");
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".as_slice();
    let bytes = [preface, &no_window, &acknowledged, &asks].concat();
    let ping = frame(6, 0, 0, b"12345678");
    let clients: Vec<_> = (0..4)
        .map(|_| {
            let stream = send(&store, &bytes);
            let (mut writer, ping) = (stream.try_clone().expect("a socket"), ping.clone());
            // It is alive, and ends when the server has closed.
            let pings = std::thread::spawn(move || {
                while writer.write_all(&ping).is_ok() {
                    std::thread::sleep(Duration::from_millis(50));
                }
            });
            (stream, pings)
        })
        .collect();
    for (stream, pings) in clients {
        rest_of(stream);
        pings.join().expect("the client ends");
    }
    assert_serves(&store, "up");
    let name = "tidepool_http_connections_closed_total{reason=\"slow_reader\"}";
    assert_eq!(figure(&store, name), 4.0);
    assert_left_nothing(&store);
}

/// Snappy says how long a body will be. What it cannot be is not believed, what it may be is
/// bounded.
#[test]
fn decompression_bombs_take_no_memory() {
    let store = start(&[]);
    let usage = || store.server.usage().expect("tidepool runs");
    let before = usage().peak_memory_bytes;
    let resident_before = usage().memory_bytes;
    // 30 MiB, it says; none of the bytes that follow can be that many.
    let mut claim = Vec::new();
    prost::encoding::encode_varint(30 << 20, &mut claim);
    claim.extend_from_slice(&[0; 1000]);
    for _ in 0..100 {
        let response = store.writer().send_body(Version::V1, &claim).expect("an answer");
        assert_eq!(response.status, 400, "{}", response.text());
        assert!(response.text().contains("cannot have 31457280 bytes"), "{}", response.text());
    }
    let after = usage().peak_memory_bytes;
    assert!(after - before < 8 << 20, "{before} bytes before, {after} after");

    // As much as the format can give, eight at a time.
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
    // The bodies in flight have a bound (64 MiB by default), whatever they are made from.
    let most = IN_FLIGHT_BYTES_MAX + head_bytes + NOISE_BYTES;
    assert!(first - before < most, "{before} before, {first} after, the head {head_bytes}");
    assert!(again - first < NOISE_BYTES, "{first} after the first, {again} after the same again");
    assert_left_nothing(&store);
    // What they took goes back to the system, but for what the sandbox of the head has grown to.
    let head_bytes = figure(&store, "tidepool_head_memory_bytes") as u64;
    let kept = usage().memory_bytes.saturating_sub(resident_before + head_bytes);
    assert!(kept < 24 << 20, "{resident_before} before, {kept} more after");
}

/// Bodies that stay half sent take all the room there is: others are told to come back, and find
/// room again once the slow ones' time is over.
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

/// Asks for a large answer and takes nothing of it.
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
    let name = "tidepool_http_connections_closed_total{reason=\"slow_reader\"}";
    assert_eq!(figure(&store, name), 12.0);
    assert_holds(&store, &data);
}

/// Refused before its body is read, the sender still hears why, though it is busy sending.
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

/// Large requests of nothing, and of too much of one kind.
#[test]
fn hostile_messages_leave_the_head_as_it_was() {
    let store = start(&[]);
    assert_serves(&store, "up");
    let head_bytes = || figure(&store, "tidepool_head_memory_bytes");
    let before = head_bytes();
    let field = |tag: u8, content: &[u8]| {
        let mut bytes = vec![tag];
        prost::encoding::encode_varint(content.len() as u64, &mut bytes);
        bytes.extend_from_slice(content);
        bytes
    };
    let body_bytes = 30 << 20;
    let mib_30 = |part: &[u8]| part.repeat(body_bytes / part.len());
    let nested = (0..2_000).fold(vec![], |inner, _| field(0x3a, &inner));
    for (what, version, message, status) in [
        ("empty series", Version::V1, mib_30(&[0x0a, 0]), 400),
        ("empty series", Version::V2, mib_30(&[0x2a, 0]), 400),
        ("empty labels", Version::V1, field(0x0a, &mib_30(&[0x0a, 0])), 400),
        ("empty samples", Version::V2, field(0x2a, &mib_30(&[0x12, 0])), 400),
        ("empty histograms", Version::V2, field(0x2a, &mib_30(&[0x1a, 0])), 400),
        ("empty symbols", Version::V2, mib_30(&[0x22, 0]), 400),
        ("no symbols", Version::V2, field(0x2a, &[0x0a, 2, 1, 2]), 400),
        ("unknown fields, nested", Version::V1, nested.repeat(4), 204),
    ] {
        let body = compress(&message);
        let response = store.writer().send_body(version, &body).expect("an answer");
        assert_eq!(response.status, status, "{what}: {}", response.text());
        assert!(response.body.len() < 16 << 10, "{what}: {} bytes", response.body.len());
        // The instance keeps the room of the largest body, and of what one may be decoded into: at
        // most 256 MiB, and a quarter of the head's memory.
        let grown = (head_bytes() - before) as usize;
        let most = match what {
            "empty series" => body_bytes + (2 << 20),
            _ => body_bytes + (258 << 20),
        };
        assert!(grown <= most, "{what}: the head grew by {grown} bytes");
    }
    assert_eq!(figure(&store, "prometheus_tsdb_head_series"), 1.0);
    let crashes = figure(&store, "tidepool_instance_crashes_total{role=\"head\"}");
    assert_eq!(crashes, 0.0, "{}", store.server.log());
    let first = head_bytes();
    for _ in 0..3 {
        let body = compress(&mib_30(&[0x22, 0]));
        let response = store.writer().send_body(Version::V2, &body).expect("an answer");
        assert_eq!(response.status, 400);
    }
    assert_eq!(head_bytes(), first, "the same again takes nothing more");
    assert_serves(&store, "up");
}

#[test]
fn label_limits_are_flags() {
    let flags = ["--max-label-names-per-series=3", "--max-label-value-length=20"];
    let store = start(&flags);
    let long = "v".repeat(21);
    let time_ms = now_ms();
    let bad = Series::new(&[("__name__", "long"), ("a", &long)], &[(time_ms, 1.0)]);
    let many = [("__name__", "many"), ("a", "1"), ("b", "2"), ("c", "3")];
    let many = Series::new(&many, &[(time_ms, 1.0)]);
    let good = Series::new(&[("__name__", "good"), ("a", "1"), ("b", "2")], &[(time_ms, 1.0)]);
    for version in Version::ALL {
        let rows = [bad.row(), good.row(), many.row()];
        let response = store.writer().send(version, &rows).expect("an answer");
        assert_eq!(response.status, 400);
        let text = response.text();
        assert!(text.contains("value of label \"a\" has 21 bytes; at most 20"), "{text}");
        assert!(text.contains("the label set has 4 labels; at most 3"), "{text}");
    }
    assert_eq!(figure(&store, "prometheus_tsdb_head_series"), 1.0);
}

#[test]
fn limits_that_contradict_each_other_end_the_start() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let config = Config::new(directory.path()).flag("--max-inflight-bytes=10MiB");
    let config = config.flag("--max-request-size=6MiB");
    let error = config.start().expect_err("it cannot work").to_string();
    assert!(error.contains("--max-request-size"), "{error}");
}

/// The page of figures itself is no burden, and answers under load.
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
