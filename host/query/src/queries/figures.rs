//! Metrics of queries under Prometheus' names. Source: `promql/engine.go` in prometheus/prometheus.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tidepool_runtime::QueryStats;
use tidepool_telemetry::{HistogramValue, MetricsText, SummaryValue};

/// Upper bounds of the histograms, in seconds.
const BOUNDS: [f64; 4] = [0.01, 0.1, 1.0, 10.0];

const QUANTILES: [f64; 3] = [0.5, 0.9, 0.99];

/// Quantiles are computed from observations up to this age, and from at most `RECENT_MAX`.
const RECENT_AGE: Duration = Duration::from_secs(600);
const RECENT_MAX: usize = 500;

/// Parts of a query's time. The last is always zero: series are sorted during the evaluation.
const SLICES: [&str; 4] = ["queue_time", "prepare_time", "inner_eval", "result_sort"];

/// Durations of a query's parts. None includes the client's time for reading the answer.
#[derive(Clone, Copy, Debug, Default)]
pub struct QueryTimings {
    pub queue: Duration,
    /// Time to start an instance, parse the expression and open the selections.
    pub preparation: Duration,
    pub evaluation: Duration,
}

#[derive(Default)]
pub struct QueryFigures {
    /// Number of queries that run or wait.
    current: AtomicU64,
    samples: AtomicU64,
    samples_read: AtomicU64,
    split: AtomicU64,
    slices: [Mutex<Slice>; SLICES.len()],
}

/// Counts a query as running or waiting until this is dropped.
pub struct CountedQuery(Arc<QueryFigures>);

#[derive(Default)]
struct Slice {
    /// Number of observations in each bucket, not cumulative.
    counts: [u64; BOUNDS.len()],
    count: u64,
    seconds: f64,
    /// The newest observations, oldest first.
    recent: VecDeque<(Instant, f64)>,
}

impl QueryFigures {
    /// Counts a query that has arrived.
    pub fn begin(self: &Arc<QueryFigures>) -> CountedQuery {
        self.current.fetch_add(1, Relaxed);
        CountedQuery(Arc::clone(self))
    }

    /// Records how long a query waited until it could run.
    pub fn add_wait(&self, waited: Duration) {
        self.add(0, waited);
    }

    /// Records durations and cost when a query ends.
    pub fn add_run(&self, timings: &QueryTimings, stats: Option<&QueryStats>) {
        self.add(1, timings.preparation);
        self.add(2, timings.evaluation);
        // A query that failed before its first part has no statistics.
        if let Some(stats) = stats {
            self.samples.fetch_add(stats.samples, Relaxed);
            self.samples_read.fetch_add(stats.samples_read, Relaxed);
        }
    }

    /// Counts a query that is evaluated by several threads.
    pub fn add_split(&self) {
        self.split.fetch_add(1, Relaxed);
    }

    fn add(&self, slice: usize, took: Duration) {
        let now = Instant::now();
        self.slices[slice].lock().unwrap_or_else(PoisonError::into_inner).add(now, took);
    }

    /// Writes all metrics of queries.
    pub fn show(&self, text: &mut MetricsText, running_max: usize) {
        text.gauge(
            "prometheus_engine_queries",
            "The current number of queries being executed or waiting.",
            self.current.load(Relaxed),
        );
        text.gauge(
            "prometheus_engine_queries_concurrent_max",
            "The max number of concurrent queries.",
            running_max,
        );
        text.counter(
            "prometheus_engine_query_samples_total",
            "Samples that queries used, once for each step that uses them.",
            self.samples.load(Relaxed),
        );
        text.counter(
            "prometheus_engine_query_samples_read_total",
            "Samples that queries read of the store.",
            self.samples_read.load(Relaxed),
        );
        text.counter(
            "tidepool_queries_split_total",
            "Queries whose steps were evaluated by several threads.",
            self.split.load(Relaxed),
        );
        let now = Instant::now();
        let labels = SLICES.map(|slice| format!("slice=\"{slice}\""));
        let (mut summaries, mut histograms) = (Vec::new(), Vec::new());
        // Each slice is locked once, so that its summary and its histogram have the same count.
        for (labels, slice) in labels.iter().zip(&self.slices) {
            let mut slice = slice.lock().unwrap_or_else(PoisonError::into_inner);
            let (count, seconds) = (slice.count, slice.seconds);
            let quantiles: SummaryValue<'_> =
                (labels.as_str(), slice.quantiles(now), count, seconds);
            summaries.push(quantiles);
            let buckets: HistogramValue<'_> = (labels.as_str(), slice.buckets(), count, seconds);
            histograms.push(buckets);
        }
        text.histograms(
            "prometheus_engine_query_duration_histogram_seconds",
            "The duration of various parts of PromQL query execution.",
            &histograms,
        );
        text.summaries("prometheus_engine_query_duration_seconds", "Query timings.", &summaries);
    }
}

impl Drop for CountedQuery {
    fn drop(&mut self) {
        self.0.current.fetch_sub(1, Relaxed);
    }
}

impl Slice {
    fn add(&mut self, now: Instant, took: Duration) {
        let seconds = took.as_secs_f64();
        // An observation above the last bound is only in bucket `+Inf`, which is `count`.
        if let Some(bucket) = BOUNDS.iter().position(|bound| seconds <= *bound) {
            self.counts[bucket] += 1;
        }
        self.count += 1;
        self.seconds += seconds;
        if self.recent.len() == RECENT_MAX {
            self.recent.pop_front();
        }
        self.recent.push_back((now, seconds));
    }

    fn buckets(&self) -> Vec<(f64, u64)> {
        let mut below = 0;
        let buckets = BOUNDS.iter().zip(self.counts).map(|(bound, count)| {
            below += count;
            (*bound, below)
        });
        buckets.collect()
    }

    /// Returns quantiles of the recent observations; NaN if there are none.
    fn quantiles(&mut self, now: Instant) -> Vec<(f64, f64)> {
        // Old observations are removed only when read; until then `RECENT_MAX` bounds the memory.
        while let Some((at, _)) = self.recent.front()
            && now.saturating_duration_since(*at) > RECENT_AGE
        {
            self.recent.pop_front();
        }
        let mut recent: Vec<f64> = self.recent.iter().map(|(_, seconds)| *seconds).collect();
        recent.sort_unstable_by(f64::total_cmp);
        let of = |quantile: f64| {
            let rank = (quantile * recent.len() as f64).ceil() as usize;
            (quantile, recent.get(rank.saturating_sub(1)).copied().unwrap_or(f64::NAN))
        };
        QUANTILES.map(of).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_last_minutes() {
        let mut slice = Slice::default();
        let now = Instant::now();
        assert!(slice.quantiles(now).iter().all(|(_, value)| value.is_nan()));
        (1..=1000).for_each(|ms| slice.add(now, Duration::from_millis(ms)));
        assert_eq!(slice.quantiles(now), [(0.5, 0.75), (0.9, 0.95), (0.99, 0.995)]);
        assert_eq!(slice.buckets(), [(0.01, 10), (0.1, 100), (1.0, 1000), (10.0, 1000)]);
        assert_eq!(slice.count, 1000);
        assert!((slice.seconds - 500.5).abs() < 1e-6, "{}", slice.seconds);
        let later = now + RECENT_AGE + Duration::from_secs(1);
        assert!(slice.quantiles(later).iter().all(|(_, value)| value.is_nan()));
        assert_eq!(slice.count, 1000);
    }

    #[test]
    fn the_names_are_those_of_prometheus() {
        let figures = Arc::new(QueryFigures::default());
        let query = figures.begin();
        figures.add_wait(Duration::from_millis(5));
        let timings = QueryTimings { evaluation: Duration::from_secs(2), ..Default::default() };
        figures.add_run(&timings, None);
        let mut text = MetricsText::default();
        figures.show(&mut text, 20);
        let text = text.finish();
        for line in [
            "queries 1",
            "queries_concurrent_max 20",
            "query_samples_total 0",
            "query_duration_seconds{slice=\"queue_time\",quantile=\"0.9\"} 0.005",
            "query_duration_seconds{slice=\"result_sort\",quantile=\"0.99\"} NaN",
            "query_duration_seconds_sum{slice=\"inner_eval\"} 2",
            "query_duration_seconds_count{slice=\"inner_eval\"} 1",
            "query_duration_histogram_seconds_bucket{slice=\"inner_eval\",le=\"1\"} 0",
            "query_duration_histogram_seconds_bucket{slice=\"inner_eval\",le=\"10\"} 1",
        ] {
            assert!(text.contains(&format!("prometheus_engine_{line}\n")), "{line}: {text}");
        }
        drop(query);
        assert_eq!(figures.current.load(Relaxed), 0);
    }
}
