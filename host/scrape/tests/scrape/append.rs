//! Single scrapes of text, as upstream's tests of `scrapeLoop.append` have them.

use crate::store::{MemoryStore, Stored, marker, stored};
use std::sync::{Arc, Mutex};
use tidepool_exposition::{Format, NameValidation};
use tidepool_relabel::{Action, Rule, RuleSpec};
use tidepool_scrape::append::{Appender, BodyReader, Histograms, Mutator, Options};
use tidepool_scrape::error::ScrapeError;
use tidepool_scrape::memory::MemoryBound;
use tidepool_scrape::metrics::Metrics;
use tidepool_scrape::report::{Report, Totals};
use tidepool_scrape::store::{Appended, Reason, Refused};

pub fn options() -> Options {
    Options {
        mutator: Mutator {
            target: Vec::new(),
            honor_labels: false,
            rules: Arc::default(),
            validation: NameValidation::Utf8,
            limits: Default::default(),
        },
        honor_timestamps: true,
        track_timestamps_staleness: false,
        sample_limit: 0,
        bucket_limit: 0,
        schema_max: 8,
        extra_metrics: false,
    }
}

fn dropping(label: &str) -> Options {
    let spec = RuleSpec {
        source_labels: vec![label.into()],
        regex: ".+".into(),
        ..RuleSpec::new(Action::Drop)
    };
    let mut options = options();
    options.mutator.rules = Arc::new(Mutex::new(vec![Rule::new(spec).expect("a rule")]));
    options
}

/// A target whose bodies are given.
pub struct Target {
    appender: Appender,
    metrics: Arc<Metrics>,
    pub store: MemoryStore,
    format: Format,
    last: Result<Appended, tidepool_scrape::store::StoreError>,
}

impl Target {
    pub fn new(options: Options) -> Target {
        let metrics = Arc::<Metrics>::default();
        Target {
            appender: Appender::new(options, metrics.clone(), 7),
            metrics,
            store: MemoryStore::default(),
            format: Format::Prometheus,
            last: Ok(Appended::default()),
        }
    }

    fn feed(&mut self, body: &str) -> Result<(), ScrapeError> {
        let mut reader = BodyReader::new(self.format, Histograms::default());
        if body.is_empty() {
            return Ok(());
        }
        self.appender.add_body_bytes(body.len() as u64);
        // In pieces that no line ends with.
        for piece in body.as_bytes().chunks(5) {
            reader.feed(piece, &mut self.appender)?;
        }
        reader.end(&mut self.appender)
    }

    async fn scrape(&mut self, at_ms: i64, body: &str) -> (Totals, Result<(), ScrapeError>) {
        self.appender.begin(at_ms, at_ms);
        let result = self.feed(body);
        self.finish(result).await
    }

    async fn fail(&mut self, at_ms: i64) {
        self.appender.begin(at_ms, at_ms);
        let (_, result) = self.finish(Err(ScrapeError::Status("500".into()))).await;
        assert!(result.is_err());
    }

    async fn finish(
        &mut self,
        result: Result<(), ScrapeError>,
    ) -> (Totals, Result<(), ScrapeError>) {
        let (totals, result) = self.appender.finish(result);
        let is_up = result.is_ok();
        self.appender.report(&Report { is_up, totals, ..Report::default() });
        self.last = self.appender.commit(&self.store, 0).await;
        (totals, result)
    }

    /// Does a good scrape; returns the stored samples without the report.
    pub async fn good(&mut self, at_ms: i64, body: &str) -> Vec<Stored> {
        let (_, result) = self.scrape(at_ms, body).await;
        assert_eq!(result, Ok(()), "{body}");
        self.store.take()
    }
}

fn totals(scraped: u64, added: u64, series_added: u64) -> Totals {
    Totals { scraped, added, series_added, body_bytes: 0 }
}

fn counts(totals: Totals) -> Totals {
    Totals { body_bytes: 0, ..totals }
}

#[tokio::test]
async fn the_report_is_part_of_the_batch() {
    let mut target = Target::new(Options { extra_metrics: true, ..options() });
    let (found, _) = target.scrape(1000, "a 1\nb 2\n").await;
    assert_eq!(found, Totals { body_bytes: 8, ..totals(2, 2, 2) });
    let expected = [
        stored("a", 1000, 1.0),
        stored("b", 1000, 2.0),
        stored("up", 1000, 1.0),
        stored("scrape_duration_seconds", 1000, 0.0),
        stored("scrape_samples_scraped", 1000, 2.0),
        stored("scrape_samples_post_metric_relabeling", 1000, 2.0),
        stored("scrape_series_added", 1000, 2.0),
        stored("scrape_timeout_seconds", 1000, 0.0),
        stored("scrape_sample_limit", 1000, 0.0),
        stored("scrape_body_size_bytes", 1000, 8.0),
    ];
    assert_eq!(target.store.take_all(), expected);
    assert_eq!(target.store.lock().batches.len(), 1);
    assert_eq!(target.store.lock().resolved, [10], "new series are asked for at once");
    assert_eq!(target.scrape(2000, "a 1\nb 2\n").await.1, Ok(()));
    assert_eq!(target.store.lock().resolved, [10]);
    assert_eq!(target.store.values("scrape_series_added"), [0.0]);
}

/// Upstream: TestScrapeLoopAppendStaleness, …NoStalenessIfTimestamp,
/// …StalenessIfTrackTimestampStaleness, TestScrapeLoopSeriesRefChange (explicit timestamps).
#[tokio::test]
async fn vanished_series_get_markers() {
    let mut target = Target::new(options());
    assert_eq!(target.good(1000, "a 1\n").await, [stored("a", 1000, 1.0)]);
    assert_eq!(target.good(2000, "").await, [marker("a", 2000)]);
    assert_eq!(target.good(3000, "").await, []);

    assert_eq!(target.good(4000, "b 1 3500\n").await, [stored("b", 3500, 1.0)]);
    assert_eq!(target.good(5000, "").await, [], "its times are its own");

    assert_eq!(target.good(6000, "a 1\n").await, [stored("a", 6000, 1.0)]);
    let both = [stored("a", 6500, 2.0), marker("a", 7000)];
    assert_eq!(target.good(7000, "a 2 6500\n").await, both);

    let mut target = Target::new(Options { track_timestamps_staleness: true, ..options() });
    assert_eq!(target.good(4000, "b 1 3500\n").await, [stored("b", 3500, 1.0)]);
    assert_eq!(target.good(5000, "").await, [marker("b", 5000)]);
}

/// Follows the upstream tests TestScrapeLoopRunCreatesStaleMarkersOnFailedScrape, …OnParseFailure.
#[tokio::test]
async fn failed_scrapes_mark_what_they_did_not_have() {
    let mut target = Target::new(options());
    target.good(1000, "a 1\nb 2\n").await;
    target.fail(2000).await;
    let down = target.store.take_all();
    assert!(down.starts_with(&[stored("up", 2000, 0.0)]), "{down:?}");
    assert!(down.ends_with(&[marker("a", 2000), marker("b", 2000)]), "{down:?}");
    target.fail(3000).await;
    assert_eq!(target.store.take(), []);

    target.good(4000, "a 1\nb 2\n").await;
    let (found, result) = target.scrape(5000, "a 1\nc 1\n7&-\nb 2\n").await;
    let error = result.expect_err("the third line is no sample").to_string();
    assert!(error.contains("line 3"), "{error}");
    assert_eq!(counts(found), totals(2, 2, 1));
    assert_eq!(target.store.take(), [marker("b", 5000)], "a is still exposed; nothing of it stays");
    assert_eq!(target.good(6000, "b 3\n").await, [stored("b", 6000, 3.0), marker("a", 6000)]);
}

/// A body that does not arrive as a whole is ignored: upstream reads all of it before it parses.
#[tokio::test]
async fn a_body_that_breaks_off_counts_as_none() {
    let mut target = Target::new(options());
    target.good(1000, "a 1\nb 2\n").await;
    target.appender.begin(2000, 2000);
    target.feed("a 1\n").expect("a good piece");
    let (found, _) = target.finish(Err(ScrapeError::Request("cut off".into()))).await;
    assert_eq!(found, Totals::default());
    assert_eq!(target.store.take(), [marker("a", 2000), marker("b", 2000)]);
    assert_eq!(target.good(3000, "a 1\n").await, [stored("a", 3000, 1.0)]);
}

/// Follows the upstream tests TestScrapeLoop_RespectTimestamps, …DiscardTimestamps.
#[tokio::test]
async fn times_are_honored_or_not() {
    let body = "a{x=\"1\"} 1 0\n";
    let mut target = Target::new(options());
    assert_eq!(target.good(1000, body).await, [stored("a{x=\"1\"}", 0, 1.0)]);
    let mut target = Target::new(Options { honor_timestamps: false, ..options() });
    assert_eq!(target.good(1000, body).await, [stored("a{x=\"1\"}", 1000, 1.0)]);
    assert_eq!(target.good(2000, "").await, [marker("a{x=\"1\"}", 2000)]);
    let mut target = Target { format: Format::Openmetrics, ..Target::new(options()) };
    assert_eq!(target.good(1000, "a 1 2.5\n# EOF\n").await, [stored("a", 2500, 1.0)]);
}

/// Follows the upstream tests TestScrapeLoopSeriesAddedDuplicates,
/// TestScrapeLoopAppendGracefullyIfAmend….
#[tokio::test]
async fn duplicates_are_counted_and_the_first_is_kept() {
    let mut target = Target::new(options());
    let (found, result) = target.scrape(1000, "a 1\na 2\na 3\n").await;
    assert_eq!((counts(found), result), (totals(3, 3, 1), Ok(())));
    assert_eq!(target.store.take(), [stored("a", 1000, 1.0)]);
    assert_eq!(target.metrics.samples_duplicate.get(), 2);
    let (found, _) = target.scrape(2000, "a 1\na 2\na 3\n").await;
    assert_eq!(counts(found), totals(3, 3, 0));

    // With times of their own they are samples like any other.
    let mut target = Target::new(options());
    let (found, result) = target.scrape(1000, "a 1 100\na 2 200\na 3 150\n").await;
    assert_eq!((counts(found), result), (totals(3, 3, 1), Ok(())));
    assert_eq!(target.store.take(), [stored("a", 100, 1.0), stored("a", 200, 2.0)]);
    assert_eq!(target.metrics.samples_out_of_order.get(), 1);
}

/// Follows the upstream test TestScrapeLoopOutOfBoundsTimeError.
#[tokio::test]
async fn samples_far_ahead_of_the_clock_are_dropped() {
    let mut target = Target::new(options());
    let ten_minutes = 600_000;
    let body = format!("a 1 {}\nb 1 {}\n", 1000 + ten_minutes, 1001 + ten_minutes);
    let (found, result) = target.scrape(1000, &body).await;
    assert_eq!((counts(found), result), (totals(2, 2, 1), Ok(())));
    assert_eq!(target.store.take(), [stored("a", 1000 + ten_minutes, 1.0)]);
    assert_eq!(target.metrics.samples_out_of_bounds.get(), 1);
}

/// Follows the upstream test TestScrapeLoopAppendSampleLimit.
#[tokio::test]
async fn the_sample_limit_counts_after_relabeling() {
    let mut target = Target::new(Options { sample_limit: 1, ..dropping("deleteme") });
    let error = Err(ScrapeError::SampleLimit { limit: 1 });
    let (found, result) = target.scrape(1000, "a 1\nb 1\nc 1\n").await;
    assert_eq!((counts(found), result), (totals(3, 3, 1), error.clone()));
    assert_eq!(target.store.take(), []);
    assert_eq!(target.metrics.exceeded_sample_limit.get(), 1);
    let yes = "{deleteme=\"yes\"} 1\n";
    let body = format!("a 1\nb 1\nc{yes}d 1\ne 1\nf 1\ng 1\nh{yes}i{yes}");
    let (found, result) = target.scrape(2000, &body).await;
    assert_eq!((counts(found), result), (totals(9, 6, 0), error));
    let up = target.store.take_all();
    assert!(up.starts_with(&[stored("up", 2000, 0.0)]), "{up:?}");
    let (found, result) = target.scrape(3000, &format!("a 1\nc{yes}")).await;
    assert_eq!((counts(found), result), (totals(2, 1, 0), Ok(())));
}

/// Follows the upstream tests TestScrapeLoopRunCreatesStaleMarkersOnSampleLimit,
/// TestScrapeLoopAppendSampleLimitWithDisappearingSeries, …ReplaceAllSamples.
#[tokio::test]
async fn series_within_the_sample_limit_stay_without_markers() {
    let mut target = Target::new(Options { sample_limit: 4, ..options() });
    target.good(1000, "a 1\nb 1\nc 1\nd 1\n").await;
    let (found, _) = target.scrape(2000, "a 2\nb 2\nc 2\nd 2\ne 9\n").await;
    assert_eq!(counts(found), totals(5, 5, 0));
    assert_eq!(target.store.take(), []);
    assert_eq!(target.good(3000, "a 3\nb 3\nc 3\nd 3\n").await.len(), 4);
    let (found, _) = target.scrape(4000, "e 1\nf 1\ng 1\nh 1\n").await;
    assert_eq!(counts(found), totals(4, 4, 4));
    let stored = target.store.take();
    let of = |names: &[&str]| names.iter().map(|name| marker(name, 4000)).collect::<Vec<_>>();
    assert_eq!(stored.len(), 8);
    assert_eq!(stored[4..], of(&["a", "b", "c", "d"]), "markers pass the limit");
}

/// Follows the upstream test TestScrapeLoop_ChangingMetricString.
#[tokio::test]
async fn a_series_may_be_written_in_another_way() {
    let mut target = Target::new(options());
    let series = "m{a=\"1\",b=\"1\"}";
    assert_eq!(target.good(1000, "m{a=\"1\",b=\"1\"} 1\n").await, [stored(series, 1000, 1.0)]);
    assert_eq!(target.good(2000, "m{b=\"1\",a=\"1\"} 2\n").await, [stored(series, 2000, 2.0)]);
}

/// Follows the upstream tests TestScrapeLoopSeriesRefChange,
/// TestScrapeLoopAppendCacheEntryButErrNotFound, TestScrapeAddFast.
#[tokio::test]
async fn a_series_that_the_store_dropped_is_asked_for_again() {
    let mut target = Target::new(options());
    target.good(1000, "a 1\nb 1\nm{y=\"1\",x=\"1\"} 1\n").await;
    target.store.drop_series("a");
    target.store.drop_series("up");
    let expected =
        [stored("a", 2000, 2.0), stored("b", 2000, 2.0), marker("m{x=\"1\",y=\"1\"}", 2000)];
    assert_eq!(target.good(2000, "a 2\nb 2\n").await, expected);
    assert_eq!(target.last, Ok(Appended::default()));
    assert_eq!(target.good(3000, "b 3\n").await, [stored("b", 3000, 3.0), marker("a", 3000)]);
    assert_eq!(target.store.lock().batches.len(), 3);
}

#[tokio::test]
async fn series_that_the_store_refuses_do_not_fail_the_scrape() {
    let mut target = Target::new(options());
    target.store.lock().refused.insert("b".into());
    assert_eq!(target.good(1000, "a 1\nb 1\nc 1\n").await.len(), 2);
    let refused = Refused::new(Reason::SeriesLimit, 1);
    let first_refusal = Some("b: too many series".into());
    let expected = Appended { refused, first_refusal, ..Appended::default() };
    assert_eq!(target.last, Ok(expected));
    target.store.lock().refused.clear();
    assert_eq!(target.good(2000, "a 2\nb 2\nc 2\n").await.len(), 3);
    assert_eq!(target.good(3000, "a 2\nc 2\n").await.len(), 3, "b has a marker");
}

#[tokio::test]
async fn a_store_that_fails_loses_one_scrape() {
    let mut target = Target::new(options());
    target.store.lock().is_broken = true;
    assert_eq!(target.scrape(1000, "# HELP a help\na 1\n").await.1, Ok(()));
    assert!(target.last.is_err());
    target.store.lock().is_broken = false;
    assert_eq!(target.good(2000, "# HELP a help\na 2\n").await, [stored("a", 2000, 2.0)]);
    let batch = target.store.lock().batches[0].clone();
    let families: Vec<&str> = batch.metadata.iter().map(|of| of.family.as_str()).collect();
    assert!(families.contains(&"a"), "{families:?}");
}

/// Follows the upstream tests TestScrapeLoopAppend (exemplars), TestScrapeLoopAppendExemplarSeries.
#[tokio::test]
async fn exemplars_belong_to_their_series() {
    let mut target = Target { format: Format::Openmetrics, ..Target::new(options()) };
    let long = "x".repeat(129);
    let body = format!(
        "# TYPE m counter\n\
        m_total{{n=\"1\"}} 1 # {{t=\"1\"}} 1.0 10000\n\
        m_total{{n=\"2\"}} 2 # {{t=\"2\"}} 2.0\n\
        m_total{{n=\"3\"}} 2 # {{t=\"{long}\"}} 2.0\n\
        # EOF\n"
    );
    assert_eq!(target.good(5000, &body).await.len(), 3);
    let batch = target.store.lock().batches[0].clone();
    let found: Vec<(String, String, f64, i64)> = batch
        .exemplars
        .iter()
        .map(|row| {
            let labels = crate::store::shown(&row.series);
            (labels, row.labels.get("t").to_owned(), row.value, row.timestamp_ms)
        })
        .collect();
    let first = ("m_total{n=\"1\"}".to_owned(), "1".to_owned(), 1.0, 10_000_000);
    let second = ("m_total{n=\"2\"}".to_owned(), "2".to_owned(), 2.0, 5000);
    assert_eq!(found, [first, second]);
}

/// Regression: 52 kB on the wire held all targets for seconds, because each exemplar was inserted
/// by a search through those before it. As many as here would take hours that way.
#[tokio::test]
async fn exemplars_come_to_the_store_by_ascending_time() {
    const COUNT: i64 = 500_000;
    let mut target = Target { format: Format::Openmetrics, ..Target::new(options()) };
    let line = |number: i64| format!("m_total 1 1 # {{}} 1 {}\n", COUNT - number);
    let body: String = (0..COUNT).map(line).chain(["# EOF\n".to_owned()]).collect();
    target.appender.begin(COUNT * 1000, COUNT * 1000);
    let mut reader = BodyReader::new(target.format, Histograms::default());
    for piece in body.as_bytes().chunks(16 * 1024) {
        reader.feed(piece, &mut target.appender).expect("a good body");
    }
    let fed = reader.end(&mut target.appender);
    let (_, result) = target.finish(fed).await;
    assert_eq!(result, Ok(()));
    let batch = target.store.lock().batches[0].clone();
    let times = batch.exemplars.iter().map(|row| row.timestamp_ms / 1000);
    assert!(times.eq(1..=COUNT));
}

/// Upstream: `Exemplar.Equals`, by which the exemplar storage drops those that it has already.
#[tokio::test]
async fn exemplars_without_a_time_are_stored_once() {
    let mut target = Target { format: Format::Openmetrics, ..Target::new(options()) };
    // The exemplar of each scrape, and whether it is stored.
    let scrapes = [
        ("{t=\"1\"} 1", true),
        ("{t=\"1\"} 1", false),
        ("{t=\"1\"} 1.0", false),
        ("{t=\"1\"} 2", true),
        ("{t=\"2\"} 2", true),
        ("{t=\"1\"} 1", true),
        ("", false),
        ("{t=\"1\"} 1", false),
        // The first is older than the newest, the second is newer.
        ("{t=\"9\"} 9 3", true),
        ("{t=\"1\"} 1", false),
        ("{t=\"9\"} 9 11.5", true),
        ("{t=\"1\"} 1", true),
        ("{t=\"1\"} NaN", true),
        ("{t=\"1\"} NaN", true),
        ("{} 1", true),
        ("{} 1", false),
        ("{x=\"\"} 1", false),
    ];
    for (number, (exemplar, is_stored)) in scrapes.into_iter().enumerate() {
        let mark = if exemplar.is_empty() { "" } else { " # " };
        let body = format!("# TYPE m counter\nm_total 1{mark}{exemplar}\nn_total 1\n# EOF\n");
        target.good(1000 * (number as i64 + 1), &body).await;
        let batch = target.store.lock().batches.last().cloned().expect("a batch");
        assert_eq!(batch.exemplars.len(), usize::from(is_stored), "{number}: {exemplar}");
    }
    let exemplar = "m_total 1 # {t=\"5\"} 5\n";
    let (_, result) = target.scrape(30_000, exemplar).await;
    assert!(result.is_err(), "cut off: nothing of it is stored");
    target.store.lock().is_broken = true;
    let (_, result) = target.scrape(31_000, &format!("{exemplar}# EOF\n")).await;
    assert!(result.is_ok() && target.last.is_err());
    target.store.lock().is_broken = false;
    for (at_ms, count) in [(32_000, 1), (33_000, 0)] {
        target.good(at_ms, &format!("{exemplar}# EOF\n")).await;
        let batch = target.store.lock().batches.last().cloned().expect("a batch");
        assert_eq!(batch.exemplars.len(), count);
    }
}

/// Follows the upstream tests TestLeQuantileReLabel, TestScrapeLoopMetadata.
#[tokio::test]
async fn bounds_are_numbers_and_families_have_metadata() {
    let mut target = Target::new(options());
    let body = "# TYPE h histogram\n# HELP h of x\nh_bucket{le=\"1\"} 1\nh_bucket{le=\"+Inf\"} 2\n";
    let series: Vec<String> =
        target.good(1000, body).await.into_iter().map(|stored| stored.series).collect();
    assert_eq!(series, ["h_bucket{le=\"1.0\"}", "h_bucket{le=\"+Inf\"}"]);
    let families = target.appender.families();
    let family = families.lock().expect("no test panics").get("h").expect("h has metadata");
    assert_eq!((family.kind.as_str(), family.help.as_str()), ("histogram", "of x"));
    target.good(2000, body).await;
    let batches = target.store.lock().batches.clone();
    assert!(batches[0].metadata.iter().any(|of| of.family == "h"));
    assert!(batches[1].metadata.is_empty(), "it has not changed");
}

/// Upstream: TestScrapeLoopAppendStaleness for what the target's end marks.
#[tokio::test]
async fn the_end_marks_the_report_too() {
    let mut target = Target::new(options());
    target.good(1000, "a 1\n").await;
    target.appender.end(2000);
    target.appender.commit(&target.store, 0).await.expect("the store takes it");
    let series: Vec<String> = target
        .store
        .take_all()
        .into_iter()
        .inspect(|stored| assert_eq!(stored, &marker(&stored.series, 2000)))
        .map(|stored| stored.series)
        .collect();
    let expected = [
        "a",
        "up",
        "scrape_duration_seconds",
        "scrape_samples_scraped",
        "scrape_samples_post_metric_relabeling",
        "scrape_series_added",
    ];
    assert_eq!(series, expected);
}

/// Follows the upstream tests TestScrapeLoopRunReportsTargetDownOnInvalidUTF8,
/// TestScrapeLoopDiscardDuplicateLabels.
#[tokio::test]
async fn what_cannot_be_read_fails_the_scrape() {
    for body in ["a{l=\"\u{fffd}", "a 1\nb x\n", "a{b=\"c\"\n"] {
        let mut target = Target::new(options());
        let (_, result) = target.scrape(1000, body).await;
        assert!(matches!(result, Err(ScrapeError::Parse(_))), "{body}: {result:?}");
        assert_eq!(target.store.values("up"), [0.0]);
        assert_eq!(target.store.take(), []);
    }
    let mut target = Target::new(options());
    let (found, result) = target.scrape(1000, "a 1\na{le=\"1\",le=\"2\"} 1\n").await;
    assert!(matches!(result, Err(ScrapeError::RepeatedLabel { .. })), "{result:?}");
    assert_eq!(counts(found), totals(2, 1, 1));
    let mut target = Target { format: Format::Openmetrics, ..Target::new(options()) };
    let (_, result) = target.scrape(1000, "a 1\n").await;
    assert!(result.is_err(), "cut off before its end");
}

/// Upstream's parser looks at labels before a sample counts as scraped.
#[tokio::test]
async fn samples_whose_text_is_wrong_do_not_count() {
    let nameless = ["{x=\"1\"} 1\n", "{} 1\n", "{__name__=\"b\"} 1\n"];
    for body in nameless.iter().chain(&["a{x=1} 1\n", "{\"a\",\"b\"} 1\n", "a{\"x\"} 1\n"]) {
        for format in [Format::Prometheus, Format::Openmetrics] {
            let mut target = Target { format, ..Target::new(options()) };
            let (found, result) = target.scrape(1000, &format!("m 1\n{body}m2 1\n")).await;
            assert!(matches!(result, Err(ScrapeError::Parse(_))), "{body}: {result:?}");
            assert_eq!(counts(found), totals(1, 1, 1), "{body}");
        }
    }
}

/// Upstream: TestScrapeLoopAppend, the cases of empty labels.
#[tokio::test]
async fn empty_labels_take_those_of_the_target_away() {
    let body = "a{job=\"\",n=\"1\"} 1\nb{job=\"own\"} 2\nc 3\n";
    let of = |honor_labels| {
        let mut options = options();
        options.mutator.target = vec![("job".into(), "target".into())];
        Options { mutator: Mutator { honor_labels, ..options.mutator }, ..options }
    };
    let honored = ["a{n=\"1\"}", "b{job=\"own\"}", "c{job=\"target\"}"];
    let renamed =
        ["a{job=\"target\",n=\"1\"}", "b{exported_job=\"own\",job=\"target\"}", honored[2]];
    for (honor_labels, expected) in [(true, honored), (false, renamed)] {
        let mut target = Target::new(of(honor_labels));
        for at_ms in [1000, 2000] {
            let found = target.good(at_ms, body).await;
            let found: Vec<&str> = found.iter().map(|stored| stored.series.as_str()).collect();
            assert_eq!(found, expected);
        }
    }
}

/// Regression: 764 kB on the wire took 3 GB, because each line with a time of its own was a row,
/// and rows were not counted.
#[tokio::test]
async fn a_scrape_that_finds_no_memory_fails_and_gives_it_back() {
    const BOUND_BYTES: u64 = 4 << 20;
    let bound = MemoryBound::new(BOUND_BYTES);
    let line = |kind: &str, number: usize| match kind {
        "rows" => format!("a 1 {number}\n"),
        "series" => format!("a{{n=\"{number}\"}} 1\n"),
        _ => format!("# TYPE a{number} gauge\n"),
    };
    for kind in ["rows", "series", "families"] {
        let mut target = Target::new(options());
        target.appender = target.appender.within(&bound);
        target.good(1000, "good 1\n").await;
        target.appender.begin(2000, 2000);
        let mut reader = BodyReader::new(Format::Prometheus, Histograms::default());
        let (mut lines, mut held_max) = (0, 0);
        let error = loop {
            reader.feed(line(kind, lines).as_bytes(), &mut target.appender).expect("a good line");
            lines += 1;
            let held = target.appender.hold();
            held_max = held_max.max(bound.held_bytes());
            if let Err(error) = held {
                break error;
            }
        };
        assert!(matches!(error, ScrapeError::Memory { .. }), "{error}");
        // Tables grow by doubling, and are counted when they have.
        assert!(held_max <= 2 * BOUND_BYTES, "{kind}: {held_max}");
        let (_, result) = target.finish(Err(error)).await;
        assert!(result.is_err());
        target.store.take();
        assert!(bound.held_bytes() < BOUND_BYTES / 20, "{kind}: {}", bound.held_bytes());
        assert_eq!(target.good(3000, "good 1\n").await.len(), 1, "{kind}");
        drop(target);
        assert_eq!(bound.held_bytes(), 0);
    }
}
