//! Native histograms, which only the protobuf format has.

use crate::append::options;
use crate::store::{MemoryStore, marker, shown};
use prost::Message as _;
use std::sync::Arc;
use tidepool_exposition::Format;
use tidepool_exposition::protobuf::client::{
    Bucket, BucketSpan, Exemplar, Histogram, LabelPair, Metric, MetricFamily, MetricType,
};
use tidepool_scrape::append::{Appender, BodyReader, Histograms, Options};
use tidepool_scrape::error::ScrapeError;
use tidepool_scrape::metrics::Metrics;
use tidepool_scrape::report::Totals;
use tidepool_scrape::store::Batch;

/// Two histograms with three buckets at the finest schema, so many empty ones between them.
fn body(gap: i32) -> Vec<u8> {
    changed_body(gap, |_| {})
}

/// Makes the same body with a change of the second histogram.
fn changed_body(gap: i32, change: impl Fn(&mut Histogram)) -> Vec<u8> {
    let deltas = [1, 0, 0];
    let span = || BucketSpan { offset: Some(gap), length: Some(1) };
    let label = |name: &str| LabelPair { name: Some(name.into()), value: Some("x".into()) };
    let exemplar = Exemplar { label: vec![label("id")], value: Some(1.0), timestamp: None };
    let count = deltas.len() as u64;
    let histogram = Histogram {
        sample_count: Some(count),
        sample_sum: Some(1.5),
        bucket: vec![Bucket {
            cumulative_count: Some(count),
            upper_bound: Some(1.0),
            exemplar: Some(exemplar),
            ..Bucket::default()
        }],
        schema: Some(8),
        zero_threshold: Some(0.001),
        zero_count: Some(0),
        positive_span: deltas.iter().map(|_| span()).collect(),
        positive_delta: deltas.to_vec(),
        ..Histogram::default()
    };
    let metric = |name: &str| {
        let mut histogram = histogram.clone();
        if name == "b" {
            change(&mut histogram);
        }
        let (label, histogram) = (vec![label(name)], Some(histogram));
        Metric { label, histogram, ..Metric::default() }
    };
    let family = MetricFamily {
        name: Some("h".into()),
        r#type: Some(MetricType::Histogram.into()),
        metric: vec![metric("a"), metric("b")],
        ..MetricFamily::default()
    };
    family.encode_length_delimited_to_vec()
}

struct Scraper {
    appender: Appender,
    metrics: Arc<Metrics>,
    store: MemoryStore,
    totals: Totals,
}

impl Scraper {
    fn new(options: Options) -> Scraper {
        let metrics = Arc::<Metrics>::default();
        let appender = Appender::new(options, metrics.clone(), 7);
        let (store, totals) = (MemoryStore::default(), Totals::default());
        Scraper { appender, metrics, store, totals }
    }

    async fn scrape(
        &mut self,
        at_ms: i64,
        histograms: Histograms,
        body: &[u8],
    ) -> (Result<(), ScrapeError>, Arc<Batch>) {
        self.appender.begin(at_ms, at_ms);
        let mut reader = BodyReader::new(Format::Protobuf, histograms);
        let fed = reader.feed(body, &mut self.appender);
        let fed = fed.and_then(|()| reader.end(&mut self.appender));
        let (totals, result) = self.appender.finish(fed);
        self.totals = totals;
        self.appender.commit(&self.store, at_ms).await.expect("the store takes it");
        let batch = self.store.lock().batches.last().cloned().expect("a batch");
        (result, batch)
    }
}

const NATIVE: Histograms =
    Histograms { native: true, always_classic: false, convert_classic: false };

/// Upstream: TestScrapeLoopAppend, the cases of native histograms.
#[tokio::test]
async fn native_histograms_are_rows_and_get_markers() {
    let mut scraper = Scraper::new(options());
    let (result, batch) = scraper.scrape(1000, NATIVE, &body(40)).await;
    assert_eq!(result, Ok(()));
    let rows: Vec<(String, i64, usize)> = batch
        .histograms
        .iter()
        .map(|row| (shown(&row.labels), row.timestamp_ms, row.histogram.buckets()))
        .collect();
    assert_eq!(rows, [("h{a=\"x\"}".into(), 1000, 3), ("h{b=\"x\"}".into(), 1000, 3)]);
    assert!(batch.exemplars.is_empty(), "theirs need a time");
    assert!(batch.series.is_empty());
    scraper.scrape(2000, NATIVE, &[]).await.0.expect("an empty body is good");
    assert_eq!(scraper.store.take(), [marker("h{a=\"x\"}", 2000), marker("h{b=\"x\"}", 2000)]);

    let both = Histograms { always_classic: true, ..NATIVE };
    let (_, batch) = scraper.scrape(3000, both, &body(40)).await;
    assert_eq!((batch.histograms.len(), batch.series.len()), (2, 8));
    assert_eq!(batch.exemplars.len(), 2, "those of classic buckets do without");
    let mut scraper = Scraper::new(options());
    let (_, batch) = scraper.scrape(1000, Histograms::default(), &body(40)).await;
    assert_eq!((batch.histograms.len(), batch.series.len()), (0, 8));
}

/// Follows the upstream tests TestScrapeLoop_HistogramBucketLimit, TestNativeHistogramMaxSchemaSet.
#[tokio::test]
async fn histograms_become_coarser_or_fail_the_scrape() {
    let mut scraper = Scraper::new(Options { bucket_limit: 2, ..options() });
    let (result, batch) = scraper.scrape(1000, NATIVE, &body(40)).await;
    assert_eq!(result, Ok(()));
    let histogram = &batch.histograms[0].histogram;
    assert!(histogram.schema < 8 && histogram.buckets() <= 2);
    let mut scraper = Scraper::new(Options { bucket_limit: 2, ..options() });
    let (result, batch) = scraper.scrape(2000, NATIVE, &body(5000)).await;
    assert_eq!(result, Err(ScrapeError::BucketLimit { limit: 2 }));
    assert!(batch.histograms.is_empty());
    assert_eq!(scraper.metrics.exceeded_bucket_limit.get(), 1);
    let mut scraper = Scraper::new(Options { schema_max: 3, ..options() });
    let (_, batch) = scraper.scrape(1000, NATIVE, &body(40)).await;
    assert_eq!(batch.histograms[0].histogram.schema, 3);
}

/// Upstream's head refuses in `Append` what `Validate` finds, and that error fails a scrape.
#[tokio::test]
async fn histograms_that_cannot_be_stored_fail_the_scrape() {
    type Change = fn(&mut Histogram);
    let cases: [(Change, &str); 4] = [
        (|h| h.sample_count = Some(7), "its buckets have 3 observations, but its count is 7"),
        (|h| h.schema = Some(9), "its schema is 9; from -4 to 8 and -53 are known"),
        (|h| h.positive_delta[1] = -2, "positive bucket 2 has a negative count"),
        (|h| h.positive_span[1].offset = Some(-1), "positive span 2"),
    ];
    for (change, why) in cases {
        let mut scraper = Scraper::new(options());
        let (result, batch) = scraper.scrape(1000, NATIVE, &changed_body(40, change)).await;
        let error = result.expect_err(why).to_string();
        assert!(error.contains(why) && error.contains("h{b=\"x\"}"), "{error}");
        assert!(batch.histograms.is_empty(), "nothing of it is stored");
        let Totals { scraped, added, series_added, .. } = scraper.totals;
        assert_eq!((scraped, added, series_added), (2, 1, 1), "{why}");
        let classic = scraper.scrape(2000, Histograms::default(), &changed_body(40, change)).await;
        assert_eq!(classic.0, Ok(()), "what is ignored is not looked at");
    }
    // Observations that are not a number are in no bucket.
    let mut scraper = Scraper::new(options());
    let of_nan: Change = |h| (h.sample_count, h.sample_sum) = (Some(7), Some(f64::NAN));
    assert_eq!(scraper.scrape(1000, NATIVE, &changed_body(40, of_nan)).await.0, Ok(()));
    // A limit prevails: the samples beyond it are counted only.
    let mut scraper = Scraper::new(Options { sample_limit: 1, ..options() });
    let wrong = changed_body(40, |h| h.sample_count = Some(7));
    let (result, _) = scraper.scrape(1000, NATIVE, &wrong).await;
    assert_eq!(result, Err(ScrapeError::SampleLimit { limit: 1 }));
}
