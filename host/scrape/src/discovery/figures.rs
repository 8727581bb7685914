//! Counters of discovery, with upstream's names.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counters of the discovery of all jobs.
#[derive(Debug, Default)]
pub struct DiscoveryFigures {
    pub(super) file_read_errors: AtomicU64,
    pub(super) http_failures: AtomicU64,
    pub(super) dns_lookups: AtomicU64,
    pub(super) dns_lookup_failures: AtomicU64,
}

impl DiscoveryFigures {
    /// Returns name, help and value of each counter.
    pub fn counters(&self) -> [(&'static str, &'static str, u64); 4] {
        [
            (
                "prometheus_sd_file_read_errors_total",
                "Reads of files with targets that failed",
                self.file_read_errors.load(Relaxed),
            ),
            (
                "prometheus_sd_http_failures_total",
                "Requests for lists of targets that failed",
                self.http_failures.load(Relaxed),
            ),
            (
                "prometheus_sd_dns_lookups_total",
                "Lookups of names of targets",
                self.dns_lookups.load(Relaxed),
            ),
            (
                "prometheus_sd_dns_lookup_failures_total",
                "Lookups of names of targets that failed",
                self.dns_lookup_failures.load(Relaxed),
            ),
        ]
    }
}
