//! Jobs that need no configuration: metrics of the machine (`node`) and of this process
//! (`tidepool`). A configured job of the same name replaces a built-in one.

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

const NODE: &str = "node";
const OWN: &str = "tidepool";
/// Scheme in the URLs of the built-in targets.
const SCHEME: &str = "builtin";
/// Upstream's default timeout, used if the interval is not shorter.
const TIMEOUT_MAX: Duration = Duration::from_secs(10);

#[derive(Clone, Debug)]
pub struct BuiltinConfig {
    /// Options of host metrics; `None` disables host metrics.
    pub host: Option<Options>,
    /// Whether metrics of this process are recorded.
    pub own: bool,
    pub interval: Duration,
    /// Value of the label `instance`; the host name if absent.
    pub instance: Option<String>,
}

impl Default for BuiltinConfig {
    fn default() -> BuiltinConfig {
        BuiltinConfig { host: None, own: false, interval: Duration::from_secs(15), instance: None }
    }
}

impl BuiltinConfig {
    /// Returns the built-in jobs, except those with the name of a configured job.
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
            // Shown in URLs of targets; the scheme indicates that nothing is requested over HTTP.
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

    /// Returns the sources of the built-in jobs' samples, by job name.
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
