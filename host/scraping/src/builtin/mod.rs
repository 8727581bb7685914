//! Jobs that need no configuration: the machine's metrics (`node`) and this process' own
//! (`tidepool`). A configured job of the same name takes the place of one.

mod machine;
mod own;
mod text_files;

pub use own::OwnMetrics;

use machine::MachineMetrics;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tidepool_node_metrics::Options;
use tidepool_scrape::config::{DiscoveryConfig, ScrapeConfig as JobConfig};
use tidepool_scrape::job::Job;
use tidepool_scrape::labels::Labels;
use tidepool_scrape::source::Builtin;
use tidepool_scrape::target::TargetGroup;

/// The job of the machine's metrics.
const NODE: &str = "node";
/// The job of this process' own metrics.
const OWN: &str = "tidepool";
/// The scheme of their targets' URLs.
const SCHEME: &str = "builtin";
/// As the scrape timeout of a job, but not above the interval.
const TIMEOUT_MAX: Duration = Duration::from_secs(10);

/// Which built-in jobs there are.
#[derive(Clone, Debug)]
pub struct BuiltinConfig {
    /// What is read of the machine; nothing if that is off.
    pub host: Option<Options>,
    /// Whether this process' own metrics are recorded.
    pub own: bool,
    /// Time between two rounds.
    pub interval: Duration,
    /// The label `instance`; the host name, if there is none.
    pub instance: Option<String>,
}

impl Default for BuiltinConfig {
    /// None.
    fn default() -> BuiltinConfig {
        BuiltinConfig { host: None, own: false, interval: Duration::from_secs(15), instance: None }
    }
}

impl BuiltinConfig {
    /// The jobs, without those whose names are taken.
    pub fn jobs(&self, configured: &[JobConfig], host_name: &str) -> Vec<JobConfig> {
        let wanted = [(NODE, self.host.is_some()), (OWN, self.own)];
        let is_taken = |name: &str| configured.iter().any(|config| config.job.name == name);
        let names = wanted.into_iter().filter(|(name, is_on)| *is_on && !is_taken(name));
        names.map(|(name, _)| self.job(name, host_name)).collect()
    }

    fn job(&self, name: &str, host_name: &str) -> JobConfig {
        let job = Job {
            interval: self.interval,
            timeout: self.interval.min(TIMEOUT_MAX),
            is_builtin: true,
            // Nothing is asked over HTTP: the URL in lists of targets says so.
            scheme: SCHEME.to_owned(),
            metrics_path: String::new(),
            ..Job::new(name)
        };
        let instance = self.instance.as_deref().unwrap_or(host_name);
        let group = TargetGroup {
            source: "built in".to_owned(),
            targets: vec![Labels::one("__address__", name)],
            labels: Labels::one("instance", instance),
        };
        let discovery = vec![DiscoveryConfig::Static(Arc::new(vec![group]))];
        JobConfig::new(job, discovery)
    }

    /// Where the samples of the jobs come from.
    pub fn sources(&self, own: OwnMetrics) -> BTreeMap<String, Arc<dyn Builtin>> {
        let mut sources: BTreeMap<String, Arc<dyn Builtin>> = BTreeMap::new();
        if let Some(options) = &self.host {
            sources.insert(NODE.to_owned(), Arc::new(MachineMetrics::new(options.clone())));
        }
        if self.own {
            sources.insert(OWN.to_owned(), Arc::new(own));
        }
        sources
    }
}
