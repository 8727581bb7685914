//! Checks whether a request is remote write: method, type, encoding, size, form, in this order.

use super::Checked;
use crate::remote_write::{EARLY, send_raw};
use std::io::{Read, Write};
use std::net::TcpStream;
use tidepool_tests::clock::now_ms;
use tidepool_tests::http::Response;
use tidepool_tests::remote_write::{PATH, Version, Written, compress, encode, message_bytes};
use tidepool_tests::series::Series;
use tidepool_tests::tidepool::Store;

const V1: &str = "application/x-protobuf";
const V2: &str = "application/x-protobuf;proto=io.prometheus.write.v2.Request";

fn up() -> Series {
    Series::new(&[("__name__", "up")], &[(now_ms(), 1.0)])
}

fn post(store: &Store, headers: &[(&str, &str)], body: &[u8]) -> Response {
    send_raw(store, "POST", headers, body.len(), body)
}

/// Line "order of checks": the first error decides, whatever else is wrong.
#[test]
fn the_first_wrong_thing_decides() {
    let Checked { store, .. } = Checked::start();
    let corrupt = b"0 this is not snappy";
    let too_many = (32 << 20) + 1;
    let typed =
        |content_type, encoding| [("Content-Type", content_type), ("Content-Encoding", encoding)];
    for (method, headers, announced, status) in [
        ("PUT", typed("image/png", "gzip"), too_many, 405),
        ("POST", typed("image/png", "gzip"), too_many, 415),
        ("POST", typed("image/png", "snappy"), corrupt.len(), 415),
        ("POST", typed("application/json", "snappy"), corrupt.len(), 415),
        ("POST", typed(V1, "gzip"), corrupt.len(), 415),
        ("POST", typed(V2, "gzip"), too_many, 415),
        ("POST", typed(V2, "deflate"), corrupt.len(), 415),
        ("POST", typed(V1, "snappy"), too_many, 413),
        ("POST", typed(V2, "snappy"), too_many, 413),
        ("POST", typed(V1, "snappy"), corrupt.len(), 400),
        ("POST", typed(V2, "snappy"), corrupt.len(), 400),
    ] {
        let response = send_raw(&store, method, &headers, announced, corrupt);
        assert_eq!(response.status, status, "{method} {headers:?}: {}", response.text());
        assert_eq!(response.header("retry-after"), None, "nothing here clears by itself");
    }
}

/// Line "Content-Type": parameters by RFC 9110. An invalid media type is not guessed.
#[test]
fn types_that_nearly_fit_are_refused() {
    let Checked { store, .. } = Checked::start();
    let body = encode(Version::V1, &[up().row()]);
    for content_type in [
        "application/x-protobuf;proto=\"prometheus.WriteRequest",
        "application/x-protobuf;proto=prometheus.WriteRequest\"",
        "application/x-protobuf;proto='prometheus.WriteRequest'",
        "application/x-protobuf;proto=PROMETHEUS.WRITEREQUEST",
        "application/x-protobuf;proto=prometheus.WriteRequest;proto=io.prometheus.write.v2.Request",
        "application/x-protobuf;proto",
        "application/x-protobuf proto=prometheus.WriteRequest",
        "application/x-protobuf, application/json",
        "application/x-protobuffer",
        "x-protobuf",
    ] {
        let response = post(&store, &[("Content-Type", content_type)], &body);
        assert_eq!(response.status, 415, "{content_type}: {}", response.text());
    }
    for content_type in [
        "application/x-protobuf;",
        "application/x-protobuf; ; charset=\"a;b\\\"=c\" ;\tPROTO=\"prometheus.\\WriteRequest\"",
        "application/x-protobuf;proto=prometheus.WriteRequest;proto=prometheus.WriteRequest",
        // As if there were no header.
        "",
    ] {
        let body = encode(Version::V1, &[up().row()]);
        let response = post(&store, &[("Content-Type", content_type)], &body);
        assert_eq!(response.status, 204, "{content_type}: {}", response.text());
    }
}

/// Line "Content-Encoding": Snappy only, absent is Snappy. All values in the header count.
#[test]
fn every_encoding_but_snappy_is_refused() {
    let Checked { store, .. } = Checked::start();
    for (encodings, status) in [
        (&[][..], 204),
        (&["snappy"], 204),
        (&["SNAPPY"], 204),
        (&[""], 204),
        (&["gzip"], 415),
        (&["identity"], 415),
        (&["snappy, gzip"], 415),
        (&["snappy", "gzip"], 415),
        (&["x-snappy-framed"], 415),
    ] {
        let mut headers = vec![("Content-Type", V1)];
        headers.extend(encodings.iter().map(|encoding| ("Content-Encoding", *encoding)));
        let response = post(&store, &headers, &encode(Version::V1, &[up().row()]));
        assert_eq!(response.status, status, "{encodings:?}: {}", response.text());
    }
}

/// Line "before touching the body": a sender that waits for `100 Continue` does not get one.
#[test]
fn a_refused_type_costs_no_body() {
    let Checked { store, .. } = Checked::start();
    for (content_type, asked_for) in [("image/png", false), (V1, true)] {
        let mut stream = TcpStream::connect(store.server.address()).expect("a connection");
        stream.set_read_timeout(Some(EARLY)).expect("a timeout");
        let head = format!(
            "POST {PATH} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {content_type}\r\n\
             Content-Length: 1000\r\nExpect: 100-continue\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).expect("the head is sent");
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).expect("an answer");
        let expected = if asked_for { b"HTTP/1.1 100" } else { b"HTTP/1.1 415" };
        assert_eq!(&answer, expected, "{content_type}");
    }
}

/// Line "never choose the schema from the version header", and no other header either.
#[test]
fn informative_headers_decide_nothing() {
    let Checked { store, .. } = Checked::start();
    for version in Version::ALL {
        for told in ["0.1.0", "2.0.0", "9.9", "not a version"] {
            let headers = [
                ("Content-Type", version.content_type()),
                ("X-Prometheus-Remote-Write-Version", told),
                ("User-Agent", "Prometheus/0.0"),
                ("Retry-Attempt", "many"),
            ];
            let response = post(&store, &headers, &encode(version, &[up().row()]));
            assert_eq!(response.status, 204, "{version}, {told}: {}", response.text());
            assert_eq!(Written::from_response(&response).is_some(), version == Version::V2);
        }
    }
}

/// Line "Snappy block format, never framed": the frames of a whole stream, checksum and all.
#[test]
fn framed_snappy_is_refused() {
    let Checked { store, .. } = Checked::start();
    for version in Version::ALL {
        let mut framed = b"\xff\x06\x00\x00sNaPpY".to_vec();
        let message = message_bytes(version, &[up().row()]);
        let checksum = crc32c::crc32c(&message).rotate_right(15).wrapping_add(0xa282_ead8);
        let block = compress(&message);
        // A compressed chunk: its length in three bytes, checksum included.
        framed.push(0);
        framed.extend_from_slice(&(block.len() as u32 + 4).to_le_bytes()[..3]);
        framed.extend_from_slice(&checksum.to_le_bytes());
        framed.extend_from_slice(&block);
        let response = store.writer().send_body(version, &framed).expect("an answer");
        assert_eq!(response.status, 400, "{version}: {}", response.text());
        assert!(response.text().contains("block format"), "{}", response.text());
    }
}

/// Line "`Content-Type` decides": a message of the other version has only unknown fields. If they
/// were skipped, the samples would be lost behind a success.
#[test]
fn a_message_of_the_other_version_is_no_empty_request() {
    let Checked { store, .. } = Checked::start();
    for (said, sent) in [(Version::V1, Version::V2), (Version::V2, Version::V1)] {
        let body = encode(sent, &[up().row()]);
        let response = store.writer().send_body(said, &body).expect("an answer");
        assert_eq!(response.status, 400, "{said}: {}", response.text());
        assert!(response.text().contains("content type"), "{}", response.text());
    }
}
