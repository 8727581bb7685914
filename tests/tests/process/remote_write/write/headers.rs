//! `X-Prometheus-Remote-Write-{Samples,Histograms,Exemplars}-Written`: values for a 2.0 sender, on
//! success and on failure, and none for a 1.0 sender.

use super::Checked;
use crate::remote_write::send_raw;
use prost::Message;
use tidepool_tests::clock::now_ms;
use tidepool_tests::http::Response;
use tidepool_tests::proto::{prometheus, write_v2};
use tidepool_tests::remote_read::everything;
use tidepool_tests::remote_write::{Version, Written, compress, message_v1, message_v2};
use tidepool_tests::series::Series;

/// Names of the headers in lower case.
const NAMES: [&str; 3] = [
    "x-prometheus-remote-write-exemplars-written",
    "x-prometheus-remote-write-histograms-written",
    "x-prometheus-remote-write-samples-written",
];

/// Asserts that the answer has exactly these three headers, each once; for `None` not one.
#[track_caller]
fn assert_told(response: &Response, written: Option<[u64; 3]>) {
    let is_ours = |name: &&str| name.starts_with("x-prometheus-remote-write");
    let mut names: Vec<&str> =
        response.headers.iter().map(|(name, _)| name.as_str()).filter(is_ours).collect();
    names.sort();
    let expected: &[&str] = if written.is_some() { &NAMES } else { &[] };
    assert_eq!(names, expected, "{}: {}", response.status, response.text());
    let written =
        written.map(|[samples, histograms, exemplars]| Written { samples, histograms, exemplars });
    assert_eq!(Written::from_response(response), written, "{}", response.text());
}

/// Makes a float, a histogram and an exemplar, all in one series, and a series without a name.
fn message(name: &str, timestamp: i64, with_nameless: bool) -> write_v2::Request {
    let good = Series::new(&[("__name__", name)], &[(timestamp, 1.0)]);
    let nameless = Series::new(&[("job", "nameless")], &[(timestamp, 1.0)]);
    let mut message = message_v2(&[good.row(), nameless.row()]);
    let histogram = write_v2::Histogram {
        timestamp: timestamp + 1,
        start_timestamp: timestamp - 1,
        ..Default::default()
    };
    message.timeseries[0].histograms.push(histogram);
    let exemplar = write_v2::Exemplar { labels_refs: vec![], value: 0.5, timestamp };
    message.timeseries[0].exemplars.push(exemplar);
    if !with_nameless {
        message.timeseries.pop();
    }
    message
}

/// Makes the same message in 1.0.
fn message_of_1_0(name: &str, timestamp: i64, with_nameless: bool) -> prometheus::WriteRequest {
    let good = Series::new(&[("__name__", name)], &[(timestamp, 1.0)]);
    let nameless = Series::new(&[("job", "nameless")], &[(timestamp, 1.0)]);
    let mut message = message_v1(&[good.row(), nameless.row()]);
    let histogram = prometheus::Histogram { timestamp: timestamp + 1, ..Default::default() };
    message.timeseries[0].histograms.push(histogram);
    let exemplar = prometheus::Exemplar { labels: vec![], value: 0.5, timestamp };
    message.timeseries[0].exemplars.push(exemplar);
    if !with_nameless {
        message.timeseries.pop();
    }
    message
}

/// Lines "sent on success and failure", "an accepted exact duplicate counts as written", "not for
/// 1.0", and "both samples and histograms in one series: accepted".
#[test]
fn senders_of_2_0_are_told_what_was_written_of_each_kind() {
    let Checked { store, .. } = Checked::start();
    let timestamp = now_ms() - 1_000;
    for _sent_again in [false, true] {
        for (with_nameless, status) in [(false, 204), (true, 400)] {
            let v2 = message("second", timestamp, with_nameless);
            let response = store.writer().send_message(Version::V2, &v2).expect("an answer");
            assert_eq!(response.status, status, "{}", response.text());
            assert_told(&response, Some([1, 1, 1]));
            let v1 = message_of_1_0("first", timestamp, with_nameless);
            let response = store.writer().send_message(Version::V1, &v1).expect("an answer");
            assert_eq!(response.status, status, "{}", response.text());
            assert_told(&response, None);
        }
    }
    let query = everything(i64::MIN, i64::MAX);
    let answer = store.reader().samples_message(&[query]).expect("samples");
    let counts: Vec<(usize, usize)> = answer.results[0]
        .timeseries
        .iter()
        .map(|series| (series.samples.len(), series.histograms.len()))
        .collect();
    assert_eq!(counts, [(1, 1), (1, 1)]);
}

/// Line "sent on failure once content negotiation has passed": zeros then, and no headers before.
#[test]
fn failures_after_negotiation_are_told_as_nothing_written() {
    let Checked { store, .. } = Checked::start();
    let good = message("whole", now_ms(), false).encode_to_vec();
    let announced_too_large = {
        let mut body = Vec::new();
        prost::encoding::encode_varint(1 << 30, &mut body);
        body.extend_from_slice(&[0; 100]);
        body
    };
    for (status, body) in [
        (400, Vec::new()),
        (400, b"this is not snappy".to_vec()),
        (400, compress(&good[..good.len() - 1])),
        (400, compress(&[0xff; 9])),
        (413, announced_too_large),
    ] {
        for (version, told) in [(Version::V2, Some([0; 3])), (Version::V1, None)] {
            let response = store.writer().send_body(version, &body).expect("an answer");
            assert_eq!(response.status, status, "{version}: {}", response.text());
            assert_told(&response, told);
        }
    }
    let foreign = [("Content-Type", Version::V2.content_type()), ("Content-Encoding", "gzip")];
    let before = [
        send_raw(&store, "PUT", &foreign, good.len(), &good),
        send_raw(&store, "POST", &foreign, good.len(), &good),
    ];
    for (response, status) in before.iter().zip([405, 415]) {
        assert_eq!(response.status, status);
        assert_told(response, None);
    }
    // Nothing of the damaged request is stored.
    let answer = store.reader().streamed(&[everything(i64::MIN, i64::MAX)]).expect("a stream");
    assert!(answer[0].is_empty(), "{answer:?}");
}
