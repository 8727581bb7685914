//! What scraping says of itself, with upstream's names. The host reads the numbers when its own
//! metrics are asked for.
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
    /// Adds to it.
    pub fn add(&self, more: u64) {
        if more > 0 {
            self.0.fetch_add(more, Ordering::Relaxed);
        }
    }

    /// Its value.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Scrapes that the store could not take, one after the other.
#[derive(Debug, Default)]
pub struct Outage(AtomicU64);

impl Outage {
    /// Notes a scrape that was not stored; returns whether it is the first.
    pub fn begin(&self) -> bool {
        self.0.fetch_add(1, Ordering::Relaxed) == 0
    }

    /// Notes a scrape that was stored; returns how many were not, if it is the first since.
    pub fn end(&self) -> u64 {
        match self.0.load(Ordering::Relaxed) {
            0 => 0,
            _ => self.0.swap(0, Ordering::Relaxed),
        }
    }
}

/// Durations that were observed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Durations {
    /// How many.
    pub count: u64,
    /// Their sum.
    pub sum: Duration,
}

/// What a pool says of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PoolMetrics {
    /// `prometheus_target_scrape_pool_targets`
    pub targets: u64,
    /// `prometheus_target_scrape_pool_target_limit`
    pub target_limit: u64,
    /// `prometheus_target_scrape_pool_sync_total`
    pub syncs: u64,
    /// `prometheus_target_sync_failed_total`: targets that could not be made.
    pub sync_failed: u64,
    /// `prometheus_target_sync_length_seconds`
    pub sync_length: Durations,
    /// `tidepool_target_samples_refused_total`
    pub refused: Refused,
}

/// What all pools say together.
#[derive(Debug, Default)]
pub struct Metrics {
    /// `prometheus_target_scrape_pools_total`
    pub pools: Counter,
    /// `prometheus_target_scrape_pools_failed_total`
    pub pools_failed: Counter,
    /// `prometheus_target_scrape_pool_reloads_total`
    pub pool_reloads: Counter,
    /// `prometheus_target_scrape_pool_reloads_failed_total`
    pub pool_reloads_failed: Counter,
    /// `prometheus_target_scrape_pool_exceeded_target_limit_total`
    pub exceeded_target_limit: Counter,
    /// `prometheus_target_scrape_pool_exceeded_label_limits_total`
    pub exceeded_label_limits: Counter,
    /// `prometheus_target_scrapes_exceeded_body_size_limit_total`
    pub exceeded_body_size_limit: Counter,
    /// `prometheus_target_scrapes_exceeded_sample_limit_total`
    pub exceeded_sample_limit: Counter,
    /// `prometheus_target_scrapes_exceeded_native_histogram_bucket_limit_total`
    pub exceeded_bucket_limit: Counter,
    /// `prometheus_target_scrapes_cache_flush_forced_total`
    pub cache_flushes_forced: Counter,
    /// `prometheus_target_scrapes_sample_duplicate_timestamp_total`
    pub samples_duplicate: Counter,
    /// `prometheus_target_scrapes_sample_out_of_order_total`
    pub samples_out_of_order: Counter,
    /// `prometheus_target_scrapes_sample_out_of_bounds_total`
    pub samples_out_of_bounds: Counter,
    /// `prometheus_target_scrapes_exemplar_out_of_order_total`
    pub exemplars_out_of_order: Counter,
    /// While the store takes no scrapes.
    pub store_outage: Outage,
    /// By the interval in milliseconds.
    intervals: Mutex<BTreeMap<u64, Durations>>,
    /// By the job.
    pools_by_job: Mutex<BTreeMap<String, PoolMetrics>>,
}

impl Metrics {
    /// A counter's name, help and value, for each counter.
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

    /// Notes the time between two scrapes of a target that is scraped at an interval.
    pub fn observe_interval(&self, interval: Duration, actual: Duration) {
        let interval_ms = u64::try_from(interval.as_millis()).unwrap_or(u64::MAX);
        let mut intervals = self.intervals.lock().unwrap_or_else(PoisonError::into_inner);
        let durations = intervals.entry(interval_ms).or_default();
        durations.count += 1;
        durations.sum = durations.sum.saturating_add(actual);
    }

    /// `prometheus_target_interval_length_seconds` by the interval.
    pub fn intervals(&self) -> Vec<(Duration, Durations)> {
        let intervals = self.intervals.lock().unwrap_or_else(PoisonError::into_inner);
        intervals.iter().map(|(ms, durations)| (Duration::from_millis(*ms), *durations)).collect()
    }

    /// Changes the numbers of a job.
    pub(crate) fn of_pool(&self, job: &str, change: impl FnOnce(&mut PoolMetrics)) {
        let mut pools = self.pools_by_job.lock().unwrap_or_else(PoisonError::into_inner);
        match pools.get_mut(job) {
            Some(pool) => change(pool),
            None => change(pools.entry(job.to_owned()).or_default()),
        }
    }

    /// Counts samples that the store refused, unless their job is gone.
    pub(crate) fn count_refused(&self, job: &str, refused: Refused) {
        let mut pools = self.pools_by_job.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pool) = pools.get_mut(job) {
            pool.refused.add_all(refused);
        }
    }

    /// Removes the numbers of a job that is gone.
    pub(crate) fn remove_pool(&self, job: &str) {
        self.pools_by_job.lock().unwrap_or_else(PoisonError::into_inner).remove(job);
    }

    /// The numbers of each job.
    pub fn by_pool(&self) -> Vec<(String, PoolMetrics)> {
        let pools = self.pools_by_job.lock().unwrap_or_else(PoisonError::into_inner);
        pools.iter().map(|(job, pool)| (job.clone(), *pool)).collect()
    }
}
