//! Content of a request besides float samples: never dropped behind a success.

use super::{Checked, assert_accepted};
use tidepool_tests::clock::now_ms;
use tidepool_tests::http::Response;
use tidepool_tests::proto::{prometheus, write_v2};
use tidepool_tests::remote_read::everything;
use tidepool_tests::remote_write::{Version, Written, labels_v1, message_v1, message_v2};
use tidepool_tests::series::Series;

fn up(name: &str) -> Series {
    Series::new(&[("__name__", name)], &[(now_ms(), 1.0)])
}

/// Returns whether the native histogram of this time can be read back.
fn has_histogram(store: &Checked, timestamp_ms: i64) -> bool {
    let query = [everything(timestamp_ms, timestamp_ms)];
    let answer = store.store.reader().samples_message(&query).expect("samples");
    answer.results[0].timeseries.iter().any(|series| !series.histograms.is_empty())
}

#[track_caller]
fn assert_refused(response: &Response) {
    assert_eq!(response.status, 400, "{}", response.text());
    assert!(!response.body.is_empty(), "no reason given");
}

#[test]
fn histograms_of_1_0_are_stored() {
    let store = Checked::start();
    let series = up("with_histogram");
    let timestamp = series.samples[0].timestamp_ms;
    let mut message = message_v1(&[]);
    message.timeseries.push(prometheus::TimeSeries {
        labels: labels_v1(&series.labels),
        histograms: vec![prometheus::Histogram {
            count: Some(prometheus::histogram::Count::CountInt(1)),
            sum: 1.0,
            zero_threshold: 0.001,
            zero_count: Some(prometheus::histogram::ZeroCount::ZeroCountInt(0)),
            positive_spans: vec![prometheus::BucketSpan { offset: 0, length: 1 }],
            positive_deltas: vec![1],
            timestamp,
            ..Default::default()
        }],
        ..Default::default()
    });
    let response = store.store.writer().send_message(Version::V1, &message).expect("an answer");
    assert_accepted(Version::V1, &response, 0);
    assert!(has_histogram(&store, timestamp));
}

#[test]
fn histograms_of_2_0_are_stored() {
    let store = Checked::start();
    let series = up("with_histogram");
    let timestamp = series.samples[0].timestamp_ms;
    let mut message = message_v2(&[series.row()]);
    message.timeseries[0].samples.clear();
    message.timeseries[0].histograms.push(write_v2::Histogram {
        count: Some(write_v2::histogram::Count::CountInt(1)),
        sum: 1.0,
        zero_threshold: 0.001,
        zero_count: Some(write_v2::histogram::ZeroCount::ZeroCountInt(0)),
        positive_spans: vec![write_v2::BucketSpan { offset: 0, length: 1 }],
        positive_deltas: vec![1],
        timestamp,
        ..Default::default()
    });
    // A float sample in the same request is not lost with the histogram.
    let float = up("float");
    let refs = |name: u32| vec![1, name];
    message.symbols.push("float".to_string());
    message.timeseries.push(write_v2::TimeSeries {
        labels_refs: refs(message.symbols.len() as u32 - 1),
        samples: message_v2(&[float.row()]).timeseries[0].samples.clone(),
        ..Default::default()
    });
    let response = store.store.writer().send_message(Version::V2, &message).expect("an answer");
    let written = Written::from_response(&response).expect("written headers");
    assert_eq!(response.status, 204, "{}", response.text());
    assert_eq!(written, Written { samples: 1, histograms: 1, exemplars: 0 });
    assert!(has_histogram(&store, timestamp));
}

#[test]
fn exemplars_are_stored_once() {
    let store = Checked::start();
    let series = up("with_exemplar");
    let timestamp = series.samples[0].timestamp_ms;
    let mut message = message_v2(&[series.row()]);
    let exemplar = write_v2::Exemplar { labels_refs: vec![], value: 1.0, timestamp };
    message.timeseries[0].exemplars.push(exemplar);
    for _sent_again in [false, true] {
        let response = store.store.writer().send_message(Version::V2, &message);
        let response = response.expect("an answer");
        let written = Written::from_response(&response).expect("written headers");
        assert_eq!(response.status, 204, "{}", response.text());
        assert_eq!(written, Written { samples: 1, histograms: 0, exemplars: 1 });
        assert_eq!(exemplars_kept(&store), 1.0);
    }

    let series = up("with_exemplar_1_0");
    let mut message = message_v1(&[series.row()]);
    let exemplar = prometheus::Exemplar { labels: vec![], value: 1.0, timestamp };
    message.timeseries[0].exemplars.push(exemplar);
    let response = store.store.writer().send_message(Version::V1, &message).expect("an answer");
    assert_accepted(Version::V1, &response, 1);
    assert_eq!(exemplars_kept(&store), 2.0);
}

/// As Prometheus sends exemplars: in an entry of their own, after the sample's or in a later
/// request.
#[test]
fn exemplars_come_without_the_samples_of_their_series() {
    let store = Checked::start();
    let series = up("known");
    let timestamp = series.samples[0].timestamp_ms;
    let alone = |series: &Series, value, timestamp| {
        let mut message = message_v2(&[series.row()]);
        message.timeseries[0].samples.clear();
        let exemplar = write_v2::Exemplar { labels_refs: vec![], value, timestamp };
        message.timeseries[0].exemplars.push(exemplar);
        message
    };
    let mut together = message_v2(&[series.row(), series.row()]);
    together.timeseries[1].samples.clear();
    together.timeseries[1].exemplars =
        alone(&series, 1.0, timestamp).timeseries[0].exemplars.clone();
    for (message, samples, kept) in
        [(together, 1, 1.0), (alone(&series, 2.0, timestamp + 1), 0, 2.0)]
    {
        let response = store.store.writer().send_message(Version::V2, &message);
        let response = response.expect("an answer");
        assert_eq!(response.status, 204, "{}", response.text());
        let written = Written::from_response(&response).expect("written headers");
        assert_eq!(written, Written { samples, histograms: 0, exemplars: 1 });
        assert_eq!(exemplars_kept(&store), kept);
    }

    let mut message = message_v1(&[series.row()]);
    message.timeseries[0].samples.clear();
    let timestamp = timestamp + 2;
    let exemplar = prometheus::Exemplar { labels: vec![], value: 3.0, timestamp };
    message.timeseries[0].exemplars.push(exemplar);
    let response = store.store.writer().send_message(Version::V1, &message).expect("an answer");
    assert_eq!(response.status, 204, "{}", response.text());
    assert_eq!(exemplars_kept(&store), 3.0);

    // The series of this exemplar does not exist.
    let response =
        store.store.writer().send_message(Version::V2, &alone(&up("new"), 1.0, timestamp));
    assert_refused(&response.expect("an answer"));
    assert_eq!(store.store.metric("prometheus_tsdb_head_series"), Some(1.0));
}

#[test]
fn exemplars_that_are_not_kept_are_refused() {
    let store = Checked::start_with("--max-exemplars=0");
    let series = up("with_exemplar");
    let timestamp = series.samples[0].timestamp_ms;
    let mut message = message_v2(&[series.row()]);
    let exemplar = write_v2::Exemplar { labels_refs: vec![], value: 1.0, timestamp };
    message.timeseries[0].exemplars.push(exemplar);
    let response = store.store.writer().send_message(Version::V2, &message).expect("an answer");
    assert_refused(&response);
    let written = Written::from_response(&response).expect("written headers");
    assert_eq!(written, Written { samples: 1, histograms: 0, exemplars: 0 });
}

fn exemplars_kept(store: &Checked) -> f64 {
    store.store.metric("prometheus_tsdb_exemplar_exemplars_in_storage").expect("the metric")
}

/// Metadata is optional, and never a reason to refuse samples.
#[test]
fn metadata_spoils_nothing() {
    let store = Checked::start();
    let series = up("with_metadata");
    let mut message = message_v2(&[series.row()]);
    message.symbols.push("What it is.".to_string());
    let help_ref = message.symbols.len() as u32 - 1;
    message.timeseries[0].metadata = Some(write_v2::Metadata { r#type: 2, help_ref, unit_ref: 0 });
    let response = store.store.writer().send_message(Version::V2, &message).expect("an answer");
    assert_accepted(Version::V2, &response, 1);

    // Prometheus sends this by itself every minute.
    let mut message = message_v1(&[]);
    message.metadata.push(prometheus::MetricMetadata {
        r#type: 2,
        metric_family_name: "with_metadata".to_string(),
        help: "What it is.".to_string(),
        unit: String::new(),
    });
    let response = store.store.writer().send_message(Version::V1, &message).expect("an answer");
    assert_accepted(Version::V1, &response, 0);
}

/// References outside the table, unknown types, invalid UTF-8, a family without a name.
#[test]
fn metadata_however_odd_spoils_nothing() {
    let store = Checked::start();
    let series = up("odd_metadata");
    let mut message = message_v2(&[series.row()]);
    for (kind, help_ref, unit_ref) in
        [(99, 0, 0), (-1, 0, 0), (1, 1_000, 0), (1, 0, u32::MAX), (1, 1, 2)]
    {
        message.timeseries[0].metadata =
            Some(write_v2::Metadata { r#type: kind, help_ref, unit_ref });
        let response = store.store.writer().send_message(Version::V2, &message);
        assert_accepted(Version::V2, &response.expect("an answer"), 1);
    }
    for (family, help) in [("", "No name."), ("odd_metadata", "@@@@")] {
        let mut message = message_v1(&[series.row()]);
        message.metadata.push(prometheus::MetricMetadata {
            r#type: 77,
            metric_family_name: family.to_string(),
            help: help.to_string(),
            unit: "\n".to_string(),
        });
        let mut bytes = prost::Message::encode_to_vec(&message);
        if let Some(place) = bytes.windows(4).position(|window| window == b"@@@@") {
            bytes[place] = 0xff;
        }
        let body = tidepool_tests::remote_write::compress(&bytes);
        let response = store.store.writer().send_body(Version::V1, &body).expect("an answer");
        assert_accepted(Version::V1, &response, 1);
    }
}

/// Line "never 2xx for dropped known data": a refused exemplar affects nothing else.
#[test]
fn exemplars_that_are_refused_leave_their_samples() {
    let store = Checked::start_with("--out-of-order-window=0s");
    let long = "x".repeat(200);
    let now = now_ms();
    let series = Series::new(&[("__name__", "judged")], &[(now, 1.0)]);
    let good = write_v2::Exemplar { labels_refs: vec![], value: 1.0, timestamp: now };
    let mut message = message_v2(&[series.row()]);
    message.timeseries[0].exemplars.push(good.clone());
    let response = store.store.writer().send_message(Version::V2, &message).expect("an answer");
    assert_eq!(response.status, 204, "{}", response.text());
    for (labels_refs, timestamp) in [
        // Older than the exemplar that is kept.
        (vec![], now - 5_000),
        (vec![], now + 3_600_000),
        // Labels longer than OpenMetrics allows; a reference too few; one outside the table.
        (vec![1, 3], now),
        (vec![1], now),
        (vec![1, 99], now),
    ] {
        let mut message = message_v2(&[series.row()]);
        message.symbols.push(long.clone());
        let bad = write_v2::Exemplar { labels_refs, timestamp, value: 2.0 };
        message.timeseries[0].exemplars = vec![good.clone(), bad];
        let response = store.store.writer().send_message(Version::V2, &message);
        let response = response.expect("an answer");
        assert_refused(&response);
        let written = Written::from_response(&response).expect("written headers");
        assert_eq!(written, Written { samples: 1, histograms: 0, exemplars: 1 });
    }
}

/// Optional, and without effect on the sample itself so far.
#[test]
fn start_timestamps_do_not_fail_a_sample() {
    let store = Checked::start();
    for start_timestamp in [1, now_ms() - 1_000, now_ms() + 1_000_000, -5] {
        let series = up(&format!("started_{start_timestamp}").replace('-', "m"));
        let mut message = message_v2(&[series.row()]);
        message.timeseries[0].samples[0].start_timestamp = start_timestamp;
        let response = store.store.writer().send_message(Version::V2, &message);
        assert_accepted(Version::V2, &response.expect("an answer"), 1);
    }
}

/// A 2.0 series without content is refused; Prometheus refuses it, too.
#[test]
fn a_series_without_samples_is_refused() {
    let store = Checked::start();
    let mut message = message_v2(&[up("empty").row()]);
    message.timeseries[0].samples.clear();
    let response = store.store.writer().send_message(Version::V2, &message).expect("an answer");
    assert_refused(&response);
}
