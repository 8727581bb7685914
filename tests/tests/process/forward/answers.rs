//! Misleading answers: pages in place of a receiver's answers, invalid times, limits that are only
//! temporary.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tidepool_tests::clock::now_ms;
use tidepool_tests::forwarding::{TIMEOUT, figure, node, wait_for, wait_for_delivery};
use tidepool_tests::http::Response;
use tidepool_tests::receiver::{Received, Receiver, status, taken};
use tidepool_tests::remote_write::Version;
use tidepool_tests::sender::{recent_data, send_all};
use tidepool_tests::series::Series;
use tidepool_tests::tidepool::{Config, Store};
use tidepool_tests::wait;

const SENT: &str = "prometheus_remote_storage_samples_total";
const FAILED: &str = "prometheus_remote_storage_samples_failed_total";
const RETRIED: &str = "prometheus_remote_storage_samples_retried_total";

const LINES: &str = "    queue_config: {batch_send_deadline: 100ms, max_shards: 1, \
                     min_backoff: 10ms, max_backoff: 50ms}\n    metadata_config: {send: false}\n";

#[track_caller]
fn wait_for_retries(node: &Store) {
    wait::until("retries", TIMEOUT, || (figure(node, RETRIED, "") > 0.0).then_some(()))
        .unwrap_or_else(|error| panic!("{error}; the log says:\n{}", node.server.log()));
}

fn page() -> Response {
    Response {
        status: 200,
        headers: vec![("content-type".into(), "text/html; charset=utf-8".into())],
        // Longer than the part of an answer that is read.
        body: format!("<!DOCTYPE html>\n<title>Log in</title>{}", " ".repeat(100_000)).into_bytes(),
    }
}

/// A gateway that answers everything with its page accepts nothing: all samples stay pending until
/// the receiver is back, and are sent in the configured version.
#[test]
fn a_page_of_a_gateway_delivers_nothing() {
    for version in Version::ALL {
        let receiver = Receiver::start().expect("a receiver");
        receiver.answers(|_, _| page());
        let node = node(receiver.address(), version, LINES, |config| config);
        let data = recent_data(131, 50, 50);
        send_all(&node, Version::V2, &data);
        wait_for_retries(&node);
        assert_eq!(figure(&node, SENT, ""), 0.0);
        let stored = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&stored);
        receiver.answers(move |_, received| {
            let series = received.series().unwrap_or_default();
            let samples: usize = series.iter().map(|series| series.samples.len()).sum();
            count.fetch_add(samples, Relaxed);
            taken(received)
        });
        wait_for_delivery(&node, data.sample_count());
        assert_eq!(figure(&node, FAILED, ""), 0.0);
        assert_eq!(stored.load(Relaxed) as u64, data.sample_count(), "each once");
        let all = receiver.received();
        assert!(all.iter().all(|request| request.version() == version), "{version}");
    }
}

/// A receiver that has returned counts before, and then does not, is another server: no sample
/// counts as sent, and 2.0 is tried again.
#[test]
fn a_receiver_of_2_0_that_stops_counting_is_asked_again() {
    let receiver = Receiver::start().expect("a receiver");
    let node = node(receiver.address(), Version::V2, LINES, |config| config);
    let (first, second) = (recent_data(132, 5, 5), recent_data(133, 5, 5));
    send_all(&node, Version::V2, &first);
    wait_for_delivery(&node, first.sample_count());
    receiver.answers(|_, _| status(200));
    send_all(&node, Version::V2, &second);
    wait_for_retries(&node);
    assert_eq!(figure(&node, SENT, "") as u64, first.sample_count());
    receiver.answers(|_, received| taken(received));
    wait_for_delivery(&node, first.sample_count() + second.sample_count());
    assert!(receiver.received().iter().all(|request| request.version() == Version::V2));
}

/// Samples that the receiver did not write, by its counts, are failed, whatever the status.
#[test]
fn what_was_not_written_is_counted() {
    for code in [204, 400] {
        let receiver = Receiver::start().expect("a receiver");
        receiver.answers(move |_, _: &Received| {
            let written = ("x-prometheus-remote-write-samples-written".into(), "2".into());
            Response { headers: vec![written], ..status(code) }
        });
        let node = node(receiver.address(), Version::V2, LINES, |config| config);
        let now = now_ms();
        let samples: Vec<(i64, f64)> = (0..5).map(|n| (now - 5_000 + n * 1_000, 1.0)).collect();
        let series = Series::new(&[("__name__", "partly")], &samples);
        let answer = node.writer().send(Version::V2, &[series.row()]).expect("an answer");
        assert_eq!(answer.status, 204);
        wait::until("the answer", TIMEOUT, || (figure(&node, FAILED, "") == 3.0).then_some(()))
            .unwrap_or_else(|error| panic!("{code}: {error}; {}", node.server.log()));
        assert_eq!(figure(&node, SENT, ""), 2.0, "{code}");
        assert_eq!(receiver.received().len(), 1, "{code}");
    }
}

/// A sample that is too old is counted once, however often its request is repeated.
#[test]
fn what_is_too_old_is_counted_once() {
    let receiver = Receiver::start().expect("a receiver");
    receiver.answers(|_, received| match received.version() {
        Version::V1 => taken(received),
        Version::V2 => status(415),
    });
    let lines = "    queue_config: {batch_send_deadline: 100ms, sample_age_limit: 1h}\n    \
                 metadata_config: {send: false}\n";
    let node = node(receiver.address(), Version::V2, lines, |config| config);
    let now = now_ms();
    let series = Series::new(&[("__name__", "aged")], &[(now - 7_200_000, 1.0), (now, 2.0)]);
    let answer = node.writer().send(Version::V2, &[series.row()]).expect("an answer");
    assert_eq!(answer.status, 204);
    wait_for_delivery(&node, 1);
    let name = "prometheus_remote_storage_samples_dropped_total";
    let too_old = || figure(&node, name, "reason=\"too_old\"");
    wait::until("the old one to be counted", TIMEOUT, || (too_old() > 0.0).then_some(()))
        .unwrap_or_else(|error| panic!("{error}; {}", node.server.log()));
    assert_eq!(too_old(), 1.0);
    assert_eq!(receiver.received().len(), 2);
}

/// A `Retry-After` without a pause, or with a time in the past, is replaced by the backoff, which
/// grows.
#[test]
fn no_pause_is_not_taken_for_one() {
    const ANSWERS: [&str; 4] = ["0", "Sun, 06 Nov 1994 08:49:37 GMT", "0", "yesterday"];
    let receiver = Receiver::start().expect("a receiver");
    receiver.answers(|number, received| match ANSWERS.get(number) {
        Some(after) => {
            Response { headers: vec![("retry-after".into(), (*after).into())], ..status(503) }
        }
        None => taken(received),
    });
    let lines = "    queue_config: {batch_send_deadline: 100ms, min_backoff: 100ms, \
                 max_backoff: 400ms}\n    metadata_config: {send: false}\n";
    let node = node(receiver.address(), Version::V2, lines, |config| config);
    let series = Series::new(&[("__name__", "late")], &[(now_ms(), 1.0)]);
    let answer = node.writer().send(Version::V2, &[series.row()]).expect("an answer");
    assert_eq!(answer.status, 204);
    wait_for_delivery(&node, 1);
    let all = receiver.received();
    let pauses: Vec<Duration> = all.windows(2).map(|pair| pair[1].at - pair[0].at).collect();
    assert_eq!(pauses.len(), ANSWERS.len());
    for (pause, least_ms) in pauses.iter().zip([100, 200, 400, 400]) {
        assert!(*pause >= Duration::from_millis(least_ms), "{pauses:?}");
    }
}

/// Between two nodes with the defaults, a temporary limit loses nothing; Prometheus' behaviour is
/// available by a setting.
#[test]
fn a_series_limit_of_the_centre_drops_nothing() {
    for (setting, is_kept) in [("", true), (", retry_on_http_429: false", false)] {
        let directory = tempfile::tempdir().expect("a directory");
        let full = Config::new(directory.path()).keeps_address().flag("--max-series=5");
        let server = full.start().expect("the centre starts");
        let address = server.address();
        let lines = format!("    queue_config: {{batch_send_deadline: 100ms{setting}}}\n");
        let node = node(address, Version::V2, &lines, |config| config);
        let data = recent_data(134, 8, 4);
        send_all(&node, Version::V2, &data);
        if !is_kept {
            wait::until("a refusal", TIMEOUT, || (figure(&node, FAILED, "") > 0.0).then_some(()))
                .unwrap_or_else(|error| panic!("{error}; {}", node.server.log()));
            continue;
        }
        wait_for_retries(&node);
        assert_eq!(figure(&node, FAILED, ""), 0.0);
        server.terminate().expect("it ends");
        let config = Config::new(directory.path());
        let server = config.launch_at(address).start().expect("the centre starts");
        let centre = Store { server, config, directory };
        wait_for("all to arrive", &node, &centre.server.url(), &data.series);
        assert_eq!(figure(&node, FAILED, ""), 0.0);
    }
}
