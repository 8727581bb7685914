//! Label sets: accepted ones, their stored form, and refused ones.

use super::{Checked, assert_accepted, assert_refused};
use prost::Message;
use tidepool_tests::clock::now_ms;
use tidepool_tests::proto::write_v2;
use tidepool_tests::remote_write::{Version, compress};
use tidepool_tests::series::{Labels, Sample, Series};

/// Makes a series whose labels stay in the given order.
fn verbatim(pairs: &[(&str, &str)], timestamp_ms: i64) -> Series {
    let labels = Labels::verbatim(pairs.iter().copied());
    Series { labels, samples: vec![Sample { timestamp_ms, value: 1.0 }] }
}

fn good(name: &str, timestamp_ms: i64) -> Series {
    verbatim(&[("__name__", name)], timestamp_ms)
}

#[test]
fn bad_label_sets_are_refused_and_the_rest_kept() {
    let mut store = Checked::start();
    let now = now_ms();
    let nameless = "has no metric name";
    let twice = "\"a\" occurs twice";
    let bad_sets: [(&[(&str, &str)], &str); 6] = [
        (&[("job", "nameless")], nameless),
        (&[("__name__", ""), ("job", "nameless")], nameless),
        (&[("__name__", "twice"), ("a", "1"), ("a", "2")], twice),
        (&[("__name__", "twice"), ("a", "1"), ("a", "1")], twice),
        (&[("__name__", "a"), ("", "no name")], "a label has an empty name"),
        (&[], nameless),
    ];
    for version in Version::ALL {
        for (number, (pairs, reason)) in bad_sets.iter().enumerate() {
            let good = good(&format!("good_{number}_{}", version == Version::V2), now);
            store.refuses(version, &verbatim(pairs, now), &[&good], &[reason]);
        }
    }
    store.assert_held();
}

/// The specification demands sorted labels; its own compliance tests send others.
#[test]
fn unsorted_labels_are_sorted() {
    let mut store = Checked::start();
    let now = now_ms();
    for (version, name) in Version::ALL.into_iter().zip(["first", "second"]) {
        let unsorted = verbatim(&[("zone", "z"), ("__name__", name), ("area", "a")], now);
        let response = store.send(version, &[&unsorted]);
        assert_accepted(version, &response, 1);
        let pairs = [("__name__", name), ("area", "a"), ("zone", "z")];
        store.held.push(Series::new(&pairs, &[(now, 1.0)]));
        // In any order, it is the same series.
        store.accepts_again(version, &[&Series::new(&pairs, &[(now, 1.0)])]);
    }
    store.assert_held();
}

/// In the data model an empty value and no label are the same.
#[test]
fn labels_with_empty_values_are_dropped() {
    let mut store = Checked::start();
    let now = now_ms();
    for (version, name) in Version::ALL.into_iter().zip(["first", "second"]) {
        let with_empty = verbatim(&[("__name__", name), ("a", ""), ("b", "1")], now);
        let response = store.send(version, &[&with_empty]);
        assert_accepted(version, &response, 1);
        store.held.push(Series::new(&[("__name__", name), ("b", "1")], &[(now, 1.0)]));
    }
    store.assert_held();
}

#[test]
fn names_and_values_are_any_utf8() {
    let mut store = Checked::start();
    let now = now_ms();
    let long = "y".repeat(3_000);
    for (version, name) in Version::ALL.into_iter().zip(["with.dots and spaces", "温度/ß"]) {
        let pairs = [
            ("__name__", name),
            ("a.b", "dots"),
            ("quote\"d", "back\\slash"),
            ("λ", "new\nline\0nul"),
            ("🌊", "\u{fffd}\u{10ffff}"),
            ("long", &long),
        ];
        store.accepts(version, &[&Series::new(&pairs, &[(now, 1.0)])]);
    }
    store.assert_held();
}

#[test]
fn bytes_that_are_not_utf8_are_refused() {
    let store = Checked::start();
    for version in Version::ALL {
        let series = Series::new(&[("__name__", "up"), ("a", "@@@@")], &[(now_ms(), 1.0)]);
        let mut message = tidepool_tests::remote_write::message_bytes(version, &[series.row()]);
        let place = message.windows(4).position(|w| w == b"@@@@").expect("the value is there");
        message[place] = 0xff;
        let body = compress(&message);
        let response = store.store.writer().send_body(version, &body).expect("an answer");
        assert_eq!(response.status, 400, "{version}: {}", response.text());
    }
}

fn request(symbols: &[&str], label_refs: &[&[u32]]) -> write_v2::Request {
    let samples = vec![write_v2::Sample { value: 1.0, timestamp: now_ms(), start_timestamp: 0 }];
    let series = |refs: &&[u32]| write_v2::TimeSeries {
        labels_refs: refs.to_vec(),
        samples: samples.clone(),
        ..Default::default()
    };
    write_v2::Request {
        symbols: symbols.iter().map(|s| s.to_string()).collect(),
        timeseries: label_refs.iter().map(series).collect(),
    }
}

/// References outside the table affect only their series.
#[test]
fn bad_references_are_refused_and_the_rest_kept() {
    let store = Checked::start();
    let symbols = ["", "__name__", "up", "down", "more"];
    for (good, bad) in [(2, &[1, 5][..]), (3, &[1, u32::MAX]), (4, &[1, 2, 1])] {
        let message = request(&symbols, &[bad, &[1, good]]);
        let response = store.store.writer().send_message(Version::V2, &message);
        assert_refused(Version::V2, &response.expect("an answer"), 1, &["symbol", "ref", "label"]);
    }
}

/// The first symbol must be empty; otherwise no reference can be trusted.
#[test]
fn a_first_symbol_that_is_not_empty_is_refused() {
    let store = Checked::start();
    let message = request(&["__name__", "up"], &[&[0, 1]]);
    let response = store.store.writer().send_message(Version::V2, &message).expect("an answer");
    assert_eq!(response.status, 400, "{}", response.text());
}

/// Senders may be newer than tidepool, or older: 2.0 drafts had a start time in field 6.
#[test]
fn unknown_fields_are_skipped() {
    let store = Checked::start();
    for version in Version::ALL {
        let series = good("up", now_ms());
        let message = tidepool_tests::remote_write::message_bytes(version, &[series.row()]);
        // Field 6 as a varint and field 900 as bytes, added inside the series and at the top.
        let unknown = [0x30, 0x96, 0x01, 0xa2, 0x38, 0x02, 0x00, 0xff];
        let message = match version {
            Version::V1 => with_field_in_series(&message, 1, &unknown),
            Version::V2 => {
                let request = write_v2::Request::decode(message.as_slice()).expect("it decodes");
                let mut bytes =
                    write_v2::Request { timeseries: vec![], ..request.clone() }.encode_to_vec();
                let series = request.timeseries[0].encode_to_vec();
                let series = [series.as_slice(), &unknown].concat();
                prost::encoding::bytes::encode(5, &series, &mut bytes);
                bytes
            }
        };
        let body = compress(&[message.as_slice(), &unknown].concat());
        let response = store.store.writer().send_body(version, &body).expect("an answer");
        assert_accepted(version, &response, 1);
    }
}

/// Adds bytes to the only series of a 1.0 message.
fn with_field_in_series(message: &[u8], number: u32, more: &[u8]) -> Vec<u8> {
    use tidepool_tests::proto::prometheus::WriteRequest;
    let request = WriteRequest::decode(message).expect("it decodes");
    let series = [request.timeseries[0].encode_to_vec().as_slice(), more].concat();
    let mut bytes = Vec::new();
    prost::encoding::bytes::encode(number, &series, &mut bytes);
    bytes
}

/// The sender reads only the start of an error, and logs it.
#[test]
fn the_list_of_reasons_is_short() {
    let store = Checked::start();
    let long = "z".repeat(200);
    let bad: Vec<Series> = (0..5_000)
        .map(|i| verbatim(&[("job", &format!("{i}")), ("long", &long)], now_ms()))
        .collect();
    let bad: Vec<&Series> = bad.iter().collect();
    let response = store.send(Version::V1, &bad);
    assert_refused(Version::V1, &response, 0, &["name"]);
    assert!(response.body.len() < 16 << 10, "{} bytes", response.body.len());
    assert!(response.text().contains("5000") || response.text().contains("more"));
}
