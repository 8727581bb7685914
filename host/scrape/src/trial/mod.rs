//! Trial scrapes, which store nothing and show the result of scraping one target.
//!
//! ```text
//! URL, job ─▶ target ─▶ Cycle, one scrape ─▶ TrialStore, in memory ─▶ Outcome ─▶ text, JSON
//! ```
//!
//! Begin with [`Trial::run`]. Everything except the store is the same as in a normal scrape. The
//! store is in memory and starts empty, with the limits of the real store, so that it refuses
//! samples that are invalid or contradict each other within the scrape.

mod json;
mod outcome;
mod store;
mod target_url;
mod text;

pub use outcome::{Outcome, Sample, Value};
pub use text::Shown;

use crate::append::Appender;
use crate::clock::{Clock as _, SystemClock, milliseconds};
use crate::config::{DiscoveryConfig, ScrapeConfig, matching};
use crate::cycle::Cycle;
use crate::discovery::listed;
use crate::error::ScrapeError;
use crate::job::Job;
use crate::labels::Labels;
use crate::metrics::Metrics;
use crate::pool::{PoolError, options, rules};
use crate::report::report_series;
use crate::request::{HttpSource, ResponseSummary};
use crate::source::Source;
use crate::target::{
    LabelMap, Target, TargetError, TargetGroup, discovered_labels, names, target_labels,
};
use std::hash::{BuildHasher as _, RandomState};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use store::TrialStore;
use target_url::TargetUrl;
use tidepool_client::Client;
use tidepool_settings::duration::duration_text;

/// Maximum number of refused samples in the outcome's list.
const REFUSALS_MAX: usize = 1000;

/// Checks the names and values of a label set; the error describes the fault.
pub type LabelCheck = Arc<dyn Fn(&[(&str, &str)]) -> Result<(), String> + Send + Sync>;

/// Settings of one trial scrape.
#[derive(Clone)]
pub struct Trial {
    /// URL, or host and port. Missing parts are taken from the job.
    pub url: String,
    /// The job. If it lists a target with the same address, that target's labels are used.
    pub config: ScrapeConfig,
    /// Timeout that replaces the timeout of the job.
    pub timeout: Option<Duration>,
    /// Value of the header `User-Agent`.
    pub user_agent: String,
    /// Default of `body_size_limit`, in bytes.
    pub body_bytes_max: u64,
    /// Maximum age of a sample, relative to the newest sample of its series.
    pub out_of_order_window: Duration,
    /// Checks whether the store accepts the labels of a series.
    pub check_labels: LabelCheck,
}

/// Reasons why there is nothing to scrape.
#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    /// The URL is not valid.
    #[error("{url} is no URL such as http://127.0.0.1:9100/metrics: {what}")]
    Url {
        /// The URL without parts that may be secret.
        url: String,
        what: String,
    },
    /// The URL has a user or a password.
    #[error(
        "the URL has credentials: put them into basic_auth of a job, and name the job by --config and --job"
    )]
    Credentials,
    /// A relabel rule does not compile, or the HTTP client cannot be created.
    #[error(transparent)]
    Pool(#[from] PoolError),
    /// The labels that the job and the URL give are not a valid target.
    #[error("job {job:?} makes no target of it: {source}")]
    Target {
        job: String,
        /// Fault of the target's labels.
        source: TargetError,
    },
    /// A relabel rule of the job drops the target.
    #[error("relabel_configs of job {job:?} drop this target: it would not be scraped")]
    Dropped {
        /// Name of the job with the rule.
        job: String,
    },
}

impl Trial {
    /// Scrapes once; needs a tokio runtime. A failed scrape is an outcome, not an error.
    pub async fn run(self) -> Result<Outcome, TrialError> {
        let job = &self.config.job.name;
        let (job, target) = self.target(&TargetUrl::parse(&self.url)?)?.ok_or_else(|| {
            let job = job.clone();
            TrialError::Dropped { job }
        })?;
        let metric_relabel = rules(&job.name, &job.metric_relabel)?;
        let options = options(&job, &target, Arc::new(Mutex::new(metric_relabel)));
        let metrics = Arc::<Metrics>::default();
        // A random seed, so that a target cannot craft collisions.
        let seed = RandomState::new().hash_one(&self.url);
        let mut appender = Appender::new(options, Arc::clone(&metrics), seed);
        appender.note_refusals(REFUSALS_MAX);
        let seen = Arc::<Mutex<ResponseSummary>>::default();
        let store = Arc::new(TrialStore::new(store::Rules {
            report_rows: report_series(job.extra_metrics),
            out_of_order_ms: milliseconds(self.out_of_order_window),
            check_labels: Arc::clone(&self.check_labels),
        }));
        let target = Arc::new(target);
        target.set_families(appender.families());
        let mut cycle = Cycle {
            source: self.source(&job, &target, &seen, &metrics)?,
            target: Arc::clone(&target),
            appender,
            store: Arc::clone(&store),
            clock: Arc::new(SystemClock),
            offset_seed: 0,
            sample_limit: job.limits.samples,
            metrics,
            job: job.name.clone(),
            failures: None,
        };
        let at = SystemClock.now();
        let result = cycle.scrape(at, None).await;
        let kept = store.take();
        let mut refusals = cycle.appender.refusals();
        for (labels, reason) in kept.refused {
            refusals.add(|| labels.series_text(), reason);
        }
        Ok(Outcome {
            target: Arc::clone(&target),
            answer: seen.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            at_ms: milliseconds(at),
            took: target.state().last_duration,
            body_bytes: cycle.appender.body_bytes(),
            error: result.err(),
            samples: kept.samples,
            report: kept.report,
            refusals,
            metadata: kept.metadata,
        })
    }

    /// Returns the target, and the job with the URL's parameters; `None` if a rule drops the
    /// target.
    fn target(&self, asked: &TargetUrl) -> Result<Option<(Job, Target)>, TrialError> {
        let mut job = self.config.job.clone();
        let (mut labels, mut group) = self.listed(&asked.address);
        // The parts of the URL replace the same labels of a listed target.
        labels.insert(names::ADDRESS.to_owned(), asked.address.clone());
        let mut say = |name: &str, value: &str| labels.insert(name.to_owned(), value.to_owned());
        if let Some(scheme) = &asked.scheme {
            say(names::SCHEME, scheme);
        }
        if let Some(path) = &asked.path {
            say(names::METRICS_PATH, path);
        }
        if let Some(timeout) = self.timeout {
            // The interval grows with the timeout, because a timeout above it is refused.
            say(names::SCRAPE_TIMEOUT, &duration_text(timeout));
            say(names::SCRAPE_INTERVAL, &duration_text(job.interval.max(timeout)));
        }
        if let Some(params) = &asked.params {
            // The parameters of the URL replace all parameters of job, target and group.
            job.params.clone_from(params);
            for labels in [&mut labels, &mut group] {
                labels.retain(|name, _| !name.starts_with(names::PARAM_PREFIX));
            }
        }
        let discovered = discovered_labels(&job, &Labels::of(&labels), &Labels::of(&group));
        let mut relabel = rules(&job.name, &job.relabel)?;
        let labels = target_labels(&job, discovered.clone(), &mut relabel)
            .map_err(|source| TrialError::Target { job: job.name.clone(), source })?;
        Ok(labels.map(|labels| {
            let target = Target::new(&job, labels, Labels::of(&discovered));
            (job, target)
        }))
    }

    /// Returns the labels of the listed target with this address, and the labels of its group.
    fn listed(&self, address: &str) -> (LabelMap, LabelMap) {
        let of = |groups: &[TargetGroup]| {
            groups.iter().find_map(|group| {
                let is_asked = |labels: &&Labels| labels.get(names::ADDRESS) == address;
                let target = group.targets.iter().find(is_asked)?;
                Some((target.to_map(), group.labels.to_map()))
            })
        };
        let found = self.config.discovery.iter().find_map(|discovery| match discovery {
            DiscoveryConfig::Static(groups) => of(groups),
            DiscoveryConfig::File(files) => {
                let paths = files.files.iter().filter_map(|pattern| matching(pattern).ok());
                // A list that cannot be read counts as empty.
                let groups = |path: &Path| listed(path).ok();
                paths.flatten().find_map(|path| of(groups(&path)?.groups()))
            }
            DiscoveryConfig::Http(_) | DiscoveryConfig::Dns(_) => None,
        });
        found.unwrap_or_default()
    }

    fn source(
        &self,
        job: &Job,
        target: &Target,
        seen: &Arc<Mutex<ResponseSummary>>,
        metrics: &Arc<Metrics>,
    ) -> Result<Result<Box<dyn Source>, ScrapeError>, TrialError> {
        let client = match target.unix_socket() {
            Some(socket) => Client::open_unix(&job.client, Path::new(socket)),
            None => Client::open(&job.client),
        };
        let wrong = |source| PoolError::Client { job: job.name.clone(), source };
        let (client, metrics) = (client.map_err(wrong)?, Arc::clone(metrics));
        let source =
            HttpSource::new(job, target, client, &self.user_agent, self.body_bytes_max, metrics);
        Ok(source.map(|source| -> Box<dyn Source> { Box::new(source.seen_by(Arc::clone(seen))) }))
    }
}
