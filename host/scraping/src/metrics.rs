//! The metrics of scraping, for `/metrics`.

use super::Scraping;
use tidepool_telemetry::{MetricsText, escaped};

impl Scraping {
    /// Writes the metrics of scrapes, discovery and targets.
    pub fn show(&self, text: &mut MetricsText) {
        for (name, help, value) in self.0.metrics.counters() {
            text.counter(name, help, value);
        }
        for (name, help, value) in self.0.discovery.figures.counters() {
            text.counter(name, help, value);
        }
        let memory = &self.0.memory;
        text.gauge(
            "tidepool_scrapes_memory_bytes",
            "Memory that targets and their scrapes hold.",
            memory.held_bytes(),
        );
        text.counter(
            "tidepool_scrapes_refused_for_memory_total",
            "Scrapes and targets that found no memory for what they would hold.",
            memory.refused(),
        );
        let pools = self.0.metrics.by_pool();
        let labels: Vec<String> =
            pools.iter().map(|(job, _)| format!("scrape_job=\"{}\"", escaped(job))).collect();
        let pools = labels.iter().zip(&pools).map(|(labels, (_, pool))| (labels.as_str(), pool));
        let targets: Vec<_> = pools.clone().map(|(labels, pool)| (labels, pool.targets)).collect();
        text.gauges(
            "prometheus_target_scrape_pool_targets",
            "Number of targets of a job that are scraped.",
            &targets,
        );
        let refused: Vec<(String, u64)> = pools
            .clone()
            .flat_map(|(labels, pool)| {
                pool.refused.each().map(move |(reason, count)| {
                    (format!("{labels},reason=\"{}\"", reason.as_str()), count)
                })
            })
            .collect();
        let refused: Vec<_> =
            refused.iter().map(|(labels, count)| (labels.as_str(), *count)).collect();
        text.counters(
            "tidepool_target_samples_refused_total",
            "Samples of scrapes that the store refused, by job and reason.",
            &refused,
        );
        let failed: Vec<_> = pools.map(|(labels, pool)| (labels, pool.sync_failed)).collect();
        text.counters(
            "prometheus_target_sync_failed_total",
            "Targets of a job that could not be made.",
            &failed,
        );
    }
}
