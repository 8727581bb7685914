//! All jobs: configuration, targets, and their state for the API.
//!
//! Target groups are applied in the background, at most once per [`SYNC_INTERVAL`]. For a job
//! without targets they are applied at once; upstream waits in this case, too. Source:
//! `scrape/manager.go` of prometheus/prometheus.

use crate::discovery::Groups;
use crate::job::Job;
use crate::pool::{Context, Listed, Pool, PoolError, Shared};
use crate::source::Builtin;
use crate::store::Store;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

/// Shortest time between two changes of the targets.
pub const SYNC_INTERVAL: Duration = Duration::from_secs(5);

/// Lists of target groups by job name.
pub type TargetSets = BTreeMap<String, Groups>;

/// Applies configurations and target groups, and scrapes all jobs.
pub struct Manager<S> {
    context: Arc<Context<S>>,
    /// Sources of the built-in jobs, by job name.
    builtins: BTreeMap<String, Arc<dyn Builtin>>,
    inner: tokio::sync::Mutex<Inner<S>>,
    /// Newest target groups, which the next sync applies.
    sets: Mutex<TargetSets>,
    changed: Notify,
    /// State for the API, in its own lock so that the API never waits for a sync or a reload.
    listed: Mutex<BTreeMap<String, ListedJob>>,
}

/// A job's settings, and the targets of its pool once it has a pool.
type ListedJob = (Arc<Job>, Option<Arc<Shared>>);

struct Inner<S> {
    jobs: BTreeMap<String, Arc<Job>>,
    pools: BTreeMap<String, Pool<S>>,
    offset_seed: u64,
    has_stopped: bool,
}

impl<S: Store> Manager<S> {
    pub fn new(
        context: Arc<Context<S>>,
        builtins: BTreeMap<String, Arc<dyn Builtin>>,
    ) -> Manager<S> {
        let inner = Inner {
            jobs: BTreeMap::new(),
            pools: BTreeMap::new(),
            offset_seed: 0,
            has_stopped: false,
        };
        Manager {
            context,
            builtins,
            inner: tokio::sync::Mutex::new(inner),
            sets: Mutex::default(),
            changed: Notify::new(),
            listed: Mutex::default(),
        }
    }

    /// Replaces the jobs. Changed jobs keep their targets under the new settings; removed jobs end.
    /// Waits for scrapes under way, so this may take as long as a scrape timeout; the future must
    /// not be dropped before its end. A job whose new settings are invalid keeps the old settings;
    /// all other jobs are applied, and the first error is returned. `offset_seed` is the result of
    /// [`crate::target::offset_seed`].
    pub async fn apply(&self, jobs: Vec<Job>, offset_seed: u64) -> Result<(), PoolError> {
        // Locked to the end, so that no sync starts scrapes between the reloads of pools.
        let mut inner = self.inner.lock().await;
        inner.jobs = jobs.into_iter().map(|job| (job.name.clone(), Arc::new(job))).collect();
        inner.offset_seed = offset_seed;
        let Inner { jobs, pools, .. } = &mut *inner;
        let mut tasks = JoinSet::new();
        for (name, mut pool) in std::mem::take(pools) {
            match jobs.get(&name).cloned() {
                Some(job) if job == *pool.job() => {
                    pools.insert(name, pool);
                }
                Some(job) if job.is_builtin == pool.job().is_builtin => {
                    tasks.spawn(async move {
                        let result = pool.reload(job, offset_seed).await;
                        (Some((name, pool)), result)
                    });
                }
                // A job that replaces a built-in job of the same name starts at the next sync.
                _ => {
                    tasks.spawn(async move {
                        pool.stop().await;
                        (None, Ok(()))
                    });
                }
            }
        }
        let mut result = Ok(());
        while let Some(done) = tasks.join_next().await {
            // A task that panicked has lost its pool; the next sync makes a new pool.
            let Ok((pool, reloaded)) = done else { continue };
            pools.extend(pool);
            if let Err(error) = reloaded {
                tracing::error!(%error, "a job keeps its old settings");
                result = result.and(Err(error));
            }
        }
        self.list(&inner);
        // The next sync applies the new relabel rules to the target groups.
        self.changed.notify_one();
        result
    }

    /// Sets the target groups for the next sync. A job without an entry keeps its targets; a job
    /// whose targets are all gone has an entry with an empty list.
    pub fn update(&self, sets: TargetSets) {
        *self.sets.lock().unwrap_or_else(PoisonError::into_inner) = sets;
        self.changed.notify_one();
    }

    /// Applies target groups whenever they change. After the shutdown, stops all scrapes.
    pub async fn run(&self) {
        let mut shutdown: watch::Receiver<bool> = self.context.shutdown.clone();
        let is_shut_down = async {
            // An error means that the sender was dropped, which is a shutdown, too.
            let _ = shutdown.wait_for(|is_shut_down| *is_shut_down).await;
        };
        tokio::select! {
            () = is_shut_down => {}
            () = async {
                let mut next = Instant::now();
                loop {
                    self.changed.notified().await;
                    // Changes within the interval are applied in one sync, unless a job waits for
                    // its first targets.
                    while !self.has_job_to_begin() {
                        tokio::select! {
                            () = sleep_until(next) => break,
                            () = self.changed.notified() => {}
                        }
                    }
                    next = Instant::now() + SYNC_INTERVAL;
                    self.sync().await;
                }
            } => {}
        }
        self.stop().await;
    }

    /// Returns whether a job has target lists with targets, but no targets yet.
    fn has_job_to_begin(&self) -> bool {
        let sets = self.sets.lock().unwrap_or_else(PoisonError::into_inner);
        let listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        sets.iter().any(|(name, groups)| {
            let is_empty = |shared: &Arc<Shared>| shared.is_empty();
            let begins = |(_, pool): &ListedJob| pool.as_ref().is_none_or(is_empty);
            groups.iter().any(|list| list.targets() > 0) && listed.get(name).is_some_and(begins)
        })
    }

    /// Applies the newest target groups now.
    pub async fn sync(&self) {
        // Cloned, so that discovery can replace the groups during the sync.
        let sets = self.sets.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut inner = self.inner.lock().await;
        let Inner { jobs, pools, offset_seed, has_stopped } = &mut *inner;
        // A sync that waited for the lock must not begin cycles after the stop.
        if *has_stopped {
            return;
        }
        // Concurrently, because a pool waits for scrapes of targets that end.
        let mut tasks = JoinSet::new();
        for (name, groups) in sets {
            // A removed job may still have groups until discovery drops them.
            let Some(job) = jobs.get(&name) else { continue };
            if !pools.contains_key(&name) {
                // Upstream's metric counts attempts, so this precedes the outcome.
                self.context.metrics.pools.add(1);
                let builtin = self.builtins.get(&name).filter(|_| job.is_builtin).cloned();
                match Pool::new(self.context.clone(), job.clone(), builtin, *offset_seed) {
                    Ok(pool) => {
                        pools.insert(name.clone(), pool);
                    }
                    Err(error) => {
                        self.context.metrics.pools_failed.add(1);
                        tracing::error!(%error, "a job cannot be scraped");
                    }
                }
            }
            if let Some((name, mut pool)) = pools.remove_entry(&name) {
                tasks.spawn(async move {
                    pool.sync(&groups).await;
                    (name, pool)
                });
            }
        }
        while let Some(done) = tasks.join_next().await {
            // A task that panicked has lost its pool; the next sync makes a new pool.
            pools.extend(done);
        }
        self.list(&inner);
    }

    async fn stop(&self) {
        let mut inner = self.inner.lock().await;
        inner.has_stopped = true;
        for pool in inner.pools.values_mut() {
            pool.stop().await;
        }
        inner.pools.clear();
        self.list(&inner);
    }

    fn list(&self, inner: &Inner<S>) {
        let jobs = inner.jobs.iter().map(|(name, job)| {
            let pool = inner.pools.get(name);
            // After a failed reload, the pool has its old settings.
            let job = pool.map_or(job, Pool::job).clone();
            (name.clone(), (job, pool.map(Pool::shared)))
        });
        *self.listed.lock().unwrap_or_else(PoisonError::into_inner) = jobs.collect();
    }

    /// Returns the names of the jobs that have a pool, which the first targets create.
    pub fn pools(&self) -> Vec<String> {
        let listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        listed
            .iter()
            .filter(|(_, (_, pool))| pool.is_some())
            .map(|(name, _)| name.clone())
            .collect()
    }

    pub fn job(&self, name: &str) -> Option<Arc<Job>> {
        let listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        listed.get(name).map(|(job, _)| job.clone())
    }

    /// Returns the targets of all jobs, or of one job.
    pub fn targets(&self, job: Option<&str>) -> BTreeMap<String, Listed> {
        let listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        let pools = listed.iter().filter(|(name, _)| job.is_none_or(|job| job == name.as_str()));
        pools.filter_map(|(name, (_, pool))| Some((name.clone(), pool.as_ref()?.list()))).collect()
    }

    /// Returns for each job how many entries and bytes the metadata of its targets has:
    /// `prometheus_target_metadata_cache_entries` and `_bytes`.
    pub fn metadata_sizes(&self) -> BTreeMap<String, (usize, usize)> {
        let size = |listed: Listed| {
            let sizes = listed
                .active
                .iter()
                .map(|target| target.with_families(|families| (families.len(), families.bytes())));
            sizes.fold((0, 0), |sum, size| (sum.0 + size.0, sum.1 + size.1))
        };
        self.targets(None).into_iter().map(|(job, listed)| (job, size(listed))).collect()
    }

    pub fn jobs(&self) -> BTreeSet<String> {
        let listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        listed.keys().cloned().collect()
    }
}
