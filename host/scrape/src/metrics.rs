//! Metrics of scraping, with upstream's names. The host reads the numbers when its own metrics page
//! is requested.
//!
//! Source: `scrape/metrics.go` of prometheus/prometheus. Summaries have a count and a sum, and no
//! quantiles.

use crate::store::Refused;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// A number that only grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    pub fn add(&self, more: u64) {
        // Most calls add zero, which must not touch the cache line that all scrapes share.
        if more > 0 {
            self.0.fetch_add(more, Ordering::Relaxed);
        }
    }

    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Number of scrapes in a row that the store could not store.
#[derive(Debug, Default)]
pub struct Outage(AtomicU64);

impl Outage {
    /// Counts a scrape that was not stored; returns whether it is the first.
    pub fn begin(&self) -> bool {
        self.0.fetch_add(1, Ordering::Relaxed) == 0
    }

    /// Ends the outage after a stored scrape; returns how many scrapes were not stored.
    pub fn end(&self) -> u64 {
        // Loaded first, because outages are rare and a write takes the shared cache line.
        match self.0.load(Ordering::Relaxed) {
            0 => 0,
            _ => self.0.swap(0, Ordering::Relaxed),
        }
    }
}

/// Count and sum of observed durations.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Durations {
    pub count: u64,
    pub sum: Duration,
}

/// Metrics of the pool of one job: `prometheus_target_scrape_pool_targets`, `…_target_limit` and
/// `…_sync_total`, `prometheus_target_sync_failed_total`, `prometheus_target_sync_length_seconds`,
/// and `tidepool_target_samples_refused_total`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PoolMetrics {
    pub targets: u64,
    pub target_limit: u64,
    pub syncs: u64,
    /// Number of targets with invalid labels, or beyond the memory bound.
    pub sync_failed: u64,
    pub sync_length: Durations,
    pub refused: Refused,
}

/// Metrics of all pools together; [`Metrics::counters`] has their names.
#[derive(Debug, Default)]
pub struct Metrics {
    pub pools: Counter,
    pub pools_failed: Counter,
    pub pool_reloads: Counter,
    pub pool_reloads_failed: Counter,
    pub exceeded_target_limit: Counter,
    pub exceeded_label_limits: Counter,
    pub exceeded_body_size_limit: Counter,
    pub exceeded_sample_limit: Counter,
    pub exceeded_bucket_limit: Counter,
    pub cache_flushes_forced: Counter,
    pub samples_duplicate: Counter,
    pub samples_out_of_order: Counter,
    pub samples_out_of_bounds: Counter,
    pub exemplars_out_of_order: Counter,
    /// Scrapes that the store could not store since the last stored scrape.
    pub store_outage: Outage,
    /// Actual intervals, by the configured interval in milliseconds.
    intervals: Mutex<BTreeMap<u64, Durations>>,
    /// Metrics of each pool, by job.
    pools_by_job: Mutex<BTreeMap<String, PoolMetrics>>,
}

impl Metrics {
    /// Returns name, help and value of each counter.
    pub fn counters(&self) -> [(&'static str, &'static str, u64); 14] {
        [
            (
                "prometheus_target_scrape_pools_total",
                "Total number of scrape pool creation attempts.",
                self.pools.get(),
            ),
            (
                "prometheus_target_scrape_pools_failed_total",
                "Total number of scrape pool creations that failed.",
                self.pools_failed.get(),
            ),
            (
                "prometheus_target_scrape_pool_reloads_total",
                "Total number of scrape pool reloads.",
                self.pool_reloads.get(),
            ),
            (
                "prometheus_target_scrape_pool_reloads_failed_total",
                "Total number of failed scrape pool reloads.",
                self.pool_reloads_failed.get(),
            ),
            (
                "prometheus_target_scrape_pool_exceeded_target_limit_total",
                "Total number of times scrape pools hit the target limit, during sync or config reload.",
                self.exceeded_target_limit.get(),
            ),
            (
                "prometheus_target_scrape_pool_exceeded_label_limits_total",
                "Total number of times scrape pools hit the label limits, during sync or config reload.",
                self.exceeded_label_limits.get(),
            ),
            (
                "prometheus_target_scrapes_exceeded_body_size_limit_total",
                "Total number of scrapes that hit the body size limit",
                self.exceeded_body_size_limit.get(),
            ),
            (
                "prometheus_target_scrapes_exceeded_sample_limit_total",
                "Total number of scrapes that hit the sample limit and were rejected.",
                self.exceeded_sample_limit.get(),
            ),
            (
                "prometheus_target_scrapes_exceeded_native_histogram_bucket_limit_total",
                "Total number of scrapes that hit the native histogram bucket limit and were rejected.",
                self.exceeded_bucket_limit.get(),
            ),
            (
                "prometheus_target_scrapes_cache_flush_forced_total",
                "How many times a scrape cache was flushed due to getting big while scrapes are failing.",
                self.cache_flushes_forced.get(),
            ),
            (
                "prometheus_target_scrapes_sample_duplicate_timestamp_total",
                "Total number of samples rejected due to duplicate timestamps but different values.",
                self.samples_duplicate.get(),
            ),
            (
                "prometheus_target_scrapes_sample_out_of_order_total",
                "Total number of samples rejected due to not being out of the expected order.",
                self.samples_out_of_order.get(),
            ),
            (
                "prometheus_target_scrapes_sample_out_of_bounds_total",
                "Total number of samples rejected due to timestamp falling outside of the time bounds.",
                self.samples_out_of_bounds.get(),
            ),
            (
                "prometheus_target_scrapes_exemplar_out_of_order_total",
                "Total number of exemplar rejected due to not being out of the expected order.",
                self.exemplars_out_of_order.get(),
            ),
        ]
    }

    /// Records the time between two scrapes of a target. `interval` is the target's interval.
    pub fn observe_interval(&self, interval: Duration, actual: Duration) {
        let interval_ms = u64::try_from(interval.as_millis()).unwrap_or(u64::MAX);
        let mut intervals = self.intervals.lock().unwrap_or_else(PoisonError::into_inner);
        let durations = intervals.entry(interval_ms).or_default();
        durations.count += 1;
        durations.sum = durations.sum.saturating_add(actual);
    }

    /// Returns the summaries `prometheus_target_interval_length_seconds`, by interval.
    pub fn intervals(&self) -> Vec<(Duration, Durations)> {
        let intervals = self.intervals.lock().unwrap_or_else(PoisonError::into_inner);
        intervals.iter().map(|(ms, durations)| (Duration::from_millis(*ms), *durations)).collect()
    }

    /// Changes the metrics of a job; creates them if needed.
    pub(crate) fn of_pool(&self, job: &str, change: impl FnOnce(&mut PoolMetrics)) {
        let mut pools = self.pools_by_job.lock().unwrap_or_else(PoisonError::into_inner);
        // Copies the name only for a new job.
        match pools.get_mut(job) {
            Some(pool) => change(pool),
            None => change(pools.entry(job.to_owned()).or_default()),
        }
    }

    /// Counts samples that the store refused, unless the job was removed.
    pub(crate) fn count_refused(&self, job: &str, refused: Refused) {
        let mut pools = self.pools_by_job.lock().unwrap_or_else(PoisonError::into_inner);
        // A commit may outlive its job, whose metrics must not be created again.
        if let Some(pool) = pools.get_mut(job) {
            pool.refused.add_all(refused);
        }
    }

    /// Removes the metrics of a job that is gone.
    pub(crate) fn remove_pool(&self, job: &str) {
        self.pools_by_job.lock().unwrap_or_else(PoisonError::into_inner).remove(job);
    }

    pub fn by_pool(&self) -> Vec<(String, PoolMetrics)> {
        let pools = self.pools_by_job.lock().unwrap_or_else(PoisonError::into_inner);
        pools.iter().map(|(job, pool)| (job.clone(), *pool)).collect()
    }
}
