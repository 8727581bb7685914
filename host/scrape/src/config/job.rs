//! An item of `scrape_configs` as written, and the job that it becomes with inherited settings.

use super::discovery::{DiscoverySections, DnsSection, FileSection, HttpSection, StaticSection};
use super::effective::untold;
use super::{GlobalConfig, ScrapeConfig};
use crate::job::{Job, LabelLimits, Limits};
use crate::protocol::Protocol;
use serde::{Deserialize, Deserializer};
use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::time::Duration;
use tidepool_client::HttpClientConfig;
use tidepool_exposition::{NameEscaping, NameValidation};
use tidepool_relabel::{Action, RuleSpec};
use tidepool_settings::RelabelConfig;
use tidepool_settings::duration::{bytes, read_duration_or_zero};
use tidepool_settings::yaml::{self, At, Data};

const KEY: &str = "scrape_configs";

/// Suffix of the keys of all discovery sections.
pub(super) const DISCOVERY_SUFFIX: &str = "_sd_configs";

/// Keys of the supported discovery sections, besides `static_configs`.
const DISCOVERY: [&str; 3] = ["file_sd_configs", "http_sd_configs", "dns_sd_configs"];

const PROTOCOLS: [Protocol; 5] = [
    Protocol::PrometheusProto,
    Protocol::OpenMetricsText1_0_0,
    Protocol::OpenMetricsText0_0_1,
    Protocol::PrometheusText1_0_0,
    Protocol::PrometheusText0_0_4,
];

/// All keys of a job: the keys that all HTTP clients share, and those of [`Section`].
pub(super) type FullSection = yaml::With<HttpClientConfig, Section>;

#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Section {
    pub job_name: String,
    pub honor_labels: bool,
    pub honor_timestamps: bool,
    pub track_timestamps_staleness: bool,
    pub params: BTreeMap<String, Vec<String>>,
    #[serde(deserialize_with = "read_duration_or_zero")]
    pub scrape_interval: Duration,
    #[serde(deserialize_with = "read_duration_or_zero")]
    pub scrape_timeout: Duration,
    pub scrape_protocols: Option<Protocols>,
    #[serde(deserialize_with = "fallback")]
    pub fallback_scrape_protocol: Option<Protocol>,
    pub scrape_native_histograms: Option<bool>,
    pub always_scrape_classic_histograms: Option<bool>,
    pub convert_classic_histograms_to_nhcb: Option<bool>,
    pub scrape_failure_log_file: Option<PathBuf>,
    pub metrics_path: String,
    #[serde(deserialize_with = "scheme")]
    pub scheme: String,
    pub enable_compression: bool,
    #[serde(deserialize_with = "size")]
    pub body_size_limit: u64,
    pub sample_limit: u64,
    pub target_limit: u64,
    pub label_limit: u64,
    pub label_name_length_limit: u64,
    pub label_value_length_limit: u64,
    pub native_histogram_bucket_limit: u64,
    pub native_histogram_min_bucket_factor: f64,
    pub keep_dropped_targets: u64,
    #[serde(deserialize_with = "validation")]
    pub metric_name_validation_scheme: Option<NameValidation>,
    #[serde(deserialize_with = "escaping")]
    pub metric_name_escaping_scheme: Option<NameEscaping>,
    pub extra_scrape_metrics: Option<bool>,
    pub static_configs: StaticSection,
    pub file_sd_configs: Vec<FileSection>,
    pub http_sd_configs: Vec<yaml::With<HttpClientConfig, HttpSection>>,
    pub dns_sd_configs: Vec<DnsSection>,
    pub relabel_configs: Vec<RelabelConfig>,
    pub metric_relabel_configs: Vec<RelabelConfig>,
}

impl Default for Section {
    fn default() -> Section {
        Section {
            job_name: String::new(),
            honor_labels: false,
            honor_timestamps: true,
            track_timestamps_staleness: false,
            params: BTreeMap::new(),
            scrape_interval: Duration::ZERO,
            scrape_timeout: Duration::ZERO,
            scrape_protocols: None,
            fallback_scrape_protocol: None,
            scrape_native_histograms: None,
            always_scrape_classic_histograms: None,
            convert_classic_histograms_to_nhcb: None,
            scrape_failure_log_file: None,
            metrics_path: "/metrics".into(),
            scheme: "http".into(),
            enable_compression: true,
            body_size_limit: 0,
            sample_limit: 0,
            target_limit: 0,
            label_limit: 0,
            label_name_length_limit: 0,
            label_value_length_limit: 0,
            native_histogram_bucket_limit: 0,
            native_histogram_min_bucket_factor: 0.0,
            keep_dropped_targets: 0,
            metric_name_validation_scheme: None,
            metric_name_escaping_scheme: None,
            extra_scrape_metrics: None,
            static_configs: StaticSection::default(),
            file_sd_configs: Vec::new(),
            http_sd_configs: Vec::new(),
            dns_sd_configs: Vec::new(),
            relabel_configs: Vec::new(),
            metric_relabel_configs: Vec::new(),
        }
    }
}

/// Protocols in the order of preference, each once.
#[derive(Deserialize)]
#[serde(try_from = "Vec<String>")]
pub(super) struct Protocols(pub Vec<Protocol>);

/// Reads the jobs of a section.
pub(super) fn read_all(
    node: &yaml::Node,
    global: &GlobalConfig,
) -> Result<Vec<ScrapeConfig>, yaml::Error> {
    check_discovery(KEY, node)?;
    let items: Vec<At<Option<FullSection>>> = yaml::read(KEY, node)?;
    let mut names = HashSet::new();
    let mut jobs = Vec::with_capacity(items.len());
    for (number, At { place, value }) in items.into_iter().enumerate() {
        let wrong = |what: String| yaml::Error::new(place, format!("{KEY}[{number}]"), what);
        let whole = value.ok_or_else(|| wrong("empty or null scrape config section".into()))?;
        check_addresses(&whole.rest).map_err(wrong)?;
        let mut job = resolved(whole, global).map_err(wrong)?;
        job.untold = untold(node, number);
        if !names.insert(job.job.name.clone()) {
            let name = &job.job.name;
            return Err(wrong(format!("found multiple scrape configs with job name {name:?}")));
        }
        jobs.push(job);
    }
    Ok(jobs)
}

/// Refuses unsupported discovery with a hint, before the check that refuses unknown keys.
pub fn check_discovery(section: &str, node: &yaml::Node) -> Result<(), yaml::Error> {
    let Data::List(items) = &node.data else { return Ok(()) };
    for (number, item) in items.iter().enumerate() {
        let Data::Map(entries) = &item.data else { continue };
        let is_absent = |key: &str| key.ends_with(DISCOVERY_SUFFIX) && !DISCOVERY.contains(&key);
        if let Some(entry) = entries.iter().find(|entry| is_absent(&entry.key)) {
            let what = "this discovery is not supported; write its targets to a file for \
                        file_sd_configs, or serve them as JSON for http_sd_configs";
            let key = format!("{section}[{number}].{}", entry.key);
            return Err(yaml::Error::new(entry.place, key, what));
        }
    }
    Ok(())
}

/// Checks that all listed addresses can be scraped, unless relabel rules may change them.
fn check_addresses(section: &Section) -> Result<(), String> {
    match section.relabel_configs.is_empty() {
        true => section.static_configs.check_addresses(),
        false => Ok(()),
    }
}

/// Resolves a job with the settings that it inherits.
pub(super) fn resolved(whole: FullSection, global: &GlobalConfig) -> Result<ScrapeConfig, String> {
    let yaml::With { part: client, rest: section } = whole;
    let name = section.job_name;
    if name.is_empty() {
        return Err("job_name is empty".into());
    }
    // As upstream, zero means that the interval is not set.
    let interval = match section.scrape_interval {
        Duration::ZERO => global.scrape_interval,
        interval => interval,
    };
    // Upstream lowers an inherited timeout to the interval, but refuses a longer timeout of the
    // job.
    let timeout = match section.scrape_timeout {
        Duration::ZERO => global.scrape_timeout.min(interval),
        timeout if timeout > interval => {
            return Err(format!(
                "scrape timeout greater than scrape interval for scrape config with job name \
                 {name:?}"
            ));
        }
        timeout => timeout,
    };
    let or = |given: u64, inherited| if given == 0 { inherited } else { given };
    let inherited = &global.limits;
    let limits = Limits {
        body_bytes: or(section.body_size_limit, inherited.body_bytes),
        samples: or(section.sample_limit, inherited.samples),
        targets: or(section.target_limit, inherited.targets),
        labels: LabelLimits {
            labels: or(section.label_limit, inherited.labels.labels),
            name_bytes: or(section.label_name_length_limit, inherited.labels.name_bytes),
            value_bytes: or(section.label_value_length_limit, inherited.labels.value_bytes),
        },
        dropped_targets: or(section.keep_dropped_targets, inherited.dropped_targets),
        buckets: section.native_histogram_bucket_limit,
    };
    let native_histograms = section.scrape_native_histograms.unwrap_or(global.native_histograms);
    let validation = section.metric_name_validation_scheme.unwrap_or(global.validation);
    let by_validation = |validation| match validation {
        NameValidation::Utf8 => NameEscaping::AllowUtf8,
        NameValidation::Legacy => NameEscaping::Underscores,
    };
    let escaping =
        match (section.metric_name_escaping_scheme, section.metric_name_validation_scheme) {
            (Some(escaping), _) => escaping,
            // Validation set for this job prevails over escaping set for all jobs.
            (None, Some(own)) => by_validation(own),
            (None, None) => global.escaping.unwrap_or_else(|| by_validation(global.validation)),
        };
    if escaping == NameEscaping::AllowUtf8 && validation == NameValidation::Legacy {
        return Err("utf8 metric names requested but validation scheme is not set to UTF8".into());
    }
    let rules = |rules: Vec<RelabelConfig>| -> Result<Vec<RuleSpec>, String> {
        let rules: Vec<RuleSpec> = rules.into_iter().map(RuleSpec::from).collect();
        rules.iter().try_for_each(|rule| check_names(rule, validation))?;
        Ok(rules)
    };
    let relabel = rules(section.relabel_configs)?;
    let metric_relabel = rules(section.metric_relabel_configs)?;
    let discovery = DiscoverySections {
        static_configs: section.static_configs,
        file_sd_configs: section.file_sd_configs,
        http_sd_configs: section.http_sd_configs,
        dns_sd_configs: section.dns_sd_configs,
    };
    let discovery = discovery.into_configs();
    let protocols = section.scrape_protocols.map(|Protocols(protocols)| protocols);
    let inherited_file = global.failure_log_file.clone();
    let failure_log_file = path(section.scrape_failure_log_file).or(inherited_file);
    let job = Job {
        interval,
        timeout,
        metrics_path: section.metrics_path,
        scheme: section.scheme,
        params: section.params,
        honor_labels: section.honor_labels,
        honor_timestamps: section.honor_timestamps,
        track_timestamps_staleness: section.track_timestamps_staleness,
        limits,
        bucket_factor_min: section.native_histogram_min_bucket_factor,
        relabel,
        metric_relabel,
        protocols: protocols.unwrap_or_else(|| global.protocols(native_histograms)),
        fallback: section.fallback_scrape_protocol,
        escaping,
        validation,
        compression: section.enable_compression,
        native_histograms,
        always_classic_histograms: section
            .always_scrape_classic_histograms
            .unwrap_or(global.always_classic_histograms),
        convert_classic_histograms: section
            .convert_classic_histograms_to_nhcb
            .unwrap_or(global.convert_classic_histograms),
        extra_metrics: section.extra_scrape_metrics.unwrap_or(global.extra_metrics),
        failure_log_file,
        client,
        ..Job::new(name)
    };
    Ok(ScrapeConfig::new(job, discovery))
}

/// Checks the label name that a rule sets. Names that a template makes are known only at use.
fn check_names(rule: &RuleSpec, validation: NameValidation) -> Result<(), String> {
    let RuleSpec { action, target_label, .. } = rule;
    let sets = [
        Action::Replace,
        Action::HashMod,
        Action::Lowercase,
        Action::Uppercase,
        Action::KeepEqual,
        Action::DropEqual,
    ];
    let is_template = *action == Action::Replace && target_label.contains('$');
    match sets.contains(action) && !is_template && !validation.is_label_name(target_label) {
        true => Err(format!("a relabel rule: {target_label:?} is not a valid label name")),
        false => Ok(()),
    }
}

impl TryFrom<Vec<String>> for Protocols {
    type Error = String;

    fn try_from(names: Vec<String>) -> Result<Protocols, String> {
        if names.is_empty() {
            return Err("scrape_protocols cannot be empty".into());
        }
        let mut protocols: Vec<Protocol> = Vec::with_capacity(names.len());
        for name in names {
            let protocol = protocol(&name)?;
            if protocols.contains(&protocol) {
                return Err(format!("duplicated protocol in scrape_protocols: {name}"));
            }
            protocols.push(protocol);
        }
        Ok(Protocols(protocols))
    }
}

fn protocol(name: &str) -> Result<Protocol, String> {
    PROTOCOLS.into_iter().find(|protocol| protocol.name() == name).ok_or_else(|| {
        let known = PROTOCOLS.map(Protocol::name).join(", ");
        format!("unknown scrape protocol {name}, supported: {known}")
    })
}

fn fallback<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Protocol>, D::Error> {
    yaml::parsed(deserializer, |text| match text {
        "" => Ok(None),
        text => protocol(text).map(Some),
    })
}

fn scheme<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    yaml::parsed(deserializer, |text| match text {
        "" => Ok("http".to_owned()),
        _ if ["http", "https"].contains(&text.to_ascii_lowercase().as_str()) => Ok(text.to_owned()),
        _ => Err("expected http or https"),
    })
}

/// Reads a size with a unit; only zero may lack the unit.
pub(super) fn size<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    yaml::parsed(deserializer, |text| match text {
        "" | "0" => Ok(0),
        text if text.ends_with(|c: char| c.is_ascii_digit()) => {
            Err(format!("{text:?} has no unit, as in 10MB"))
        }
        text => bytes(text),
    })
}

pub(super) fn validation<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<NameValidation>, D::Error> {
    yaml::parsed(deserializer, |text| match text {
        "" => Ok(None),
        text => NameValidation::from_name(text).map(Some).ok_or("expected utf8 or legacy"),
    })
}

pub(super) fn escaping<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<NameEscaping>, D::Error> {
    yaml::parsed(deserializer, |text| match text {
        "" => Ok(None),
        text => NameEscaping::from_name(text)
            .map(Some)
            .ok_or("expected allow-utf-8, underscores, dots or values"),
    })
}

/// Returns the path, unless it is empty.
pub(super) fn path(path: Option<PathBuf>) -> Option<PathBuf> {
    path.filter(|path| !path.as_os_str().is_empty())
}
