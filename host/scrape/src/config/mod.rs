//! Configuration of scraping: the sections `global`, `scrape_configs` and `scrape_config_files`,
//! with the names, defaults and strictness of Prometheus 3.15 (`config/config.go`). Configuration
//! of probes: `probe_modules` and `probe_configs`.
//!
//! ```text
//! global ──────────┐
//! scrape_configs ──┼─▶ ScrapeSettings: global, and one ScrapeConfig a job
//! the files of     │        (a Job, and where its targets come from)
//! scrape_config_files
//! ```
//!
//! Begin with [`ScrapeSettings::read`]. `global` reads what jobs inherit, `job` a job as written
//! and as resolved, `probe` a job of probes, `discovery` the sections that list or find targets,
//! `files` the further files, `glob` their patterns; `effective` writes the settings of a job as
//! YAML.
//!
//! Differences from upstream: only static lists, files, HTTP and DNS are supported as discovery
//! (any other kind is an error that names it), DNS lacks the records MX and NS, and a scheme other
//! than http and https is an error.

mod discovery;
mod effective;
mod files;
mod glob;
mod global;
mod job;
mod probe;

pub use discovery::{
    DiscoveryConfig, DiscoverySections, DnsConfig, DnsType, FileConfig, HttpConfig,
};
pub use effective::effective;
pub use files::ConfigError;
pub use glob::Pattern;
pub(crate) use glob::matching;
pub use global::GlobalConfig;
pub use job::check_discovery;

use crate::job::Job;
use std::path::{Path, PathBuf};
use tidepool_settings::yaml;

/// A job, and the sources of its targets.
#[derive(Clone, Debug, PartialEq)]
pub struct ScrapeConfig {
    /// Settings for making and scraping the targets.
    pub job: Job,
    pub discovery: Vec<DiscoveryConfig>,
    /// Settings in the file that [`Job`] does not store, as YAML without secrets.
    pub untold: String,
}

/// The global settings, and all jobs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScrapeSettings {
    /// Settings that all jobs inherit.
    pub global: GlobalConfig,
    /// The jobs in file order, followed by the jobs of further files.
    pub jobs: Vec<ScrapeConfig>,
    /// Patterns of `scrape_config_files`, which match further files with jobs.
    pub files: Vec<Pattern>,
}

/// Depth to which a configuration is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Depth {
    /// Only the text; files that the text names need not exist.
    Syntax,
    /// Also the files that the text names.
    #[default]
    Files,
}

/// The sections of a configuration file; each may be missing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sections<'n> {
    pub global: Option<&'n yaml::Node>,
    /// Jobs that are scraped: `scrape_configs`.
    pub jobs: Option<&'n yaml::Node>,
    /// Patterns of further files: `scrape_config_files`.
    pub files: Option<&'n yaml::Node>,
    pub probe_modules: Option<&'n yaml::Node>,
    /// Jobs that are probed: `probe_configs`.
    pub probes: Option<&'n yaml::Node>,
    /// Whether files that the sections name are read.
    pub depth: Depth,
}

impl ScrapeSettings {
    /// Returns the further files that exist now. An unreadable directory counts as empty.
    pub fn further_files(&self) -> Vec<PathBuf> {
        let found = self.files.iter().filter_map(|pattern| matching(pattern).ok());
        found.flatten().take(files::FILES_MAX).collect()
    }

    /// Reads the sections and the files that they name. Relative paths are resolved against
    /// `directory`, which contains the configuration file.
    pub fn read(sections: Sections<'_>, directory: &Path) -> Result<ScrapeSettings, ConfigError> {
        let raw = match sections.global {
            Some(node) => GlobalConfig::read(node)?,
            None => GlobalConfig::default(),
        };
        let mut jobs = match sections.jobs {
            Some(node) => job::read_all(node, &raw)?,
            None => Vec::new(),
        };
        for job in &mut jobs {
            job.set_directory(directory);
        }
        // Jobs of further files inherit paths that are relative to this file.
        let mut global = raw.clone();
        global.set_directory(directory);
        let files = match sections.files {
            Some(node) => {
                let patterns = files::patterns(node, directory)?;
                if sections.depth == Depth::Files {
                    files::read_all(&patterns, node.place, &global, &mut jobs)?;
                }
                patterns
            }
            None => Vec::new(),
        };
        let modules = tidepool_probe::config::read(sections.probe_modules, directory)?;
        if let Some(node) = sections.probes {
            // Only probe jobs: the paths of all jobs before them are resolved already.
            let first = jobs.len();
            probe::read_all(node, &raw, &modules, &mut jobs)?;
            jobs[first..].iter_mut().for_each(|job| job.set_directory(directory));
        }
        Ok(ScrapeSettings { global, jobs, files })
    }
}

impl ScrapeConfig {
    /// Creates a job that is not from a file.
    pub fn new(job: Job, discovery: Vec<DiscoveryConfig>) -> ScrapeConfig {
        ScrapeConfig { job, discovery, untold: String::new() }
    }

    /// Resolves relative paths against a directory.
    fn set_directory(&mut self, directory: &Path) {
        self.job.client.set_directory(directory);
        self.discovery.iter_mut().for_each(|discovery| discovery.set_directory(directory));
        if let Some(file) = &mut self.job.failure_log_file {
            *file = directory.join(&file);
        }
    }
}

#[cfg(test)]
mod tests;
