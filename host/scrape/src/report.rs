//! The series that tell how the scrape of a target went.
//!
//! Source: <https://prometheus.io/docs/concepts/jobs_instances/>, and `reportSample` in
//! `scrape/scrape.go` of prometheus/prometheus.

use crate::store::FamilyMetadata;
use std::time::Duration;
use tidepool_exposition::MetricType;

/// A series of the report.
#[derive(Clone, Copy, Debug)]
pub struct ReportSeries {
    /// Its metric name.
    pub name: &'static str,
    /// What it tells.
    pub help: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// Whether `extra_scrape_metrics` asks for it.
    pub is_extra: bool,
}

impl ReportSeries {
    /// What the store keeps of it.
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

/// How many series a report has.
pub(crate) fn report_series(with_extra: bool) -> usize {
    REPORT_SERIES.iter().filter(|series| !series.is_extra || with_extra).count()
}

/// What a scrape had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Samples in the exposition.
    pub scraped: u64,
    /// Samples after relabeling.
    pub added: u64,
    /// Series that the cache did not know.
    pub series_added: u64,
    /// Bytes of the body, uncompressed.
    pub body_bytes: u64,
}

/// How a scrape went.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Report {
    /// Whether it was good.
    pub is_up: bool,
    /// How long it took.
    pub duration: Duration,
    /// What it had.
    pub totals: Totals,
    /// The timeout of the target.
    pub timeout: Duration,
    /// `sample_limit`
    pub sample_limit: u64,
    /// Whether `body_size_limit` was exceeded.
    pub is_body_too_large: bool,
}

impl Report {
    /// The values of [`REPORT_SERIES`].
    pub fn values(&self) -> [f64; REPORT_SERIES.len()] {
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
