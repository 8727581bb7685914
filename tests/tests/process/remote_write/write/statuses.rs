//! The sender's next action: nothing, give up, or retry.

use super::{Checked, assert_accepted};
use crate::remote_write::EARLY;
use std::time::Duration;
use tidepool_tests::clock::now_ms;
use tidepool_tests::http::{self, Response};
use tidepool_tests::remote_write::{PATH, Version, Written, compress, headers};
use tidepool_tests::series::Series;

fn series(name: &str, number: usize) -> Series {
    let number = number.to_string();
    Series::new(&[("__name__", name), ("number", &number)], &[(now_ms(), 1.0)])
}

/// Asserts the three counts, which only 2.0 senders get.
#[track_caller]
fn assert_samples_written(version: Version, response: &Response, samples: u64) {
    let expected = Written { samples, ..Written::default() };
    let expected = (version == Version::V2).then_some(expected);
    assert_eq!(Written::from_response(response), expected, "{:?}", response.headers);
}

/// Line "all written: 204, empty body", also if there was nothing to write.
#[test]
fn an_empty_request_is_written() {
    let Checked { store, .. } = Checked::start();
    for version in Version::ALL {
        let response = store.writer().send_body(version, &compress(&[])).expect("an answer");
        assert_accepted(version, &response, 0);
    }
}

/// Line "body over the limit: 413 while reading": its length was not announced.
#[test]
fn a_body_of_unknown_length_is_cut_off_at_the_limit() {
    let checked = Checked::start_with("--max-request-size=1MiB");
    let chunk = [b"10000\r\n".as_slice(), &[7; 0x10000], b"\r\n"].concat();
    for version in Version::ALL {
        let mut request = format!("POST {PATH} HTTP/1.1\r\nHost: localhost\r\n");
        for (name, value) in headers(version) {
            request += &format!("{name}: {value}\r\n");
        }
        request += "Transfer-Encoding: chunked\r\n\r\n";
        // More than the limit, and never an end.
        let request = [request.into_bytes(), chunk.repeat(17)].concat();
        let response =
            http::exchange(checked.store.server.address(), request, EARLY).expect("an answer");
        assert_eq!(response.status, 413, "{}", response.text());
        assert!(response.text().contains("--max-request-size"), "{}", response.text());
        assert_samples_written(version, &response, 0);
    }
}

/// Line "32 MiB decoded, read from the preamble": one byte less or more.
#[test]
fn the_decoded_size_is_bounded_by_the_preamble() {
    let checked = Checked::start_with("--max-request-size=1MiB");
    for version in Version::ALL {
        // The unknown field 900 fills the message up.
        let filled = |bytes: usize| {
            let mut message = vec![0xa2, 0x38];
            let content = bytes - 5;
            prost::encoding::encode_varint(content as u64, &mut message);
            message.resize(bytes, b'x');
            compress(&message)
        };
        let writer = checked.store.writer();
        let response = writer.send_body(version, &filled(1 << 20)).expect("an answer");
        assert_accepted(version, &response, 0);
        let response = writer.send_body(version, &filled((1 << 20) + 1)).expect("an answer");
        assert_eq!(response.status, 413, "{}", response.text());
        assert_samples_written(version, &response, 0);
    }
}

/// Lines "over a series limit that will clear: 429, `Retry-After`" and "after a partial write the
/// request MUST be idempotent".
#[test]
fn beyond_the_series_limit_senders_may_come_again() {
    for version in Version::ALL {
        let mut checked = Checked::start_with("--max-series=5");
        let all: Vec<Series> = (0..8).map(|number| series("limited", number)).collect();
        let all: Vec<&Series> = all.iter().collect();
        for _again in 0..2 {
            let response = checked.send(version, &all);
            assert_eq!(response.status, 429, "{}", response.text());
            assert!(response.header("retry-after").is_some_and(|s| s.parse::<u32>().is_ok()));
            assert!(response.text().contains("--max-series"), "{}", response.text());
            assert_samples_written(version, &response, 5);
        }
        checked.held.extend(all[..5].iter().map(|series| (*series).clone()));
        checked.assert_held();

        // Permanently refused series do not hide those that may be accepted later.
        let nameless: Vec<Series> = (0..30).map(|number| series("", number)).collect();
        let mixed: Vec<&Series> = nameless.iter().chain(all.iter().copied()).collect();
        let response = checked.send(version, &mixed);
        assert_eq!(response.status, 429, "{}", response.text());
        assert_samples_written(version, &response, 5);
    }
}

/// Line "4xx makes the sender drop the request: never for what time will cure".
#[test]
fn a_body_that_comes_too_slowly_may_come_again() {
    let checked = Checked::start_with("--request-timeout=1s");
    for version in Version::ALL {
        let request = http::request_bytes("POST", PATH, &headers(version), 100, b"part of it");
        let timeout = Duration::from_secs(60);
        let response =
            http::exchange(checked.store.server.address(), request, timeout).expect("an answer");
        assert_eq!(response.status, 503, "{}", response.text());
        assert!(response.header("retry-after").is_some(), "{:?}", response.headers);
        assert_samples_written(version, &response, 0);
    }
}

/// Line "cap the error body": the first few, then the number of the others.
#[test]
fn the_error_says_how_many_more_there_are() {
    let checked = Checked::start();
    for version in Version::ALL {
        let long = "z".repeat(4_000);
        let bad = |number: usize| {
            let number = number.to_string();
            Series::new(&[("job", &long), ("number", &number)], &[(now_ms(), 1.0)])
        };
        let bad: Vec<Series> = (0..1_000).map(bad).collect();
        let response = checked.send(version, &bad.iter().collect::<Vec<_>>());
        let text = response.text();
        assert_eq!(response.status, 400, "{text}");
        assert!(text.starts_with("0 samples,") && text.contains("1000 rows refused"), "{text}");
        assert!(text.ends_with("and 990 more\n"), "{text}");
        assert!(text.len() < 8 << 10, "{} bytes", text.len());
        assert_eq!(response.header("content-type"), Some("text/plain; charset=utf-8"));
    }
}
