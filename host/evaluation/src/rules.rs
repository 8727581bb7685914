//! All rule groups of this process.

use crate::append::SeriesNumbers;
use crate::config::{BacktestSettings, RulesConfig};
use crate::engine::StoreEngine;
use crate::figures::Figures;
use crate::task::{Running, Source, spawn};
use std::cell::Cell;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use tidepool_lifecycle::boxed::BoxFuture;
use tidepool_lifecycle::clock::system_now_ms;
use tidepool_notify::notifier::Notifier;
use tidepool_plugins::intake::Intake;
use tidepool_query::Queries;
use tidepool_rules::alert::{RestoreRequest, mark_shared};
use tidepool_rules::file::{self, RuleFile};
use tidepool_rules::group::{Defaults, Group, GroupSnapshot, Reloaded, Removed, reload};
use tidepool_store::reading::{HeldInstance, Reading};
use tidepool_telemetry::MetricsText;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

/// The evaluation of rules; clones share it.
#[derive(Clone)]
pub struct Rules(Arc<Shared>);

pub(crate) struct Shared {
    pub reading: Reading,
    pub intake: Intake,
    pub queries: Queries,
    pub notifier: Notifier,
    /// Groups that may be evaluated at the same time.
    pub turns: Arc<Semaphore>,
    pub figures: Figures,
    /// Start of the monotonic clock of all groups.
    pub begin: Instant,
    /// How long nothing was stored before the first evaluation at a time that was not doubted.
    pub outage_ms: OnceLock<i64>,
    limits: Mutex<Limits>,
    backtests: Mutex<BacktestSettings>,
    running: Mutex<Vec<Arc<Running>>>,
    tasks: Mutex<HashMap<Key, JoinHandle<Group>>>,
}

/// File and name of a group.
type Key = (PathBuf, String);

/// Settings that all groups share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub outage_tolerance: Duration,
    pub grace_period: Duration,
    pub resend_delay: Duration,
    /// Maximum number of alerts of a rule.
    pub alerts_max: usize,
}

impl From<&RulesConfig> for Limits {
    fn from(config: &RulesConfig) -> Limits {
        let &RulesConfig { outage_tolerance, grace_period, resend_delay, alerts_max, .. } = config;
        Limits { outage_tolerance, grace_period, resend_delay, alerts_max }
    }
}

impl Shared {
    pub fn limits(&self) -> Limits {
        *lock(&self.limits)
    }

    pub fn running(&self) -> Vec<Arc<Running>> {
        lock(&self.running).clone()
    }

    /// Returns the store as rules of a group see it, for one thread.
    pub fn engine<'a>(
        &'a self,
        runtime: &'a Handle,
        is_stopping: &'a AtomicBool,
        numbers: &'a mut SeriesNumbers,
        stores: bool,
    ) -> StoreEngine<'a> {
        StoreEngine {
            reading: &self.reading,
            instance: HeldInstance::new(&self.reading).into(),
            intake: &self.intake,
            options: self.queries.options(),
            timeout: self.queries.timeout(),
            runtime,
            is_stopping,
            begin: self.begin,
            numbers,
            stores,
            ended: Cell::new(0),
        }
    }
}

impl Rules {
    /// Starts the evaluation of all groups, each at its next slot after the WAL has been replayed.
    pub fn start(
        config: &RulesConfig,
        intake: Intake,
        queries: Queries,
        notifier: Notifier,
    ) -> Rules {
        let rules = Rules(Arc::new(Shared {
            reading: intake.store().reading(),
            intake,
            queries,
            notifier,
            turns: Arc::new(Semaphore::new(config.evaluations_max)),
            figures: Figures::default(),
            begin: Instant::now(),
            outage_ms: OnceLock::new(),
            limits: Mutex::new(config.into()),
            backtests: Mutex::new(config.into()),
            running: Mutex::default(),
            tasks: Mutex::default(),
        }));
        rules.begin(sources(config), Vec::new());
        rules
    }

    /// Applies a configuration. Groups that did not change go on; the others end after the rule
    /// that they evaluate now, and the new ones take over the state of their rules.
    pub fn apply<'a>(&'a self, config: &'a RulesConfig) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            *lock(&self.0.limits) = config.into();
            *lock(&self.0.backtests) = config.into();
            let mut new = sources(config);
            let (mut kept, mut ended) = (Vec::new(), Vec::new());
            for running in self.0.running() {
                match new.iter().position(|source| source.is_same(&running.source)) {
                    Some(position) => {
                        new.remove(position);
                        kept.push(running);
                    }
                    None => ended.push(running),
                }
            }
            let old = self.end(&ended).await;
            *lock(&self.0.running) = kept;
            self.begin(new, old);
        })
    }

    /// Stops groups, and returns those whose samples are stored.
    async fn end(&self, ended: &[Arc<Running>]) -> Vec<Group> {
        ended.iter().for_each(|running| running.stop());
        let mut groups = Vec::new();
        for running in ended {
            let task = lock(&self.0.tasks).remove(&running.source.key());
            let Some(task) = task else { continue };
            match task.await {
                Ok(group) if running.source.stores => groups.push(group),
                // What was never stored needs no markers, and is nothing to go on with.
                Ok(_) => {}
                Err(error) => tracing::error!(%error, "the task of a rule group panicked"),
            }
        }
        groups
    }

    /// Starts groups that take over the state of old ones, and ends the old ones that are gone.
    fn begin(&self, new: Vec<Source>, old: Vec<Group>) {
        let (mut new, shown): (Vec<Source>, Vec<Source>) =
            new.into_iter().partition(|source| source.stores);
        let groups = new.iter().map(Source::group).collect();
        let Reloaded { mut groups, removed } = reload(old, groups);
        // Requests of all groups are compared with each other before any is answered.
        let mut requests: Vec<Vec<RestoreRequest>> =
            groups.iter().map(Group::restore_requests).collect();
        mark_shared(requests.iter_mut().flatten());
        for source in shown {
            let mut group = source.group();
            group.skip_restore();
            groups.push(group);
            requests.push(Vec::new());
            new.push(source);
        }
        let mut all = lock(&self.0.running);
        for (source, group) in new.iter().zip(&groups) {
            all.push(Running::new(source.clone(), group));
        }
        let first = all.len() - groups.len();
        let started = all[first..].to_vec();
        drop(all);
        self.0.figures.retain(|file, name| {
            self.0.running().iter().any(|running| running.source.is_of(file, name))
        });
        let mut tasks = lock(&self.0.tasks);
        for ((running, group), requests) in started.into_iter().zip(groups).zip(requests) {
            if running.source.stores {
                self.0.figures.add_group(&group);
            }
            let key = running.source.key();
            tasks.insert(key, spawn(running, group, requests, Arc::clone(&self.0)));
        }
        drop(tasks);
        let groups = self.snapshot();
        let groups = groups.iter().map(|group| (group.file.as_str(), group.name.as_str()));
        self.0.notifier.retain(groups);
        for removed in removed {
            tokio::spawn(write_markers(removed, system_now_ms(), Arc::clone(&self.0)));
        }
    }

    /// Ends all evaluation. Series and alerts go on after the next start.
    pub async fn stop(&self) {
        let running = std::mem::take(&mut *lock(&self.0.running));
        self.end(&running).await;
    }

    /// Returns the state of all groups after their last evaluation, in the order of the files.
    pub fn snapshot(&self) -> Vec<Arc<GroupSnapshot>> {
        let mut groups: Vec<_> = self.0.running().iter().map(|group| group.snapshot()).collect();
        groups.sort_by(|a, b| (&a.file, &a.name).cmp(&(&b.file, &b.name)));
        groups
    }

    /// Returns what backtests take from the configuration, and what answers their queries.
    pub(crate) fn for_backtests(&self) -> (BacktestSettings, Queries) {
        (lock(&self.0.backtests).clone(), self.0.queries.clone())
    }

    /// Writes the metrics of rules.
    pub fn show(&self, text: &mut MetricsText) {
        self.0.figures.show(text);
    }
}

/// Writes the markers of a group that was removed at a time, after its rules could move.
async fn write_markers(removed: Removed, removed_ms: i64, shared: Arc<Shared>) {
    let wait_ms = removed.due_ms(removed_ms).saturating_sub(removed_ms);
    tokio::time::sleep(Duration::from_millis(wait_ms.unsigned_abs())).await;
    let runtime = Handle::current();
    let reading = shared.reading.clone();
    let work = move || {
        let _entered = runtime.enter();
        let (is_stopping, mut numbers) = (AtomicBool::new(false), SeriesNumbers::default());
        let mut engine = shared.engine(&runtime, &is_stopping, &mut numbers, true);
        if let Err(error) = removed.write_markers(removed_ms, &mut engine) {
            let Removed { file, group, .. } = &removed;
            tracing::warn!(file, group, error, "could not end the series of a removed rule group");
        }
    };
    if let Err(error) = reading.run(work) {
        tracing::error!(%error, "could not start a thread for rules");
    }
}

impl Source {
    fn key(&self) -> Key {
        (self.path.clone(), self.group.name.clone())
    }

    fn is_of(&self, file: &str, name: &str) -> bool {
        self.path.to_string_lossy() == file && self.group.name == name
    }

    /// Whether a group made of this is the same as one made of another. Positions do not count.
    fn is_same(&self, other: &Source) -> bool {
        let stores_alike = self.stores == other.stores;
        stores_alike && self.path == other.path && self.group().is_same(&other.group())
    }
}

/// Interval of groups that ship with the program, if the configuration does not name them.
const DEFAULT_INTERVAL: Duration = Duration::from_secs(60);

fn sources(config: &RulesConfig) -> Vec<Source> {
    let defaults = Defaults::from(config);
    let shown = Defaults { interval: DEFAULT_INTERVAL, ..defaults.clone() };
    let source = |file: &RuleFile, group: &file::Group, defaults: &Defaults, stores: bool| Source {
        path: file.path.clone(),
        group: group.clone(),
        defaults: defaults.clone(),
        stores,
    };
    let all = [(&config.files, defaults, true), (&config.defaults, shown, false)];
    let mut sources = Vec::new();
    for (files, defaults, stores) in all {
        for file in files {
            sources.extend(file.groups.iter().map(|group| source(file, group, &defaults, stores)));
        }
    }
    sources
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
