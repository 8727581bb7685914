//! Settings of a job that scraping uses.

use crate::protocol::Protocol;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tidepool_client::HttpClientConfig;
use tidepool_exposition::{NameEscaping, NameValidation};
use tidepool_probe::Module;
use tidepool_relabel::RuleSpec;

/// Limits of a job; zero means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Maximum size of an uncompressed body in bytes (`body_size_limit`).
    pub body_bytes: u64,
    pub samples: u64,
    pub targets: u64,
    pub labels: LabelLimits,
    /// Maximum number of dropped targets that are listed (`keep_dropped_targets`).
    pub dropped_targets: u64,
    /// Maximum number of buckets (`native_histogram_bucket_limit`).
    pub buckets: u64,
}

/// Limits on the labels of a series after relabeling; zero means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LabelLimits {
    pub labels: u64,
    /// Maximum length of a name in bytes (`label_name_length_limit`).
    pub name_bytes: u64,
    /// Maximum length of a value in bytes (`label_value_length_limit`).
    pub value_bytes: u64,
}

/// A job: settings for making its targets and for scraping them.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    pub name: String,
    /// Time between scrapes of a target (`scrape_interval`).
    pub interval: Duration,
    /// Maximum duration of a scrape (`scrape_timeout`), at most the interval.
    pub timeout: Duration,
    pub metrics_path: String,
    pub scheme: String,
    pub params: BTreeMap<String, Vec<String>>,
    pub honor_labels: bool,
    pub honor_timestamps: bool,
    pub track_timestamps_staleness: bool,
    pub limits: Limits,
    /// Minimum growth factor of native histogram buckets (`native_histogram_min_bucket_factor`).
    pub bucket_factor_min: f64,
    /// Rules for the labels of targets (`relabel_configs`).
    pub relabel: Vec<RuleSpec>,
    /// Rules for the labels of series (`metric_relabel_configs`).
    pub metric_relabel: Vec<RuleSpec>,
    /// Formats in the order of preference (`scrape_protocols`).
    pub protocols: Vec<Protocol>,
    /// Format of a body whose content type is not known (`fallback_scrape_protocol`).
    pub fallback: Option<Protocol>,
    /// Escaping of metric names that requests ask for (`metric_name_escaping_scheme`).
    pub escaping: NameEscaping,
    /// Rule for valid names (`metric_name_validation_scheme`).
    pub validation: NameValidation,
    /// Whether compressed bodies are requested (`enable_compression`).
    pub compression: bool,
    /// Whether native histograms are scraped (`scrape_native_histograms`).
    pub native_histograms: bool,
    /// Whether classic histograms are scraped beside native ones
    /// (`always_scrape_classic_histograms`).
    pub always_classic_histograms: bool,
    /// Whether classic histograms are converted (`convert_classic_histograms_to_nhcb`).
    pub convert_classic_histograms: bool,
    /// Whether a scrape's report has the additional series (`extra_scrape_metrics`).
    pub extra_metrics: bool,
    /// File for logging failed scrapes (`scrape_failure_log_file`).
    pub failure_log_file: Option<PathBuf>,
    pub client: HttpClientConfig,
    /// Whether a [`crate::source::Builtin`] provides the samples, instead of targets over HTTP.
    pub is_builtin: bool,
    /// Module that probes the targets; `None` for a scrape.
    pub probe: Option<Arc<Module>>,
}

impl Job {
    /// Creates a job of this name with upstream's defaults.
    pub fn new(name: impl Into<String>) -> Job {
        Job {
            name: name.into(),
            interval: Duration::from_secs(60),
            timeout: Duration::from_secs(10),
            metrics_path: "/metrics".into(),
            scheme: "http".into(),
            params: BTreeMap::new(),
            honor_labels: false,
            honor_timestamps: true,
            track_timestamps_staleness: false,
            limits: Limits::default(),
            bucket_factor_min: 0.0,
            relabel: Vec::new(),
            metric_relabel: Vec::new(),
            protocols: Protocol::TEXTS.to_vec(),
            fallback: None,
            escaping: NameEscaping::AllowUtf8,
            validation: NameValidation::Utf8,
            compression: true,
            native_histograms: false,
            always_classic_histograms: false,
            convert_classic_histograms: false,
            extra_metrics: false,
            failure_log_file: None,
            client: HttpClientConfig::default(),
            is_builtin: false,
            probe: None,
        }
    }

    /// Returns whether the caches of targets stay valid under another job's settings. They do if
    /// all settings that influence labels and series are equal.
    pub fn keeps_caches(&self, other: &Job) -> bool {
        // Lists the settings that may differ. A new setting invalidates caches unless added here.
        let comparable = |job: &Job| Job {
            interval: Duration::ZERO,
            timeout: Duration::ZERO,
            limits: Limits { samples: 0, ..job.limits },
            client: HttpClientConfig::default(),
            failure_log_file: None,
            ..job.clone()
        };
        comparable(self) == comparable(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Follows the upstream tests TestReusableConfig, TestReuseScrapeCache.
    #[test]
    fn caches_are_kept_if_series_stay_as_they_are() {
        let job = Job::new("a");
        let limits = |limits: Limits| Job { limits, ..job.clone() };
        let labels = LabelLimits { labels: 1, ..LabelLimits::default() };
        let http = HttpClientConfig { follow_redirects: Some(false), ..Default::default() };
        let kept = [
            Job { interval: Duration::from_secs(5), ..job.clone() },
            Job { timeout: Duration::from_secs(5), ..job.clone() },
            limits(Limits { samples: 400, ..Limits::default() }),
            Job { client: http, ..job.clone() },
        ];
        let lost = [
            Job::new("b"),
            Job { metrics_path: "/metrics2".into(), ..job.clone() },
            Job { honor_timestamps: false, ..job.clone() },
            Job { honor_labels: true, ..job.clone() },
            limits(Limits { labels, ..Limits::default() }),
            Job {
                metric_relabel: vec![RuleSpec::new(tidepool_relabel::Action::Drop)],
                ..job.clone()
            },
        ];
        for other in kept {
            assert!(job.keeps_caches(&other) && other.keeps_caches(&job), "{other:?}");
        }
        for other in lost {
            assert!(!job.keeps_caches(&other) && !other.keeps_caches(&job), "{other:?}");
        }
    }
}
