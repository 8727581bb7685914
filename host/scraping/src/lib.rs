//! Connects `tidepool_scrape` with this program: its thread, the store, the metrics of machine and
//! program as built-in jobs, and the figures of scraping.
//!
//! Invariant: nothing here runs on the threads of the network, and a scrape reaches the head as one
//! unit. What holds of a job is decided in `tidepool_scrape`.
//!
//! - [`Scraping`]: starts what is configured, and takes over what a reload changes.
//! - `builtin`: jobs that need no configuration.
//! - `thread`: where all that happens.
//! - `store`: where samples go, by the numbers of their series; `request`: what of them has no
//!   columns; `labelled`: what plugins look at.

#![deny(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod builtin;
pub mod flags;
mod labelled;
mod metrics;
mod request;
mod store;
mod thread;

pub use builtin::{BuiltinConfig, OwnMetrics};

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use store::ScrapeStore;
use thread::ScrapeThread;
use tidepool_lifecycle::boxed::BoxFuture;
use tidepool_lifecycle::clock::since_epoch;
use tidepool_lifecycle::shutdown::Shutdown;
use tidepool_plugins::intake::Intake;
use tidepool_protocol::prom::external_labels::ExternalLabels;
use tidepool_scrape::clock::Clock;
use tidepool_scrape::config::{
    DiscoveryConfig, ScrapeConfig as JobConfig, ScrapeSettings, effective,
};
use tidepool_scrape::discovery::{Discovery, DiscoveryError, DiscoveryOptions, Groups};
use tidepool_scrape::failure_log::FailureLog;
use tidepool_scrape::job::Job;
use tidepool_scrape::manager::{Manager, TargetSets};
use tidepool_scrape::memory::MemoryBound;
use tidepool_scrape::metrics::Metrics;
use tidepool_scrape::pool::{Context, Listed, PoolError};
use tidepool_scrape::target::offset_seed;
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinHandle};

/// Where the last lists of servers that name targets are kept, in the data directory.
const SAVED_DIRECTORY: &str = "targets";

/// Where the kernel says what this machine is called.
const HOST_NAME: &str = "/proc/sys/kernel/hostname";

/// How often is looked whether the log has been read.
const READY_POLL: Duration = Duration::from_millis(20);

/// What requests call their sender.
pub const USER_AGENT: &str = concat!("tidepool/", env!("CARGO_PKG_VERSION"));

/// What is scraped.
#[derive(Clone, Debug, Default)]
pub struct ScrapeConfig {
    /// The sections of the configuration file.
    pub settings: ScrapeSettings,
    /// Largest uncompressed body of a job without `body_size_limit`, in bytes.
    pub body_bytes_max: u64,
    /// Largest size of a file of failed scrapes, in bytes.
    pub failure_log_bytes_max: u64,
    /// What needs no section.
    pub builtin: BuiltinConfig,
}

/// Why something cannot be scraped as it is configured.
#[derive(Debug, thiserror::Error)]
pub enum ScrapingError {
    /// The server that names targets cannot be asked.
    #[error("scrape_configs: job {job:?}: {source}")]
    Discovery {
        /// The job.
        job: String,
        /// Why not.
        source: DiscoveryError,
    },
    /// A job cannot be scraped.
    #[error("scrape_configs: {0}")]
    Pool(#[from] PoolError),
    /// There is no thread to scrape on.
    #[error("could not start the thread that scrapes: {0}")]
    Thread(#[from] std::io::Error),
}

/// All scraping of this process; clones share it.
#[derive(Clone)]
pub struct Scraping(Arc<Shared>);

struct Shared {
    manager: Manager<ScrapeStore>,
    _thread: ScrapeThread,
    metrics: Arc<Metrics>,
    memory: MemoryBound,
    discovery: DiscoveryOptions,
    jobs: Mutex<HashMap<String, FoundTargets>>,
    sets: Mutex<Sets>,
    /// What the file says of each job besides what is in [`Job`].
    untold: Mutex<HashMap<String, String>>,
    own_metrics: OwnMetrics,
    host_name: String,
}

/// The newest target groups of all jobs.
#[derive(Default)]
struct Sets {
    groups: TargetSets,
    /// The discovery of each job: what an earlier one found late does not count.
    discoveries: HashMap<String, u64>,
    discoveries_begun: u64,
}

impl Sets {
    /// The lists that a job has, each once: while no discovery answers, each reload adds some.
    fn of(&self, job: &str) -> Groups {
        let mut all = Groups::new();
        for list in self.groups.get(job).into_iter().flatten() {
            if !all.iter().any(|known| known.is_same(list)) {
                all.push(Arc::clone(list));
            }
        }
        all
    }

    /// Notes what a new discovery of a job has found, and returns its number.
    fn begin(&mut self, job: &str, groups: Groups) -> u64 {
        self.discoveries_begun += 1;
        self.discoveries.insert(job.to_owned(), self.discoveries_begun);
        self.groups.insert(job.to_owned(), groups);
        self.discoveries_begun
    }

    fn retain(&mut self, is_job: impl Fn(&str) -> bool) {
        self.groups.retain(|name, _| is_job(name));
        self.discoveries.retain(|name, _| is_job(name));
    }
}

/// The clock of the store, so that scrapes and writes have the same.
struct StoreClock;

impl Clock for StoreClock {
    fn now(&self) -> Duration {
        // Finer than milliseconds, so that targets meet on the grid of their schedules.
        since_epoch()
    }
}

/// The discovery of one job, and the task that hands on what it finds.
struct FoundTargets {
    config: Vec<DiscoveryConfig>,
    _discovery: Discovery,
    task: AbortHandle,
}

impl Drop for FoundTargets {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The target groups of a job. Until its discovery has answered, those that it had with an earlier
/// configuration are among them: what stays must not end because a file is not read yet or a server
/// cannot be reached.
struct JobGroups {
    groups: watch::Receiver<Groups>,
    has_answered: watch::Receiver<bool>,
    /// Those of the earlier configuration.
    before: Groups,
}

impl JobGroups {
    /// The groups as they are now. Of two that list a target, the last one describes it.
    fn take(&mut self) -> Groups {
        if *self.has_answered.borrow_and_update() {
            self.before = Groups::new();
        }
        let mut groups = self.before.clone();
        groups.extend_from_slice(&self.groups.borrow_and_update());
        groups
    }

    /// Waits until they change; returns whether they can.
    async fn changed(&mut self) -> bool {
        tokio::select! {
            changed = self.groups.changed() => changed.is_ok(),
            Ok(()) = self.has_answered.changed() => true,
        }
    }
}

impl Scraping {
    /// Starts scraping, in the background. It ends at the stop signal; the task is done when the
    /// last scrape is.
    pub fn start<'a>(
        config: &'a ScrapeConfig,
        intake: Intake,
        external_labels: &'a ExternalLabels,
        data_dir: &'a Path,
        shutdown: Shutdown,
    ) -> BoxFuture<'a, Result<(Scraping, JoinHandle<()>), ScrapingError>> {
        Box::pin(Scraping::begin(config, intake, external_labels, data_dir, shutdown))
    }

    async fn begin(
        config: &ScrapeConfig,
        intake: Intake,
        external_labels: &ExternalLabels,
        data_dir: &Path,
        mut shutdown: Shutdown,
    ) -> Result<(Scraping, JoinHandle<()>), ScrapingError> {
        let metrics = Arc::new(Metrics::default());
        let (stop, stopped) = watch::channel(false);
        let store = intake.store().clone();
        let thread = ScrapeThread::start()?;
        let memory = MemoryBound::new(store.memory_split().scrapes_bytes);
        let context = Context {
            runtime: thread.runtime(),
            store: Arc::new(ScrapeStore::new(intake)),
            clock: Arc::new(StoreClock),
            metrics: Arc::clone(&metrics),
            user_agent: USER_AGENT.to_owned(),
            body_bytes_max: config.body_bytes_max,
            memory: memory.clone(),
            failure_log: FailureLog::new(config.failure_log_bytes_max),
            hash_seed: tidepool_store::random_seed(),
            shutdown: stopped,
        };
        let saved_dir = Some(data_dir.join(SAVED_DIRECTORY));
        let own_metrics = OwnMetrics::default();
        let builtins = config.builtin.sources(own_metrics.clone());
        let scraping = Scraping(Arc::new(Shared {
            manager: Manager::new(Arc::new(context), builtins),
            _thread: thread,
            metrics,
            discovery: DiscoveryOptions {
                saved_dir,
                memory: memory.clone(),
                ..DiscoveryOptions::default()
            },
            memory,
            jobs: Mutex::default(),
            sets: Mutex::default(),
            untold: Mutex::default(),
            own_metrics,
            host_name: host_name(),
        }));
        scraping.apply(config, external_labels).await?;
        let mut stopping = shutdown.clone();
        tokio::spawn(async move {
            shutdown.wait().await;
            // The receivers may be dropped: all has ended.
            let _ = stop.send(true);
        });
        let running = scraping.clone();
        let task = tokio::spawn(async move {
            // What is scraped before that could not be stored.
            let can_store = async {
                while !(store.is_ready() && running.0.own_metrics.is_set()) {
                    tokio::time::sleep(READY_POLL).await;
                }
            };
            tokio::select! {
                () = can_store => {}
                () = stopping.wait() => {}
            }
            drop(store);
            running.0.manager.run().await;
            // It holds the store, and this.
            running.0.own_metrics.clear();
        });
        Ok((scraping, task))
    }

    /// Takes over a configuration. Targets whose job did not change go on; so does everything if a
    /// server that names targets cannot be asked as configured.
    pub fn apply<'a>(
        &'a self,
        config: &'a ScrapeConfig,
        external_labels: &'a ExternalLabels,
    ) -> BoxFuture<'a, Result<(), ScrapingError>> {
        Box::pin(self.take_over(config, external_labels))
    }

    async fn take_over(
        &self,
        config: &ScrapeConfig,
        external_labels: &ExternalLabels,
    ) -> Result<(), ScrapingError> {
        let configured = &config.settings.jobs;
        let builtin = config.builtin.jobs(configured, &self.0.host_name);
        let jobs: Vec<&JobConfig> = configured.iter().chain(&builtin).collect();
        let mut new = Vec::new();
        for job in &jobs {
            let name = &job.job.name;
            let is_same = |found: &FoundTargets| found.config == job.discovery;
            if self.jobs().get(name).is_some_and(is_same) {
                continue;
            }
            let (configs, options) = (job.discovery.clone(), self.0.discovery.clone());
            // What was kept of a server may be long.
            let start = move || Discovery::start(&configs, &options);
            let started = tokio::task::spawn_blocking(start).await.map_err(io::Error::from)?;
            let discovery =
                started.map_err(|source| ScrapingError::Discovery { job: name.clone(), source })?;
            new.push((name.clone(), job.discovery.clone(), discovery));
        }
        let unused = &config.settings.global.unused;
        if !unused.is_empty() {
            tracing::info!(
                settings = unused.join(", "),
                "settings of the section global have no effect: there are no rules, and slow queries \
                 are logged by --query-log-min-duration"
            );
        }
        let is_job = |name: &str| jobs.iter().any(|job| job.job.name == name);
        self.jobs().retain(|name, _| is_job(name));
        lock(&self.0.sets).retain(is_job);
        *lock(&self.0.untold) =
            jobs.iter().map(|job| (job.job.name.clone(), job.untold.clone())).collect();
        let seed = self.seed(external_labels);
        let all = jobs.iter().map(|job| job.job.clone()).collect();
        let applied = self.0.manager.apply(all, seed).await;
        for (name, config, discovery) in new {
            // What found targets for the job before ends here.
            self.jobs().remove(&name);
            let mut found = JobGroups {
                groups: discovery.groups(),
                has_answered: discovery.has_answered(),
                before: lock(&self.0.sets).of(&name),
            };
            let number = lock(&self.0.sets).begin(&name, found.take());
            let task = tokio::spawn(self.clone().hand_on(name.clone(), number, found));
            let task = task.abort_handle();
            self.jobs().insert(name, FoundTargets { config, _discovery: discovery, task });
        }
        self.update(|_| ());
        Ok(applied?)
    }

    /// Hands on the target groups that a discovery finds for its job, as often as they change.
    async fn hand_on(self, job: String, discovery: u64, mut found: JobGroups) {
        // Static groups never change.
        while found.changed().await {
            let groups = found.take();
            self.update(|sets| {
                if sets.discoveries.get(&job) == Some(&discovery) {
                    sets.groups.insert(job.clone(), groups);
                }
            });
        }
    }

    /// Changes the target groups of jobs, and hands all of them on. Under the lock, so that the
    /// last change is the last one that is handed on.
    fn update(&self, change: impl FnOnce(&mut Sets)) {
        let mut sets = lock(&self.0.sets);
        change(&mut sets);
        self.0.manager.update(sets.groups.clone());
    }

    /// What spreads the scrapes of servers that scrape the same targets.
    fn seed(&self, external_labels: &ExternalLabels) -> u64 {
        let labels = external_labels.iter();
        let labels = labels.map(|(name, value)| (name.to_owned(), value.to_owned()));
        offset_seed(&self.0.host_name, &labels.collect())
    }

    fn jobs(&self) -> std::sync::MutexGuard<'_, HashMap<String, FoundTargets>> {
        lock(&self.0.jobs)
    }

    /// The source of this process' own metrics.
    pub fn own_metrics(&self) -> &OwnMetrics {
        &self.0.own_metrics
    }

    /// The targets of all jobs, or of one.
    pub fn targets(&self, job: Option<&str>) -> BTreeMap<String, Listed> {
        self.0.manager.targets(job)
    }

    /// Names of the jobs that have had targets.
    pub fn pools(&self) -> Vec<String> {
        self.0.manager.pools()
    }

    /// The settings of a job.
    pub fn job(&self, name: &str) -> Option<Arc<Job>> {
        self.0.manager.job(name)
    }

    /// The settings of a job as they hold, as YAML.
    pub fn job_yaml(&self, name: &str) -> Option<String> {
        let job = self.job(name)?;
        let untold = lock(&self.0.untold).get(name).cloned().unwrap_or_default();
        Some(effective(&job, &untold))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What this machine is called.
fn host_name() -> String {
    let name = std::fs::read_to_string(HOST_NAME).unwrap_or_default();
    match name.trim() {
        "" => "localhost".to_owned(),
        name => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidepool_scrape::discovery::List;
    use tidepool_scrape::target::TargetGroup;

    fn list(source: &str) -> Arc<List> {
        let group = TargetGroup { source: source.to_owned(), ..TargetGroup::default() };
        Arc::new(List::unbounded(vec![group]))
    }

    fn sources(groups: &Groups) -> Vec<&str> {
        groups.iter().map(|list| list.groups()[0].source.as_str()).collect()
    }

    /// The story of a reload that gave a job another list: until the list was read, the job had no
    /// targets, so all of them ended and lost what was remembered of their series.
    #[tokio::test]
    async fn targets_stay_until_the_new_discovery_has_answered() {
        let (publish, groups) = watch::channel(Groups::default());
        let (answer, has_answered) = watch::channel(false);
        let mut found = JobGroups { groups, has_answered, before: vec![list("before")] };
        assert_eq!(sources(&found.take()), ["before"]);
        publish.send_replace(vec![list("first")]);
        assert!(found.changed().await);
        assert_eq!(sources(&found.take()), ["before", "first"]);
        answer.send_replace(true);
        assert!(found.changed().await);
        assert_eq!(sources(&found.take()), ["first"]);
        drop((publish, answer));
        assert!(!found.changed().await);
    }
}
