//! Metrics of queries under Prometheus' names. Source: `promql/engine.go` in prometheus/prometheus.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tidepool_runtime::QueryStats;
use tidepool_telemetry::{HistogramValue, Latencies, MetricsText, SummaryValue};

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
    slices: [Mutex<Latencies>; SLICES.len()],
}

/// Counts a query as running or waiting until this is dropped.
pub struct CountedQuery(Arc<QueryFigures>);

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
            let slice = slice.lock().unwrap_or_else(PoisonError::into_inner);
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

#[cfg(test)]
mod tests {
    use super::*;

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
