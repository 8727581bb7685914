//! What scraping needs to know of a job.

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
    /// `body_size_limit`, in bytes.
    pub body_bytes: u64,
    /// `sample_limit`
    pub samples: u64,
    /// `target_limit`
    pub targets: u64,
    /// `label_limit` and those of lengths.
    pub labels: LabelLimits,
    /// `keep_dropped_targets`
    pub dropped_targets: u64,
    /// `native_histogram_bucket_limit`
    pub buckets: u64,
}

/// Limits on the labels of a series after relabeling; zero means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LabelLimits {
    /// `label_limit`
    pub labels: u64,
    /// `label_name_length_limit`, in bytes.
    pub name_bytes: u64,
    /// `label_value_length_limit`, in bytes.
    pub value_bytes: u64,
}

/// A job: how its targets are made and scraped.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// `job_name`
    pub name: String,
    /// `scrape_interval`
    pub interval: Duration,
    /// `scrape_timeout`, at most the interval.
    pub timeout: Duration,
    /// `metrics_path`
    pub metrics_path: String,
    /// `scheme`
    pub scheme: String,
    /// `params`
    pub params: BTreeMap<String, Vec<String>>,
    /// `honor_labels`
    pub honor_labels: bool,
    /// `honor_timestamps`
    pub honor_timestamps: bool,
    /// `track_timestamps_staleness`
    pub track_timestamps_staleness: bool,
    /// Limits.
    pub limits: Limits,
    /// `native_histogram_min_bucket_factor`
    pub bucket_factor_min: f64,
    /// `relabel_configs`
    pub relabel: Vec<RuleSpec>,
    /// `metric_relabel_configs`
    pub metric_relabel: Vec<RuleSpec>,
    /// `scrape_protocols`
    pub protocols: Vec<Protocol>,
    /// `fallback_scrape_protocol`
    pub fallback: Option<Protocol>,
    /// `metric_name_escaping_scheme`
    pub escaping: NameEscaping,
    /// `metric_name_validation_scheme`
    pub validation: NameValidation,
    /// `enable_compression`
    pub compression: bool,
    /// `scrape_native_histograms`
    pub native_histograms: bool,
    /// `always_scrape_classic_histograms`
    pub always_classic_histograms: bool,
    /// `convert_classic_histograms_to_nhcb`
    pub convert_classic_histograms: bool,
    /// `extra_scrape_metrics`
    pub extra_metrics: bool,
    /// The file to which failures of scrapes are logged (`scrape_failure_log_file`).
    pub failure_log_file: Option<PathBuf>,
    /// How requests are sent.
    pub client: HttpClientConfig,
    /// Whether a part of this process has its samples: [`crate::source::Builtin`].
    pub is_builtin: bool,
    /// How its targets are probed, instead of scraped.
    pub probe: Option<Arc<Module>>,
}

impl Job {
    /// A job of this name with upstream's defaults.
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

    /// Whether what a target remembers stays valid with another job's settings: all that makes
    /// series of an exposition is equal.
    pub fn keeps_caches(&self, other: &Job) -> bool {
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

    /// Upstream: TestReusableConfig, TestReuseScrapeCache.
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
