//! Writes the effective settings of a job as YAML, including defaults and inherited settings.
//!
//! Settings that depend on no other setting, such as targets, are copied from the file. Secrets are
//! hidden. Source: `scrapePoolConfig` in `web/api/v1/api.go` of prometheus/prometheus.

use super::job::DISCOVERY_SUFFIX;
use crate::job::Job;
use crate::protocol::Protocol;
use std::fmt::Display;
use tidepool_client::HttpClientConfig;
use tidepool_relabel::RuleSpec;
use tidepool_settings::duration::duration_text;
use tidepool_settings::shown::{quoted, shown_entries};
use tidepool_settings::yaml::{Data, Node, Part};

/// Keys of a job, besides discovery and the HTTP client, that [`Job`] does not store in full.
const UNTOLD: [&str; 3] = ["module", "params", "static_configs"];

/// `follow_redirects` and `enable_http2` have a default, which is shown if the key is absent.
const REDIRECTS: &str = "follow_redirects";
const HTTP2: &str = "enable_http2";

/// Returns as YAML the settings of item `number` of a section that [`Job`] does not store.
pub(super) fn untold(section: &Node, number: usize) -> String {
    let Data::List(items) = &section.data else { return String::new() };
    let Some(Data::Map(entries)) = items.get(number).map(|item| &item.data) else {
        return String::new();
    };
    shown_entries(entries.iter().filter(|entry| is_untold(&entry.key)), 0)
}

fn is_untold(key: &str) -> bool {
    let is_of_client = HttpClientConfig::KEYS.contains(&key) && ![REDIRECTS, HTTP2].contains(&key);
    UNTOLD.contains(&key) || key.ends_with(DISCOVERY_SUFFIX) || is_of_client
}

/// Returns the settings of a job as YAML. `untold` is
/// [`ScrapeConfig::untold`](super::ScrapeConfig), and is appended.
pub fn effective(job: &Job, untold: &str) -> String {
    let mut lines = Lines(String::new());
    lines.text("job_name", &job.name);
    lines.put("scrape_interval", duration_text(job.interval));
    lines.put("scrape_timeout", duration_text(job.timeout));
    // A probe or a built-in source has no exposition.
    if job.probe.is_none() && !job.is_builtin {
        lines.of_exposition(job);
    }
    lines.limits(job);
    lines.rules("relabel_configs", &job.relabel);
    lines.rules("metric_relabel_configs", &job.metric_relabel);
    lines.0 + untold
}

struct Lines(String);

impl Lines {
    /// Writes a value that needs no quotes.
    fn put(&mut self, key: &str, value: impl Display) {
        self.0 += &format!("{key}: {value}\n");
    }

    fn text(&mut self, key: &str, value: &str) {
        self.put(key, quoted(value));
    }

    /// Writes a flag. Upstream omits a flag that is false.
    fn flag(&mut self, key: &str, is_on: bool) {
        if is_on {
            self.put(key, is_on);
        }
    }

    /// Writes a limit. Upstream omits a limit of zero.
    fn limit(&mut self, key: &str, limit: u64) {
        if limit > 0 {
            self.put(key, limit);
        }
    }

    /// Writes the settings for requesting and reading an exposition.
    fn of_exposition(&mut self, job: &Job) {
        self.flag("honor_labels", job.honor_labels);
        self.put("honor_timestamps", job.honor_timestamps);
        self.put("track_timestamps_staleness", job.track_timestamps_staleness);
        let protocols: Vec<&str> = job.protocols.iter().copied().map(Protocol::name).collect();
        self.put("scrape_protocols", format!("[{}]", protocols.join(", ")));
        if let Some(fallback) = job.fallback {
            self.put("fallback_scrape_protocol", fallback.name());
        }
        self.put("scrape_native_histograms", job.native_histograms);
        self.put("always_scrape_classic_histograms", job.always_classic_histograms);
        self.put("convert_classic_histograms_to_nhcb", job.convert_classic_histograms);
        if let Some(file) = &job.failure_log_file {
            self.text("scrape_failure_log_file", &file.display().to_string());
        }
        self.text("metrics_path", &job.metrics_path);
        self.put("scheme", &job.scheme);
        self.put("enable_compression", job.compression);
        self.put(REDIRECTS, job.client.follow_redirects.unwrap_or(true));
        self.put(HTTP2, job.client.enable_http2.unwrap_or(true));
        self.put("metric_name_validation_scheme", job.validation.as_str());
        self.put("metric_name_escaping_scheme", job.escaping.as_str());
        self.put("extra_scrape_metrics", job.extra_metrics);
    }

    fn limits(&mut self, job: &Job) {
        let limits = &job.limits;
        if limits.body_bytes > 0 {
            self.put("body_size_limit", format!("{}B", limits.body_bytes));
        }
        self.limit("sample_limit", limits.samples);
        self.limit("target_limit", limits.targets);
        self.limit("label_limit", limits.labels.labels);
        self.limit("label_name_length_limit", limits.labels.name_bytes);
        self.limit("label_value_length_limit", limits.labels.value_bytes);
        self.limit("native_histogram_bucket_limit", limits.buckets);
        if job.bucket_factor_min > 0.0 {
            self.put("native_histogram_min_bucket_factor", job.bucket_factor_min);
        }
        self.limit("keep_dropped_targets", limits.dropped_targets);
    }

    fn rules(&mut self, key: &str, rules: &[RuleSpec]) {
        if rules.is_empty() {
            return;
        }
        self.0 += &format!("{key}:\n");
        for rule in rules {
            self.0 += "- ";
            if !rule.source_labels.is_empty() {
                let names: Vec<String> =
                    rule.source_labels.iter().map(|name| quoted(name)).collect();
                self.0 += &format!("source_labels: [{}]\n  ", names.join(", "));
            }
            self.0 += &format!("separator: {}\n  ", quoted(&rule.separator));
            // Upstream omits the default regex.
            if rule.regex != RuleSpec::new(rule.action).regex {
                self.0 += &format!("regex: {}\n  ", quoted(&rule.regex));
            }
            self.0 += &format!("replacement: {}\n  ", quoted(&rule.replacement));
            if !rule.target_label.is_empty() {
                self.0 += &format!("target_label: {}\n  ", quoted(&rule.target_label));
            }
            if rule.modulus > 0 {
                self.0 += &format!("modulus: {}\n  ", rule.modulus);
            }
            self.0 += &format!("action: {}\n", rule.action.name());
        }
    }
}
