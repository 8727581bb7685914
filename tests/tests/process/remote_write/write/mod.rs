//! The protocol line by line, each test with the line that it proves: [`negotiation`] whether a
//! request is remote write at all, [`statuses`] the sender's next action, [`headers`] the counts it
//! gets. The others are about rows: which are written, which are refused while the rest of their
//! request is stored.
//!
//! Beside these: `tests/histograms` (accepted native histograms, compared with Prometheus),
//! `exemplars`, `metadata`, `disk_full` and `lifecycle` (503 during a pause), `compliance` (the
//! suite of upstream).

mod headers;
mod labels;
mod negotiation;
mod order;
mod other_kinds;
mod statuses;

use tidepool_tests::checksum::assert_same;
use tidepool_tests::http::Response;
use tidepool_tests::remote_read::everything;
use tidepool_tests::remote_write::{Version, Written};
use tidepool_tests::series::{Row, Series};
use tidepool_tests::tidepool::Store;

/// A store with a record of its expected content.
struct Checked {
    store: Store,
    held: Vec<Series>,
}

impl Checked {
    fn start() -> Checked {
        Checked { store: Store::start().expect("tidepool starts"), held: Vec::new() }
    }

    fn start_with(flag: &str) -> Checked {
        let store = Store::start_with(|config| config.flag(flag)).expect("tidepool starts");
        Checked { store, held: Vec::new() }
    }

    fn send(&self, version: Version, series: &[&Series]) -> Response {
        let rows: Vec<Row<'_>> = series.iter().map(|s| s.row()).collect();
        self.store.writer().send(version, &rows).expect("an answer")
    }

    /// Sends valid series and one to be refused for one of these reasons; the valid ones are
    /// stored.
    #[track_caller]
    fn refuses(&mut self, version: Version, bad: &Series, good: &[&Series], reasons: &[&str]) {
        let mut series = vec![bad];
        series.extend(good);
        let response = self.send(version, &series);
        self.held.extend(good.iter().map(|s| (*s).clone()));
        assert_refused(version, &response, samples(good), reasons);
    }

    /// Sends series that must be written.
    #[track_caller]
    fn accepts(&mut self, version: Version, series: &[&Series]) {
        self.accepts_again(version, series);
        self.held.extend(series.iter().map(|s| (*s).clone()));
    }

    /// Sends series that are already stored.
    #[track_caller]
    fn accepts_again(&mut self, version: Version, series: &[&Series]) {
        let response = self.send(version, series);
        assert_accepted(version, &response, samples(series));
    }

    /// Asserts that everything stored is returned, by both kinds of answer.
    #[track_caller]
    fn assert_held(&self) {
        let reader = self.store.reader();
        let query = [everything(i64::MIN, i64::MAX)];
        let streamed = reader.streamed(&query).expect("a stream");
        assert_same("streamed", &self.held, &streamed[0]);
        let samples = reader.samples(&query).expect("samples");
        assert_same("samples", &self.held, &samples[0]);
    }
}

fn samples(series: &[&Series]) -> u64 {
    series.iter().map(|s| s.samples.len() as u64).sum()
}

#[track_caller]
fn assert_accepted(version: Version, response: &Response, samples: u64) {
    assert_eq!(response.status, 204, "{version}: {}", response.text());
    assert!(response.body.is_empty(), "a 204 with {:?}", response.text());
    assert_written(version, response, samples);
}

#[track_caller]
fn assert_refused(version: Version, response: &Response, samples: u64, reasons: &[&str]) {
    let text = response.text();
    assert_eq!(response.status, 400, "{version}: {text}");
    let lower = text.to_lowercase();
    assert!(reasons.iter().any(|reason| lower.contains(reason)), "{version}: {text:?}");
    assert_written(version, response, samples);
}

/// Asserts the counts: 2.0 has three headers; 1.0 must not have them.
#[track_caller]
fn assert_written(version: Version, response: &Response, samples: u64) {
    match version {
        Version::V1 => assert!(!Written::is_mentioned(response), "{:?}", response.headers),
        Version::V2 => {
            let expected = Written { samples, ..Written::default() };
            assert_eq!(Written::from_response(response), Some(expected), "{:?}", response.headers);
        }
    }
}
