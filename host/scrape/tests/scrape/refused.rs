//! Samples that the store refuses, and series with times of their own.

use crate::append::options;
use crate::store::{MemoryStore, Stored, marker, stored};
use std::sync::Arc;
use tidepool_exposition::Format;
use tidepool_scrape::append::{Appender, BodyReader, Histograms, Options};
use tidepool_scrape::error::ScrapeError;
use tidepool_scrape::metrics::Metrics;
use tidepool_scrape::report::Report;
use tidepool_scrape::store::{Appended, Reason};

/// A target that shares its store with others.
struct Target(Appender);

impl Target {
    /// Creates a target whose series get markers although their samples have times of their own.
    fn new() -> Target {
        let options = Options { track_timestamps_staleness: true, ..options() };
        Target(Appender::new(options, Arc::<Metrics>::default(), 7))
    }

    /// Scrapes a body, or fails without one.
    async fn scrape(&mut self, store: &MemoryStore, at_ms: i64, body: Option<&str>) -> Appended {
        self.0.begin(at_ms, at_ms);
        let result = match body {
            None => Err(ScrapeError::Request("refused".into())),
            Some(body) => {
                let mut reader = BodyReader::new(Format::Prometheus, Histograms::default());
                self.0.add_body_bytes(body.len() as u64);
                let fed = reader.feed(body.as_bytes(), &mut self.0);
                fed.and_then(|()| reader.end(&mut self.0))
            }
        };
        let (totals, result) = self.0.finish(result);
        self.0.report(&Report { is_up: result.is_ok(), totals, ..Report::default() });
        self.0.commit(store, at_ms).await.expect("a store that works")
    }
}

fn of(name: &str, samples: Vec<Stored>) -> Vec<Stored> {
    samples.into_iter().filter(|sample| sample.series == name).collect()
}

/// Follows the upstream test TestScrapeLoopCreatesStaleMarkersOnOOOAppend.
#[tokio::test]
async fn a_series_ends_whose_samples_are_all_refused() {
    let (store, mut target) = (MemoryStore::default(), Target::new());
    target.scrape(&store, 1000, Some("a 1 900\nb 1\n")).await;
    let appended = target.scrape(&store, 2000, Some("a 2 500\na 3 600\nb 2\n")).await;
    assert_eq!(appended.refused.of(Reason::OutOfOrder), 2);
    target.scrape(&store, 3000, Some("b 3\n")).await;
    assert_eq!(of("a", store.take()), [stored("a", 900, 1.0), marker("a", 2000)], "once");
    // One that is stored keeps the series going.
    target.scrape(&store, 4000, Some("a 1 3900\n")).await;
    target.scrape(&store, 5000, Some("a 2 3800\na 3 4900\n")).await;
    assert_eq!(of("a", store.take()), [stored("a", 3900, 1.0), stored("a", 4900, 3.0)]);
}

/// Upstream does not remember a new series that was refused.
#[tokio::test]
async fn a_new_series_whose_samples_are_refused_has_no_marker() {
    let (store, mut target, mut other) = (MemoryStore::default(), Target::new(), Target::new());
    other.scrape(&store, 1000, Some("a 1\n")).await;
    target.scrape(&store, 2000, Some("a 1 500\n")).await;
    target.scrape(&store, 3000, Some("b 1\n")).await;
    assert_eq!(of("a", store.take()), [stored("a", 1000, 1.0)]);
}

/// Follows the upstream test
/// TestScrapeLoopRunCreatesStaleMarkersOnFailedScrapeForTimestampedMetrics.
#[tokio::test]
async fn failed_scrapes_end_series_with_times_of_their_own() {
    let (store, mut target) = (MemoryStore::default(), Target::new());
    target.scrape(&store, 1000, Some("metric_a 42 990\n")).await;
    for at_ms in [2000, 3000, 4000, 5000] {
        target.scrape(&store, at_ms, None).await;
    }
    let all = store.take_all();
    assert_eq!(all.len(), 27, "a sample, its marker, five times a report of five series");
    assert_eq!(of("metric_a", all), [stored("metric_a", 990, 42.0), marker("metric_a", 2000)]);
}

/// Regression: a first scrape had all new label sets in memory at once.
#[tokio::test]
async fn references_of_many_series_are_asked_for_in_parts() {
    let (store, mut target) = (MemoryStore::default(), Target::new());
    let page = |value: u64| -> String {
        (0..10_000).map(|number| format!("m{{n=\"{number}\"}} {value}\n")).collect()
    };
    target.scrape(&store, 1000, Some(&page(1))).await;
    let asked = std::mem::take(&mut store.lock().resolved);
    assert_eq!(asked.iter().sum::<usize>(), 10_005, "each once");
    assert!(asked.iter().all(|sets| *sets <= 1024), "{asked:?}");
    assert_eq!(store.lock().batches.len(), 1, "and all is one batch");
    assert_eq!(store.take().len(), 10_000);
    // The labels that were not kept are the same when they are made again.
    store.drop_series("m{n=\"9999\"}");
    target.scrape(&store, 2000, Some(&page(2))).await;
    let found = of("m{n=\"9999\"}", store.take());
    assert_eq!(found, [stored("m{n=\"9999\"}", 2000, 2.0)]);
}
