//! The items of `probe_configs`: jobs whose targets are probed. An item has `module`, and those
//! keys of a scrape job that concern targets, schedule, labels and limits.

use super::discovery::{DnsSection, FileSection, HttpSection, StaticSection};
use super::effective::untold;
use super::job::{FullSection, Section, check_discovery, resolved};
use super::{GlobalConfig, ScrapeConfig};
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;
use tidepool_client::HttpClientConfig;
use tidepool_probe::ModuleSet;
use tidepool_probe::config::MODULE_DEFAULT;
use tidepool_settings::RelabelConfig;
use tidepool_settings::duration::read_duration_or_zero;
use tidepool_settings::yaml::{self, At};

const KEY: &str = "probe_configs";

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ProbeSection {
    job_name: String,
    module: String,
    #[serde(deserialize_with = "read_duration_or_zero")]
    scrape_interval: Duration,
    #[serde(deserialize_with = "read_duration_or_zero")]
    scrape_timeout: Duration,
    sample_limit: u64,
    target_limit: u64,
    label_limit: u64,
    label_name_length_limit: u64,
    label_value_length_limit: u64,
    keep_dropped_targets: u64,
    static_configs: Option<StaticSection>,
    file_sd_configs: Vec<FileSection>,
    http_sd_configs: Vec<yaml::With<HttpClientConfig, HttpSection>>,
    dns_sd_configs: Vec<DnsSection>,
    relabel_configs: Vec<RelabelConfig>,
    metric_relabel_configs: Vec<RelabelConfig>,
}

/// Reads the jobs of the section and appends them to `jobs`.
pub(super) fn read_all(
    node: &yaml::Node,
    global: &GlobalConfig,
    modules: &ModuleSet,
    jobs: &mut Vec<ScrapeConfig>,
) -> Result<(), yaml::Error> {
    check_discovery(KEY, node)?;
    let items: Vec<At<Option<ProbeSection>>> = yaml::read(KEY, node)?;
    for (number, At { place, value }) in items.into_iter().enumerate() {
        let wrong = |what: String| yaml::Error::new(place, format!("{KEY}[{number}]"), what);
        let section = value.ok_or_else(|| wrong("empty or null section".to_owned()))?;
        let mut job = probed(section, global, modules).map_err(wrong)?;
        job.untold = untold(node, number);
        // Scrape jobs are compared, too: both kinds of jobs set the label `job`.
        if jobs.iter().any(|other| other.job.name == job.job.name) {
            let name = &job.job.name;
            return Err(wrong(format!("found multiple jobs with job name {name:?}")));
        }
        jobs.push(job);
    }
    Ok(())
}

fn probed(
    section: ProbeSection,
    global: &GlobalConfig,
    modules: &ModuleSet,
) -> Result<ScrapeConfig, String> {
    let name = match section.module.as_str() {
        "" => MODULE_DEFAULT,
        name => name,
    };
    let module = modules.get(name).ok_or_else(|| {
        let known: Vec<&str> = modules.keys().map(String::as_str).collect();
        format!("module {name:?} is not among probe_modules: {}", known.join(", "))
    })?;
    let rest = Section {
        job_name: section.job_name,
        // Empty, so that targets lack `__metrics_path__` and `__scheme__`, which no probe uses.
        metrics_path: String::new(),
        scheme: String::new(),
        scrape_interval: section.scrape_interval,
        scrape_timeout: section.scrape_timeout,
        sample_limit: section.sample_limit,
        target_limit: section.target_limit,
        label_limit: section.label_limit,
        label_name_length_limit: section.label_name_length_limit,
        label_value_length_limit: section.label_value_length_limit,
        keep_dropped_targets: section.keep_dropped_targets,
        static_configs: section.static_configs.unwrap_or(StaticSection(Vec::new())),
        file_sd_configs: section.file_sd_configs,
        http_sd_configs: section.http_sd_configs,
        dns_sd_configs: section.dns_sd_configs,
        relabel_configs: section.relabel_configs,
        metric_relabel_configs: section.metric_relabel_configs,
        ..Section::default()
    };
    let mut config = resolved(FullSection { part: HttpClientConfig::default(), rest }, global)?;
    config.job.probe = Some(Arc::clone(module));
    Ok(config)
}
