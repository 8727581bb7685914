//! The series that each scrape adds to report its outcome, such as `up`.
//!
//! Source: <https://prometheus.io/docs/concepts/jobs_instances/>, and `reportSample` in
//! `scrape/scrape.go` of prometheus/prometheus.

use crate::store::FamilyMetadata;
use std::time::Duration;
use tidepool_exposition::MetricType;

/// A series of the report, with its metadata.
#[derive(Clone, Copy, Debug)]
pub struct ReportSeries {
    pub name: &'static str,
    pub help: &'static str,
    pub unit: &'static str,
    /// Whether the series exists only with `extra_scrape_metrics`.
    pub is_extra: bool,
}

impl ReportSeries {
    /// Returns the metadata that the store keeps.
    pub fn metadata(self) -> FamilyMetadata {
        FamilyMetadata {
            family: self.name.to_owned(),
            kind: MetricType::Gauge,
            help: self.help.to_owned(),
            unit: self.unit.to_owned(),
        }
    }
}

const fn series(
    name: &'static str,
    unit: &'static str,
    is_extra: bool,
    help: &'static str,
) -> ReportSeries {
    ReportSeries { name, help, unit, is_extra }
}

/// All series of a report, in the order of [`Report::values`].
pub const REPORT_SERIES: [ReportSeries; 8] = [
    series(
        "up",
        "targets",
        false,
        "Health of the scrape target. 1 means the target is healthy, 0 if the scrape failed.",
    ),
    series("scrape_duration_seconds", "seconds", false, "Duration of the last scrape in seconds."),
    series("scrape_samples_scraped", "samples", false, "Number of samples last scraped."),
    series(
        "scrape_samples_post_metric_relabeling",
        "samples",
        false,
        "Number of samples remaining after metric relabeling was applied.",
    ),
    series("scrape_series_added", "series", false, "Number of series in the last scrape."),
    series(
        "scrape_timeout_seconds",
        "seconds",
        true,
        "The configured scrape timeout for a target.",
    ),
    series(
        "scrape_sample_limit",
        "samples",
        true,
        "The configured sample limit for a target. Returns zero if there is no limit configured.",
    ),
    series(
        "scrape_body_size_bytes",
        "bytes",
        true,
        "The uncompressed size of the last scrape response, if successful. Scrapes failing because body_size_limit is exceeded report -1, other scrape failures report 0.",
    ),
];

/// Returns the number of series in a report.
pub(crate) fn report_series(with_extra: bool) -> usize {
    REPORT_SERIES.iter().filter(|series| !series.is_extra || with_extra).count()
}

/// Counts of one scrape, for its report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Number of samples in the exposition.
    pub scraped: u64,
    /// Number of samples after relabeling.
    pub added: u64,
    /// Number of series that the cache did not have.
    pub series_added: u64,
    /// Size of the uncompressed body in bytes.
    pub body_bytes: u64,
}

/// Outcome of a scrape, from which the report is made.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Report {
    pub is_up: bool,
    pub duration: Duration,
    pub totals: Totals,
    pub timeout: Duration,
    pub sample_limit: u64,
    /// Whether the body exceeded `body_size_limit`.
    pub is_body_too_large: bool,
}

impl Report {
    /// Returns the values in the order of [`REPORT_SERIES`].
    pub fn values(&self) -> [f64; REPORT_SERIES.len()] {
        // Upstream reports -1 for a body that exceeds its limit.
        let body_bytes = if self.is_body_too_large { -1.0 } else { self.totals.body_bytes as f64 };
        [
            f64::from(u8::from(self.is_up)),
            self.duration.as_secs_f64(),
            self.totals.scraped as f64,
            self.totals.added as f64,
            self.totals.series_added as f64,
            self.timeout.as_secs_f64(),
            self.sample_limit as f64,
            body_bytes,
        ]
    }
}
