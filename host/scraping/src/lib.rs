//! Connects `tidepool_scrape` with this program: runs it on a thread, gives it the store, adds
//! metrics of machine and program as built-in jobs, and exposes the metrics of scraping.
//!
//! Invariant: scraping never runs on the threads of the network, and a scrape reaches the head as
//! one unit. Decisions about a job are made in `tidepool_scrape`.
//!
//! - [`Scraping`]: starts the configured jobs, and applies a reload.
//! - `builtin`: jobs that need no configuration.
//! - `thread`: the thread that scrapes.
//! - `store`: stores samples by series numbers; `request`: encodes rows that have labels;
//!   `labelled`: references while plugins see writes.

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

/// Directory within the data directory for saved target lists of HTTP servers and the DNS.
const SAVED_DIRECTORY: &str = "targets";

/// File in which the kernel provides the host name.
const HOST_NAME: &str = "/proc/sys/kernel/hostname";

/// Interval of checking whether the WAL has been replayed.
const READY_POLL: Duration = Duration::from_millis(20);

/// Value of `User-Agent` in all requests of scraping.
pub const USER_AGENT: &str = concat!("tidepool/", env!("CARGO_PKG_VERSION"));

#[derive(Clone, Debug, Default)]
pub struct ScrapeConfig {
    /// Sections of the configuration file.
    pub settings: ScrapeSettings,
    /// Default of `body_size_limit`, in bytes.
    pub body_bytes_max: u64,
    /// Maximum size of a `scrape_failure_log_file`, in bytes.
    pub failure_log_bytes_max: u64,
    /// Settings of the built-in jobs.
    pub builtin: BuiltinConfig,
}

/// Reasons why a configuration cannot be applied.
#[derive(Debug, thiserror::Error)]
pub enum ScrapingError {
    /// The HTTP client of a discovery is invalid, or static lists exceed the memory bound.
    #[error("scrape_configs: job {job:?}: {source}")]
    Discovery {
        job: String,
        /// Fault of the HTTP settings, or lack of memory.
        source: DiscoveryError,
    },
    #[error("scrape_configs: {0}")]
    Pool(#[from] PoolError),
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
    /// Settings of each job that [`Job`] does not store, as YAML without secrets.
    untold: Mutex<HashMap<String, String>>,
    own_metrics: OwnMetrics,
    host_name: String,
}

/// The newest target groups of all jobs.
#[derive(Default)]
struct Sets {
    groups: TargetSets,
    /// Number of each job's current discovery. A replaced discovery may still send targets, which
    /// are then ignored.
    discoveries: HashMap<String, u64>,
    discoveries_begun: u64,
}

impl Sets {
    /// Returns a job's lists without duplicates, which reloads add until a discovery answers.
    fn of(&self, job: &str) -> Groups {
        let mut all = Groups::new();
        for list in self.groups.get(job).into_iter().flatten() {
            if !all.iter().any(|known| known.is_same(list)) {
                all.push(Arc::clone(list));
            }
        }
        all
    }

    /// Registers a new discovery with its first groups, and returns its number.
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

/// The clock of the store, so that scrapes and writes use the same time.
struct StoreClock;

impl Clock for StoreClock {
    fn now(&self) -> Duration {
        // Finer than milliseconds, so that targets with the same offset start together.
        since_epoch()
    }
}

/// The discovery of one job, and the task that passes its groups to the manager.
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

/// The target groups of a job. The groups of the earlier configuration stay until the new discovery
/// has answered: a file may not be read yet, a server may be unreachable.
struct JobGroups {
    groups: watch::Receiver<Groups>,
    has_answered: watch::Receiver<bool>,
    /// Groups of the earlier configuration; emptied when the discovery has answered.
    before: Groups,
}

impl JobGroups {
    /// Returns the current groups. If two groups have the same target, the last one describes it.
    fn take(&mut self) -> Groups {
        // Checked before the groups are read: `true` is only sent after the complete groups.
        if *self.has_answered.borrow_and_update() {
            self.before = Groups::new();
        }
        let mut groups = self.before.clone();
        groups.extend_from_slice(&self.groups.borrow_and_update());
        groups
    }

    /// Waits for the next change; returns false if no change can follow.
    async fn changed(&mut self) -> bool {
        tokio::select! {
            changed = self.groups.changed() => changed.is_ok(),
            Ok(()) = self.has_answered.changed() => true,
        }
    }
}

impl Scraping {
    /// Starts scraping in the background. Scraping ends at the stop signal; the returned task ends
    /// after the last scrape.
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
            // Sending fails if all scrapes have ended, which needs no signal.
            let _ = stop.send(true);
        });
        let running = scraping.clone();
        let task = tokio::spawn(async move {
            // The store cannot store samples before the WAL is replayed.
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
            // The page references the store and this handle, and this handle references the page.
            running.0.own_metrics.clear();
        });
        Ok((scraping, task))
    }

    /// Applies a configuration. Targets of unchanged jobs continue. If a discovery cannot be
    /// started as configured, nothing changes.
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
        // All discoveries start before anything else changes, so that an error keeps the old
        // configuration.
        let mut new = Vec::new();
        for job in &jobs {
            let name = &job.job.name;
            let is_same = |found: &FoundTargets| found.config == job.discovery;
            if self.jobs().get(name).is_some_and(is_same) {
                continue;
            }
            let (configs, options) = (job.discovery.clone(), self.0.discovery.clone());
            // A saved list may be long, and reading it would block this thread.
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
                "settings of the section global have no effect: slow queries are logged by \
                 --query-log-min-duration"
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
            // Drops the job's earlier discovery, so that its groups cannot replace the new ones.
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
        // Even without a new discovery, the groups of removed jobs have to be dropped.
        self.update(|_| ());
        Ok(applied?)
    }

    /// Passes the target groups of a discovery to the manager whenever they change.
    async fn hand_on(self, job: String, discovery: u64, mut found: JobGroups) {
        // The loop ends at once for static groups, which never change.
        while found.changed().await {
            let groups = found.take();
            self.update(|sets| {
                if sets.discoveries.get(&job) == Some(&discovery) {
                    sets.groups.insert(job.clone(), groups);
                }
            });
        }
    }

    /// Changes target groups and passes all groups to the manager. Both happen under one lock, so
    /// that the manager receives the changes in order.
    fn update(&self, change: impl FnOnce(&mut Sets)) {
        let mut sets = lock(&self.0.sets);
        change(&mut sets);
        self.0.manager.update(sets.groups.clone());
    }

    /// Returns the seed of the schedules, which differs between servers. Servers that scrape the
    /// same targets thus do so at different times.
    fn seed(&self, external_labels: &ExternalLabels) -> u64 {
        let labels = external_labels.iter();
        let labels = labels.map(|(name, value)| (name.to_owned(), value.to_owned()));
        offset_seed(&self.0.host_name, &labels.collect())
    }

    fn jobs(&self) -> std::sync::MutexGuard<'_, HashMap<String, FoundTargets>> {
        lock(&self.0.jobs)
    }

    pub fn own_metrics(&self) -> &OwnMetrics {
        &self.0.own_metrics
    }

    /// Returns the targets of all jobs, or of one job.
    pub fn targets(&self, job: Option<&str>) -> BTreeMap<String, Listed> {
        self.0.manager.targets(job)
    }

    /// Returns the names of the jobs that have a pool, which the first targets create.
    pub fn pools(&self) -> Vec<String> {
        self.0.manager.pools()
    }

    pub fn job(&self, name: &str) -> Option<Arc<Job>> {
        self.0.manager.job(name)
    }

    /// Returns the settings of a job, including inherited ones, as YAML without secrets.
    pub fn job_yaml(&self, name: &str) -> Option<String> {
        let job = self.job(name)?;
        let untold = lock(&self.0.untold).get(name).cloned().unwrap_or_default();
        Some(effective(&job, &untold))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

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

    /// Regression: after a reload that gave a job another list, the job had no targets until the
    /// list was read, so all of them ended and lost their caches.
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
