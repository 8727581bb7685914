//! The section `global` of the configuration.

use super::job::{self, Protocols};
use crate::protocol::Protocol;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tidepool_exposition::{NameEscaping, NameValidation};
use tidepool_settings::duration::read_duration_or_zero;
use tidepool_settings::yaml;

/// Default of `scrape_interval` and `evaluation_interval`.
const INTERVAL: Duration = Duration::from_secs(60);

/// Default of `scrape_timeout`, unless the interval is shorter.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Settings that jobs inherit unless they have their own. A limit of zero means no limit.
#[derive(Clone, Debug, PartialEq)]
pub struct GlobalConfig {
    pub scrape_interval: Duration,
    /// Maximum duration of a scrape, at most the interval.
    pub scrape_timeout: Duration,
    /// Formats of `scrape_protocols`; if absent, they depend on native histograms.
    pub protocols: Option<Vec<Protocol>>,
    pub evaluation_interval: Duration,
    pub rule_query_offset: Duration,
    pub query_log_file: Option<PathBuf>,
    pub failure_log_file: Option<PathBuf>,
    /// Labels of `external_labels`, with variables of the environment expanded.
    pub external_labels: BTreeMap<String, String>,
    pub limits: crate::job::Limits,
    pub validation: NameValidation,
    /// Setting `metric_name_escaping_scheme`; if absent, it follows from the validation.
    pub escaping: Option<NameEscaping>,
    pub native_histograms: bool,
    pub convert_classic_histograms: bool,
    pub always_classic_histograms: bool,
    pub extra_metrics: bool,
    /// Settings in the file that have no effect: a query log is not supported.
    pub unused: Vec<&'static str>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Section {
    #[serde(deserialize_with = "read_duration_or_zero")]
    scrape_interval: Duration,
    #[serde(deserialize_with = "read_duration_or_zero")]
    scrape_timeout: Duration,
    scrape_protocols: Option<Protocols>,
    #[serde(deserialize_with = "read_duration_or_zero")]
    evaluation_interval: Duration,
    #[serde(deserialize_with = "read_duration_or_zero")]
    rule_query_offset: Duration,
    query_log_file: Option<PathBuf>,
    scrape_failure_log_file: Option<PathBuf>,
    #[serde(deserialize_with = "yaml::pairs")]
    external_labels: Vec<(String, String)>,
    #[serde(deserialize_with = "job::size")]
    body_size_limit: u64,
    sample_limit: u64,
    target_limit: u64,
    label_limit: u64,
    label_name_length_limit: u64,
    label_value_length_limit: u64,
    keep_dropped_targets: u64,
    #[serde(deserialize_with = "job::validation")]
    metric_name_validation_scheme: Option<NameValidation>,
    #[serde(deserialize_with = "job::escaping")]
    metric_name_escaping_scheme: Option<NameEscaping>,
    scrape_native_histograms: bool,
    convert_classic_histograms_to_nhcb: bool,
    always_scrape_classic_histograms: bool,
    extra_scrape_metrics: bool,
}

impl Default for GlobalConfig {
    fn default() -> GlobalConfig {
        GlobalConfig {
            scrape_interval: INTERVAL,
            scrape_timeout: TIMEOUT,
            protocols: None,
            evaluation_interval: INTERVAL,
            rule_query_offset: Duration::ZERO,
            query_log_file: None,
            failure_log_file: None,
            external_labels: BTreeMap::new(),
            limits: crate::job::Limits::default(),
            validation: NameValidation::Utf8,
            escaping: None,
            native_histograms: false,
            convert_classic_histograms: false,
            always_classic_histograms: false,
            extra_metrics: false,
            unused: Vec::new(),
        }
    }
}

impl GlobalConfig {
    pub(super) fn read(node: &yaml::Node) -> Result<GlobalConfig, yaml::Error> {
        let section: Section = yaml::read("global", node)?;
        let variable = |name: &str| std::env::var(name).ok();
        let made = section.global(variable);
        made.map_err(|what| yaml::Error::new(node.place, "global", what))
    }

    /// Returns the formats of a job that sets none.
    pub(super) fn protocols(&self, native_histograms: bool) -> Vec<Protocol> {
        match &self.protocols {
            Some(protocols) => protocols.clone(),
            None if native_histograms => {
                [&[Protocol::PrometheusProto][..], &Protocol::TEXTS].concat()
            }
            None => Protocol::TEXTS.to_vec(),
        }
    }

    pub(super) fn set_directory(&mut self, directory: &Path) {
        for file in [&mut self.query_log_file, &mut self.failure_log_file].into_iter().flatten() {
            *file = directory.join(&file);
        }
    }
}

impl Section {
    fn unused(&self) -> Vec<&'static str> {
        let given = [("query_log_file", self.query_log_file.is_some())];
        given.into_iter().filter(|(_, is_given)| *is_given).map(|(name, _)| name).collect()
    }

    fn global(self, variable: impl Fn(&str) -> Option<String>) -> Result<GlobalConfig, String> {
        let unused = self.unused();
        let validation = self.metric_name_validation_scheme.unwrap_or_default();
        let mut external_labels = BTreeMap::new();
        for (name, value) in self.external_labels {
            if !validation.is_label_name(&name) {
                return Err(format!("external_labels: {name:?} is not a valid label name"));
            }
            external_labels.insert(name, expanded(&value, &variable));
        }
        let or = |given: Duration, default| if given.is_zero() { default } else { given };
        let scrape_interval = or(self.scrape_interval, INTERVAL);
        if self.scrape_timeout > scrape_interval {
            return Err("global scrape timeout greater than scrape interval".into());
        }
        let labels = crate::job::LabelLimits {
            labels: self.label_limit,
            name_bytes: self.label_name_length_limit,
            value_bytes: self.label_value_length_limit,
        };
        Ok(GlobalConfig {
            scrape_interval,
            scrape_timeout: or(self.scrape_timeout, TIMEOUT.min(scrape_interval)),
            protocols: self.scrape_protocols.map(|Protocols(protocols)| protocols),
            evaluation_interval: or(self.evaluation_interval, INTERVAL),
            rule_query_offset: self.rule_query_offset,
            query_log_file: job::path(self.query_log_file),
            failure_log_file: job::path(self.scrape_failure_log_file),
            external_labels,
            limits: crate::job::Limits {
                body_bytes: self.body_size_limit,
                samples: self.sample_limit,
                targets: self.target_limit,
                labels,
                dropped_targets: self.keep_dropped_targets,
                buckets: 0,
            },
            validation,
            escaping: self.metric_name_escaping_scheme,
            native_histograms: self.scrape_native_histograms,
            convert_classic_histograms: self.convert_classic_histograms_to_nhcb,
            always_classic_histograms: self.always_scrape_classic_histograms,
            extra_metrics: self.extra_scrape_metrics,
            unused,
        })
    }
}

/// Expands `$name` and `${name}` to environment variables; `$$` becomes a dollar sign. A variable
/// that is not set becomes empty, as for upstream (`os.Expand` of Go).
fn expanded(text: &str, variable: impl Fn(&str) -> Option<String>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('$') {
        out.push_str(before);
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let (name, after) = match behind.strip_prefix('{') {
            Some(inner) => match inner.split_once('}') {
                Some(parts) => parts,
                // Like Go, drops a `${` that has no closing brace.
                None => ("", inner),
            },
            None if behind.starts_with('$') => behind.split_at(1),
            None => behind.split_at(behind.find(|c| !is_part(c)).unwrap_or(behind.len())),
        };
        match name {
            "$" => out.push('$'),
            "" if !behind.starts_with('{') => out.push('$'),
            name => match variable(name) {
                Some(value) => out.push_str(&value),
                None => tracing::warn!(name, "an external label names a variable that is not set"),
            },
        }
        rest = after;
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_expanded_as_in_go() {
        let variable = |name: &str| (name == "TEST").then(|| "TestValue".to_owned());
        for (text, expected) in [
            ("foo", "foo"),
            ("foo${TEST}bar", "fooTestValuebar"),
            ("foo$TEST", "fooTestValue"),
            ("foo$${TEST}", "foo${TEST}"),
            ("foo$$bar", "foo$bar"),
            ("${unset}", ""),
            ("a$unset.b", "a.b"),
            ("5$", "5$"),
            ("$ 5", "$ 5"),
            ("a${TEST", "aTEST"),
        ] {
            assert_eq!(expanded(text, variable), expected, "{text}");
        }
    }
}
