//! The targets of one job, each with a cycle of its own.
//!
//! Source: `scrapePool` in `scrape/scrape.go` of prometheus/prometheus.

mod clients;
mod options;

pub(crate) use options::options;

use crate::append::{Appender, Rules};
use crate::cache::Cache;
use crate::clock::Clock;
use crate::cycle::{Cycle, Failures, Memory, Orders, Phase};
use crate::discovery::List;
use crate::error::ScrapeError;
use crate::failure_log::FailureLog;
use crate::job::Job;
use crate::labels::Labels;
use crate::memory::{MemoryBound, MemoryShare};
use crate::metrics::Metrics;
use crate::probe::ProbeSource;
use crate::request::HttpSource;
use crate::source::{Builtin, Source};
use crate::store::Store;
use crate::target::{LabelMap, Target, discovered_labels, target_labels};
use clients::Clients;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tidepool_relabel::{Rule, RuleError, RuleSpec};
use tidepool_turns::Pace;
use tokio::runtime;
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

/// State and settings that the pools of all jobs share.
pub struct Context<S> {
    /// Runtime that cycles are spawned on.
    pub runtime: runtime::Handle,
    pub store: Arc<S>,
    pub clock: Arc<dyn Clock>,
    pub metrics: Arc<Metrics>,
    /// Value of the header `User-Agent`.
    pub user_agent: String,
    /// Default of `body_size_limit`, in bytes.
    pub body_bytes_max: u64,
    /// Bound on the memory of all targets.
    pub memory: MemoryBound,
    /// Writes the failure log files of all jobs.
    pub failure_log: FailureLog,
    /// Random seed of the hashes, so that targets cannot craft collisions.
    pub hash_seed: u64,
    /// Becomes true, or its sender is dropped, when nothing more may be written.
    pub shutdown: watch::Receiver<bool>,
}

/// Reasons why a pool cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum PoolError {
    /// A relabel rule does not compile.
    #[error("job {job:?}: {source}")]
    Rule {
        job: String,
        /// Fault of the rule's settings.
        source: RuleError,
    },
    /// The HTTP client cannot be created.
    #[error("job {job:?}: {source}")]
    Client {
        job: String,
        /// Fault of the job's HTTP settings.
        source: tidepool_client::ClientError,
    },
}

/// The targets of one job, each with a running cycle.
pub struct Pool<S> {
    context: Arc<Context<S>>,
    builtin: Option<Arc<dyn Builtin>>,
    settings: Settings,
    offset_seed: u64,
    cycles: BTreeMap<Identity, Handle>,
    shared: Arc<Shared>,
    /// Memory of the targets except for their caches.
    held: MemoryShare,
    /// Memory of the dropped targets that are listed.
    held_by_dropped: MemoryShare,
}

/// A target as a map key. Targets that agree in labels and URL are the same target.
#[derive(Clone)]
struct Identity(Arc<Target>);

impl Ord for Identity {
    fn cmp(&self, other: &Identity) -> Ordering {
        self.0.identity().cmp(&other.0.identity())
    }
}

impl PartialOrd for Identity {
    fn partial_cmp(&self, other: &Identity) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Identity {
    fn eq(&self, other: &Identity) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Identity {}

/// Targets of all lists after relabeling.
#[derive(Default)]
struct TargetChanges {
    targets: BTreeSet<Identity>,
    dropped: Vec<Labels>,
    dropped_total: usize,
    /// Number of targets that cannot be scraped, or that exceed the memory bound.
    failed: u64,
}

/// Selects the dropped targets to list, within `keep_dropped_targets` and the memory bound.
struct DroppedRoom {
    held: MemoryShare,
    bytes: u64,
    bytes_max: u64,
    /// Number of targets that may still be listed.
    left: u64,
}

impl DroppedRoom {
    fn of(job: &Job, memory: &MemoryBound) -> DroppedRoom {
        let left = match job.limits.dropped_targets {
            0 => u64::MAX,
            limit => limit,
        };
        let bytes_max = memory.bytes_max() / DROPPED_PART;
        DroppedRoom { held: memory.holder(), bytes: 0, bytes_max, left }
    }

    fn takes(&mut self, dropped: &Labels) -> bool {
        let bytes = self.bytes + DROPPED_BYTES + dropped.bytes() as u64;
        if self.left == 0 || bytes > self.bytes_max || self.held.set(bytes).is_err() {
            // Shrinking never fails. After one target without memory, no further target is listed.
            let _ = self.held.set(self.bytes);
            self.left = 0;
            return false;
        }
        self.bytes = bytes;
        self.left -= 1;
        true
    }
}

/// A job, with its rules and clients ready for use.
struct Settings {
    job: Arc<Job>,
    relabel: Vec<Rule>,
    metric_relabel: Rules,
    clients: Clients,
}

/// Memory of a target without its labels: cycle, client and buffers.
const TARGET_BYTES: u64 = 16 * 1024;

/// Copies of a target's labels: one in the target itself, one for its series.
const LABELS_COPIES: u64 = 2;

/// Divisor of the memory of all targets; the quotient is the limit for the dropped targets of a
/// job. Dropped targets beyond it are counted, but not listed.
const DROPPED_PART: u64 = 8;

/// Memory of a dropped target without its labels.
const DROPPED_BYTES: u64 = 64;

/// Maximum number of invalid targets that one sync logs individually.
const LOGGED_MAX: u64 = 10;

fn target_bytes(labels: &LabelMap, discovered: &Labels) -> u64 {
    const NODE_BYTES: usize = 2 * size_of::<String>();
    let pairs = labels.iter();
    let bytes: usize = pairs.map(|(name, value)| name.len() + value.len() + NODE_BYTES).sum();
    TARGET_BYTES + LABELS_COPIES * bytes as u64 + discovered.bytes() as u64
}

/// A running cycle and its channels.
struct Handle {
    target: Arc<Target>,
    orders: watch::Sender<Orders>,
    stopped: oneshot::Receiver<Option<Memory>>,
}

/// State of a pool that the API reads without waiting for the pool.
#[derive(Debug, Default)]
pub struct Shared(Mutex<Listed>);

/// Targets of a pool, as the API lists them.
#[derive(Clone, Debug, Default)]
pub struct Listed {
    /// Targets that are scraped, by ascending labels.
    pub active: Arc<[Arc<Target>]>,
    /// Labels of dropped targets before relabeling: at most `keep_dropped_targets`, and as many as
    /// memory allows.
    pub dropped: Arc<[Labels]>,
    /// Number of all targets that relabeling drops.
    pub dropped_total: usize,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Listed> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether there are neither active nor dropped targets.
    pub fn is_empty(&self) -> bool {
        let listed = self.lock();
        listed.active.is_empty() && listed.dropped_total == 0
    }

    pub fn list(&self) -> Listed {
        self.lock().clone()
    }
}

impl Settings {
    fn new(job: Arc<Job>) -> Result<Settings, PoolError> {
        let rules = |specs: &[RuleSpec]| rules(&job.name, specs);
        let (relabel, metric_relabel) = (rules(&job.relabel)?, rules(&job.metric_relabel)?);
        let clients = Clients::new(&job.client)
            .map_err(|source| PoolError::Client { job: job.name.clone(), source })?;
        Ok(Settings { relabel, metric_relabel: Arc::new(Mutex::new(metric_relabel)), clients, job })
    }
}

/// Compiles the rules of a job.
pub(crate) fn rules(job: &str, specs: &[RuleSpec]) -> Result<Vec<Rule>, PoolError> {
    let rules: Result<Vec<Rule>, RuleError> = specs.iter().cloned().map(Rule::new).collect();
    rules.map_err(|source| PoolError::Rule { job: job.to_owned(), source })
}

#[expect(clippy::mutable_key_type, reason = "labels and URL of a target never change")]
impl<S: Store> Pool<S> {
    /// Creates a pool without targets. If `builtin` is given, it provides the samples.
    pub fn new(
        context: Arc<Context<S>>,
        job: Arc<Job>,
        builtin: Option<Arc<dyn Builtin>>,
        offset_seed: u64,
    ) -> Result<Pool<S>, PoolError> {
        let settings = Settings::new(job)?;
        let (cycles, shared) = (BTreeMap::new(), Arc::default());
        let (held, held_by_dropped) = (context.memory.holder(), context.memory.holder());
        let pool =
            Pool { context, builtin, settings, offset_seed, cycles, shared, held, held_by_dropped };
        pool.note_limit();
        Ok(pool)
    }

    pub fn job(&self) -> &Arc<Job> {
        &self.settings.job
    }

    pub fn shared(&self) -> Arc<Shared> {
        self.shared.clone()
    }

    fn note_limit(&self) {
        let limit = self.settings.job.limits.targets;
        let metrics = &self.context.metrics;
        metrics.of_pool(&self.settings.job.name, |pool| pool.target_limit = limit);
    }

    /// Replaces the targets by the targets of the lists: starts the cycles of new targets, and ends
    /// the cycles of removed targets. Returns after the last scrapes of ended cycles. Yields to
    /// other tasks regularly.
    pub async fn sync(&mut self, lists: &[Arc<List>]) {
        let start = Instant::now();
        let TargetChanges { targets, dropped, dropped_total, failed } = self.found(lists).await;
        let job = self.settings.job.clone();
        let mut pace = Pace::begin();
        let mut gone = Vec::new();
        for identity in self.cycles.keys() {
            if !targets.contains(identity) {
                gone.push(identity.clone());
            }
            pace.step().await;
        }
        let ended: Vec<Handle> =
            gone.iter().filter_map(|identity| self.cycles.remove(identity)).collect();
        // All are stopped before the first wait, so that their last scrapes run concurrently.
        ended.iter().for_each(|handle| handle.stop(Phase::Ended));
        let forced = self.over_limit(targets.len());
        for identity in targets {
            match self.cycles.get(&identity) {
                // Discovered labels may change while the target stays the same.
                Some(handle) => {
                    handle.target.set_discovered_labels(identity.0.discovered_labels());
                }
                None => {
                    let handle = self.spawn(identity.0.clone(), None, forced.clone());
                    self.cycles.insert(identity, handle);
                }
            }
            pace.step().await;
        }
        // Sent only on a change, because each order wakes its cycle.
        for handle in self.cycles.values() {
            handle.orders.send_if_modified(|orders| {
                let is_changed = orders.forced != forced;
                orders.forced.clone_from(&forced);
                is_changed
            });
        }
        let used = self.cycles.values().filter_map(|handle| handle.target.unix_socket());
        self.settings.clients.keep_sockets(used);
        let active = self.cycles.values().map(|handle| handle.target.clone()).collect();
        // Before the wait for ended cycles, which would delay the API by up to a timeout.
        *self.shared.lock() = Listed { active, dropped: dropped.into(), dropped_total };
        for handle in ended {
            handle.stopped().await;
        }
        let targets = self.cycles.len() as u64;
        self.context.metrics.of_pool(&job.name, |pool| {
            pool.targets = targets;
            pool.syncs += 1;
            pool.sync_failed += failed;
            pool.sync_length.count += 1;
            pool.sync_length.sum += start.elapsed();
        });
    }

    /// Relabels each target of the lists, and counts the memory of all of them.
    async fn found(&mut self, lists: &[Arc<List>]) -> TargetChanges {
        let job = self.settings.job.clone();
        let mut found = TargetChanges::default();
        let (mut held_bytes, mut without_room, mut wrong) = (0, 0, 0);
        let mut dropped_room = DroppedRoom::of(&job, &self.context.memory);
        let mut pace = Pace::begin();
        for group in lists.iter().flat_map(|list| list.groups()) {
            for (index, labels) in group.targets.iter().enumerate() {
                let discovered = discovered_labels(&job, labels, &group.labels);
                let known = Labels::of(&discovered);
                match target_labels(&job, discovered, &mut self.settings.relabel) {
                    Ok(Some(labels)) => {
                        let bytes = held_bytes + target_bytes(&labels, &known);
                        if self.held.set(bytes).is_err() {
                            without_room += 1;
                        } else {
                            held_bytes = bytes;
                            // Of equal targets, the last target determines the discovered labels.
                            let target = Identity(Arc::new(Target::new(&job, labels, known)));
                            found.targets.replace(target);
                        }
                    }
                    Ok(None) => {
                        found.dropped_total += 1;
                        if dropped_room.takes(&known) {
                            found.dropped.push(known);
                        }
                    }
                    Err(error) => {
                        wrong += 1;
                        if wrong <= LOGGED_MAX {
                            let (job, source) = (&job.name, &group.source);
                            tracing::error!(job, source, index, %error, "a target cannot be scraped");
                        }
                    }
                }
                pace.step().await;
            }
        }
        // Never fails, because this number was accepted before.
        let _ = self.held.set(held_bytes);
        self.held_by_dropped = dropped_room.held;
        if wrong > LOGGED_MAX {
            let (job, more) = (&job.name, wrong - LOGGED_MAX);
            tracing::error!(job, more, "more targets cannot be scraped");
        }
        if without_room > 0 {
            let limit_bytes = self.context.memory.bytes_max();
            tracing::error!(
                job = job.name,
                targets = without_room,
                limit_bytes,
                "targets are not scraped: no memory left for scrapes; raise --memory-limit"
            );
        }
        found.failed = wrong + without_room;
        found
    }

    /// Returns the error that all targets report if the job has too many targets.
    fn over_limit(&self, targets: usize) -> Option<ScrapeError> {
        let limit = self.settings.job.limits.targets;
        let is_over = limit > 0 && targets as u64 > limit;
        if is_over {
            self.context.metrics.exceeded_target_limit.add(1);
        }
        is_over.then_some(ScrapeError::TargetLimit { targets, limit })
    }

    /// Continues with other settings. The set of targets changes only at the next [`Pool::sync`].
    /// Targets keep their caches if the settings that influence series are equal. After an error
    /// nothing has changed.
    pub async fn reload(&mut self, job: Arc<Job>, offset_seed: u64) -> Result<(), PoolError> {
        let metrics = self.context.metrics.clone();
        metrics.pool_reloads.add(1);
        // Created first, so that an error leaves the pool unchanged.
        let settings = Settings::new(job).inspect_err(|_| metrics.pool_reloads_failed.add(1))?;
        let keeps = settings.job.keeps_caches(&self.settings.job);
        self.settings = settings;
        self.offset_seed = offset_seed;
        self.note_limit();
        let phase = if keeps { Phase::Replaced } else { Phase::Ended };
        let cycles = std::mem::take(&mut self.cycles);
        // All are stopped before the first wait; scrapes under way are completed.
        cycles.values().for_each(|handle| handle.stop(phase));
        let forced = self.over_limit(cycles.len());
        let mut pace = Pace::begin();
        for (identity, handle) in cycles {
            let target = handle.target.clone();
            let memory = handle.stopped().await;
            let handle = self.spawn(target, memory, forced.clone());
            self.cycles.insert(identity, handle);
            pace.step().await;
        }
        Ok(())
    }

    /// Ends all cycles, whose series get staleness markers later, unless there is a shutdown.
    /// Returns after the last scrape.
    pub async fn stop(&mut self) {
        let cycles = std::mem::take(&mut self.cycles);
        cycles.values().for_each(|handle| handle.stop(Phase::Ended));
        for handle in cycles.into_values() {
            handle.stopped().await;
        }
        *self.shared.lock() = Listed::default();
        // Replacing the shares releases their memory.
        (self.held, self.held_by_dropped) =
            (self.context.memory.holder(), self.context.memory.holder());
        self.context.metrics.remove_pool(&self.settings.job.name);
    }

    fn spawn(
        &mut self,
        target: Arc<Target>,
        memory: Option<Memory>,
        forced: Option<ScrapeError>,
    ) -> Handle {
        let job = self.settings.job.clone();
        let options = options(&job, &target, self.settings.metric_relabel.clone());
        let metrics = self.context.metrics.clone();
        let (cache, families) =
            memory.unwrap_or_else(|| (Cache::new(self.context.hash_seed), Arc::default()));
        let appender = Appender::with_cache(options, metrics.clone(), cache, families)
            .within(&self.context.memory);
        // The API reads metadata through the target.
        target.set_families(appender.families());
        // An error does not fail here: each scrape returns it, so that the target shows it.
        let source = self.source(&job, &target);
        let cycle = Cycle {
            target: target.clone(),
            appender,
            source,
            store: self.context.store.clone(),
            clock: self.context.clock.clone(),
            offset_seed: self.offset_seed,
            sample_limit: job.limits.samples,
            metrics,
            job: job.name.clone(),
            failures: job
                .failure_log_file
                .clone()
                .map(|path| Failures { log: self.context.failure_log.clone(), path }),
        };
        let (orders, received) = watch::channel(Orders { phase: Phase::Running, forced });
        let (answer, stopped) = oneshot::channel();
        let cycle = cycle.run(received, self.context.shutdown.clone(), answer);
        self.context.runtime.spawn(cycle);
        Handle { target, orders, stopped }
    }

    fn source(&mut self, job: &Job, target: &Target) -> Result<Box<dyn Source>, ScrapeError> {
        if let Some(builtin) = &self.builtin {
            return Ok(builtin.source());
        }
        if let Some(module) = &job.probe {
            return Ok(Box::new(ProbeSource::new(Arc::clone(module), target)));
        }
        let client = self.settings.clients.of(&job.client, target.unix_socket());
        let client = client.map_err(|error| ScrapeError::Settings(error.to_string()))?;
        let Context { user_agent, body_bytes_max, metrics, .. } = &*self.context;
        let source =
            HttpSource::new(job, target, client, user_agent, *body_bytes_max, metrics.clone())?;
        Ok(Box::new(source))
    }
}

impl Handle {
    fn stop(&self, phase: Phase) {
        self.orders.send_modify(|orders| orders.phase = phase);
    }

    /// Waits until the cycle has stopped; returns its cache if the next cycle may continue with it.
    async fn stopped(self) -> Option<Memory> {
        // A cycle that panicked sends no answer and leaves no cache.
        self.stopped.await.ok().flatten()
    }
}
