//! `POST /api/v1/write`: accepted requests, the statuses of refused ones, and the stored result.
//!
//! The rules are those of the remote-write 1.0 and 2.0 specifications; if these leave a choice,
//! tidepool's is described at the test.

mod write;

use std::time::Duration;
use tidepool_tests::clock::now_ms;
use tidepool_tests::http::{self, Client, Response};
use tidepool_tests::remote_write::{self, PATH, Version, Written, compress, encode};
use tidepool_tests::series::Series;
use tidepool_tests::tidepool::Store;

/// Timeout of an answer that must come without the body.
const EARLY: Duration = Duration::from_secs(5);
/// The limit of a body, before and after decompression.
const BODY_BYTES_MAX: usize = 32 << 20;

fn start() -> Store {
    Store::start().expect("tidepool starts")
}

fn up(samples: &[(i64, f64)]) -> Series {
    Series::new(&[("__name__", "up"), ("job", "a")], samples)
}

/// Sends exactly these headers, and only part of the announced body.
fn send_raw(
    store: &Store,
    method: &str,
    headers: &[(&str, &str)],
    announced_bytes: usize,
    body: &[u8],
) -> Response {
    let bytes = http::request_bytes(method, PATH, headers, announced_bytes, body);
    http::exchange(store.server.address(), bytes, EARLY)
        .unwrap_or_else(|e| panic!("no answer to {method} with {headers:?}: {e}"))
}

#[test]
fn other_methods_are_refused() {
    let store = start();
    let url = format!("{}{PATH}", store.server.url());
    assert_eq!(Client::default().get(&url).expect("an answer").status, 405);
    for method in ["PUT", "DELETE", "PATCH"] {
        assert_eq!(send_raw(&store, method, &[], 0, &[]).status, 405, "{method}");
    }
}

/// The compliance tests also send a corrupt body and expect exactly 415.
#[test]
fn foreign_types_and_encodings_are_refused_before_the_body_comes() {
    let store = start();
    let protobuf = Version::V1.content_type();
    for (content_type, encoding) in [
        ("application/json", "snappy"),
        ("text/plain", "snappy"),
        ("application/x-protobuf;proto=io.prometheus.write.v3.Request", "snappy"),
        ("application/x-protobuf;proto=", "snappy"),
        (protobuf, "gzip"),
        (protobuf, "deflate"),
        (protobuf, "zstd"),
        (Version::V2.content_type(), "gzip"),
    ] {
        let headers = [("Content-Type", content_type), ("Content-Encoding", encoding)];
        let response = send_raw(&store, "POST", &headers, 1_000, &[]);
        assert_eq!(response.status, 415, "{headers:?}: {}", response.text());
    }
}

#[test]
fn the_content_type_is_read_as_http_writes_it() {
    let store = start();
    let mut time_ms = now_ms() - 60_000;
    for (version, content_type) in [
        (Version::V1, Some("application/x-protobuf")),
        (Version::V1, Some("application/x-protobuf;proto=prometheus.WriteRequest")),
        (Version::V1, Some("Application/X-Protobuf ; Proto=\"prometheus.WriteRequest\"")),
        (Version::V1, None),
        (Version::V2, Some("application/x-protobuf; proto=io.prometheus.write.v2.Request")),
        (Version::V2, Some("application/x-protobuf;PROTO=\"io.prometheus.write.v2.Request\"")),
        (Version::V2, Some("application/x-protobuf;a=b;proto=io.prometheus.write.v2.Request")),
    ] {
        time_ms += 1;
        let body = encode(version, &[up(&[(time_ms, 1.0)]).row()]);
        let headers: Vec<_> =
            content_type.map(|value| ("Content-Type", value)).into_iter().collect();
        // Without a Content-Encoding, snappy is assumed.
        let response = send_raw(&store, "POST", &headers, body.len(), &body);
        assert_eq!(response.status, 204, "{content_type:?}: {}", response.text());
        let samples = (version == Version::V2).then_some(1);
        assert_eq!(Written::from_response(&response).map(|w| w.samples), samples);
    }
}

/// The `Content-Type` alone determines the schema.
#[test]
fn the_version_header_decides_nothing() {
    let store = start();
    let body = encode(Version::V2, &[up(&[(now_ms(), 1.0)]).row()]);
    let headers = [
        ("Content-Type", Version::V2.content_type()),
        ("Content-Encoding", "snappy"),
        ("X-Prometheus-Remote-Write-Version", "0.1.0"),
    ];
    let response = store.writer().send_with(&headers, &body).expect("an answer");
    assert_eq!(response.status, 204, "{}", response.text());
    assert!(Written::from_response(&response).is_some());
}

#[test]
fn damaged_bodies_are_refused_for_good() {
    let store = start();
    let writer = store.writer();
    for version in Version::ALL {
        let message = remote_write::message_bytes(version, &[up(&[(now_ms(), 1.0)]).row()]);
        let good = compress(&message);
        // The framed format begins with a stream identifier.
        let framed = [b"\xff\x06\x00\x00sNaPpY".as_slice(), &good].concat();
        for (what, body) in [
            ("empty", Vec::new()),
            ("not compressed", message.clone()),
            ("text", b"this is not snappy at all".to_vec()),
            ("truncated", good[..good.len() - 3].to_vec()),
            ("framed", framed),
            ("not protobuf", compress(&[0xff; 40])),
            ("truncated protobuf", compress(&message[..message.len() - 3])),
        ] {
            let response = writer.send_body(version, &body).expect("an answer");
            assert_eq!(response.status, 400, "{version}, {what}: {}", response.text());
            assert!(!response.body.is_empty(), "{version}, {what}: no reason given");
            let written = (version == Version::V2).then_some(Written::default());
            assert_eq!(Written::from_response(&response), written, "{version}, {what}");
        }
    }
}

#[test]
fn bodies_over_the_limit_are_refused_by_their_announced_length() {
    let store = start();
    for version in Version::ALL {
        for announced in [BODY_BYTES_MAX as u64 + 1, u64::from(u32::MAX)] {
            let mut body = Vec::new();
            prost::encoding::encode_varint(announced, &mut body);
            body.extend_from_slice(&[0; 100]);
            let response = store.writer().send_body(version, &body).expect("an answer");
            assert_eq!(response.status, 413, "{announced} bytes: {}", response.text());
        }
    }
    let peak = store.server.usage().expect("tidepool runs").peak_memory_bytes;
    assert!(peak < 512 << 20, "peak memory is {peak} bytes");

    let body = vec![0; BODY_BYTES_MAX + 1];
    let headers = remote_write::headers(Version::V1);
    let response = send_raw(&store, "POST", &headers, body.len(), &body);
    assert_eq!(response.status, 413, "{}", response.text());
}

/// A request just below the limit is accepted.
#[test]
fn a_large_request_is_taken() {
    let store = start();
    let value = "x".repeat(1_000);
    let now_ms = now_ms();
    let series: Vec<Series> = (0..20_000)
        .map(|i| {
            let number = i.to_string();
            let pairs = [("__name__", "large"), ("number", &number), ("text", &value)];
            Series::new(&pairs, &[(now_ms, 1.0)])
        })
        .collect();
    let rows: Vec<_> = series.iter().map(Series::row).collect();
    let body = encode(Version::V1, &rows);
    let response = store.writer().send_body(Version::V1, &body).expect("an answer");
    assert_eq!(response.status, 204, "{}", response.text());
}
