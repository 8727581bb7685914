//! Pools and the manager: the targets that they have, and the state that a reload keeps.

use crate::store::{MemoryStore, TestClock};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tidepool_relabel::{Action, RuleSpec};
use tidepool_scrape::append::Appender;
use tidepool_scrape::discovery::{Groups, List};
use tidepool_scrape::error::ScrapeError;
use tidepool_scrape::failure_log::FailureLog;
use tidepool_scrape::job::{Job, Limits};
use tidepool_scrape::labels::Labels;
use tidepool_scrape::manager::{Manager, SYNC_INTERVAL, TargetSets};
use tidepool_scrape::memory::MemoryBound;
use tidepool_scrape::metrics::Metrics;
use tidepool_scrape::pool::{Context, Listed};
use tidepool_scrape::source::{Builtin, FamilyWriter, Scraping, Source};
use tidepool_scrape::target::{Health, TargetGroup};
use tokio::sync::watch;
use tokio::time::sleep;

/// A source of which every scrape is good.
struct Constant;

impl Source for Constant {
    fn scrape<'a>(&'a mut self, appender: &'a mut Appender) -> Scraping<'a> {
        Box::pin(async move { FamilyWriter::new(appender).sample("a", &[], 1.0) })
    }
}

impl Builtin for Constant {
    fn source(&self) -> Box<dyn Source> {
        Box::new(Constant)
    }
}

struct Setup {
    manager: Arc<Manager<MemoryStore>>,
    store: Arc<MemoryStore>,
    metrics: Arc<Metrics>,
    shutdown: watch::Sender<bool>,
}

fn setup() -> Setup {
    setup_within(MemoryBound::unbounded())
}

fn setup_within(memory: MemoryBound) -> Setup {
    let (store, metrics) = (Arc::<MemoryStore>::default(), Arc::<Metrics>::default());
    let (shutdown, is_shut_down) = watch::channel(false);
    let context = Context {
        runtime: tokio::runtime::Handle::current(),
        store: store.clone(),
        clock: Arc::new(TestClock::at_seconds(1_000_000)),
        metrics: metrics.clone(),
        user_agent: "agent".into(),
        body_bytes_max: 1 << 20,
        memory,
        failure_log: FailureLog::new(1 << 20),
        hash_seed: 7,
        shutdown: is_shut_down,
    };
    let builtin: Arc<dyn Builtin> = Arc::new(Constant);
    let builtins = ["j", "k"].map(|name| (name.to_owned(), builtin.clone()));
    let manager = Arc::new(Manager::new(Arc::new(context), BTreeMap::from(builtins)));
    Setup { manager, store, metrics, shutdown }
}

fn job(name: &str) -> Job {
    let interval = Duration::from_secs(10);
    Job { interval, timeout: interval, is_builtin: true, ..Job::new(name) }
}

fn labels(pairs: &[(&str, &str)]) -> Labels {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn addresses(list: &[&str]) -> Groups {
    let targets = list.iter().map(|address| labels(&[("__address__", address)])).collect();
    let labels = labels(&[("__meta_g", "1")]);
    let group = TargetGroup { source: "file".into(), targets, labels };
    vec![Arc::new(List::unbounded(vec![group]))]
}

fn sets(list: &[(&str, &[&str])]) -> TargetSets {
    list.iter().map(|(job, list)| ((*job).to_owned(), addresses(list))).collect()
}

impl Setup {
    async fn sync(&self, list: &[(&str, &[&str])]) {
        self.manager.update(sets(list));
        self.manager.sync().await;
    }

    fn listed(&self, job: &str) -> Listed {
        self.manager.targets(Some(job)).remove(job).unwrap_or_default()
    }

    fn instances(&self, job: &str) -> Vec<String> {
        let active = self.listed(job).active;
        active.iter().map(|target| target.labels()["instance"].clone()).collect()
    }

    /// Returns series of `up` with samples since the last call, without markers.
    fn scraped(&self) -> Vec<String> {
        let all = self.store.take_all();
        let ups = all.into_iter().filter(|of| of.series.starts_with("up{") && !of.value.is_nan());
        let mut ups: Vec<String> = ups.map(|of| of.series).collect();
        ups.sort();
        ups.dedup();
        ups
    }
}

fn up(job: &str, instance: &str) -> String {
    format!("up{{instance={instance:?},job={job:?}}}")
}

/// Follows the upstream tests TestScrapePoolScrapeLoopsStarted, TestScrapePoolSync,
/// TestManagerReloader….
#[tokio::test(start_paused = true)]
async fn targets_follow_discovery() {
    let setup = setup();
    setup.manager.apply(vec![job("j"), job("k")], 0).await.expect("good jobs");
    setup.sync(&[("j", &["a:1", "b:1", "a:1"]), ("k", &["a:1"]), ("gone", &["x:1"])]).await;
    assert_eq!(setup.instances("j"), ["a:1", "b:1"], "equal targets are one");
    assert_eq!(setup.manager.pools(), ["j", "k"]);
    assert_eq!(setup.listed("j").active[0].state().health, Health::Unknown);
    sleep(Duration::from_secs(11)).await;
    assert_eq!(setup.scraped(), [up("j", "a:1"), up("k", "a:1"), up("j", "b:1")]);
    assert_eq!(setup.listed("j").active[0].state().health, Health::Up);
    assert_eq!(setup.listed("j").active[0].discovered_labels().get("__meta_g"), "1");
    setup.sync(&[("j", &["b:1", "c:1"]), ("k", &["a:1"])]).await;
    setup.scraped();
    sleep(Duration::from_secs(11)).await;
    assert_eq!(setup.scraped(), [up("k", "a:1"), up("j", "b:1"), up("j", "c:1")]);
    sleep(Duration::from_secs(30)).await;
    let markers = setup.store.take_all().into_iter().filter(|of| of.value.is_nan());
    assert!(markers.into_iter().any(|of| of.series == up("j", "a:1")));
    let pools = setup.metrics.by_pool();
    assert_eq!((pools[0].1.targets, pools[0].1.syncs, setup.metrics.pools.get()), (2, 2, 2));
}

/// Follows the upstream tests TestDroppedTargetsList, TestTargetsFromGroup.
#[tokio::test(start_paused = true)]
async fn dropped_and_wrong_targets_are_counted() {
    let drop = RuleSpec {
        source_labels: vec!["__address__".into()],
        regex: "drop.*".into(),
        ..RuleSpec::new(Action::Drop)
    };
    let limits = Limits { dropped_targets: 1, ..Limits::default() };
    let setup = setup();
    let job = Job { relabel: vec![drop], limits, ..job("j") };
    setup.manager.apply(vec![job], 0).await.expect("a good job");
    setup.sync(&[("j", &["a:1", "drop1:1", "drop2:1", "http://b"])]).await;
    let listed = setup.listed("j");
    assert_eq!((listed.active.len(), listed.dropped.len(), listed.dropped_total), (1, 1, 2));
    assert_eq!(listed.dropped[0].get("__address__"), "drop1:1");
    assert_eq!(setup.metrics.by_pool()[0].1.sync_failed, 1);
}

/// Regression: a list of a million targets that rules drop was kept as a whole.
#[tokio::test(start_paused = true)]
async fn dropped_targets_are_listed_as_far_as_there_is_room() {
    let memory = MemoryBound::new(800 << 10);
    let setup = setup_within(memory.clone());
    let drop_all = RuleSpec { regex: ".*".into(), ..RuleSpec::new(Action::Drop) };
    let limits = Limits { dropped_targets: 0, ..Limits::default() };
    let job = Job { relabel: vec![drop_all], limits, ..job("j") };
    setup.manager.apply(vec![job], 0).await.expect("a good job");
    let hosts: Vec<String> = (0..5_000).map(|n| format!("{}{n}:1", "h".repeat(200))).collect();
    let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
    setup.sync(&[("j", &hosts)]).await;
    let listed = setup.listed("j");
    assert_eq!((listed.active.len(), listed.dropped_total), (0, 5_000));
    // An eighth is 100 KiB, and each has more than 200 bytes.
    let count = listed.dropped.len();
    assert!((100..500).contains(&count), "{count}");
    assert!(memory.held_bytes() <= 100 << 10, "{}", memory.held_bytes());
    assert_eq!(listed.dropped[0].get("__address__"), hosts[0]);
    setup.sync(&[("j", &[])]).await;
    assert_eq!((setup.listed("j").dropped.len(), memory.held_bytes()), (0, 0));
}

/// Follows the upstream test TestScrapePoolTargetLimit.
#[tokio::test(start_paused = true)]
async fn too_many_targets_fail_all_until_there_are_fewer() {
    let setup = setup();
    let limits = |targets| Job { limits: Limits { targets, ..Limits::default() }, ..job("j") };
    setup.manager.apply(vec![limits(1)], 0).await.expect("a good job");
    let errors = |setup: &Setup| -> Vec<Option<ScrapeError>> {
        setup.listed("j").active.iter().map(|target| target.state().last_error).collect()
    };
    let over = |targets| Some(ScrapeError::TargetLimit { targets, limit: 1 });
    setup.sync(&[("j", &["a:1"])]).await;
    sleep(Duration::from_secs(11)).await;
    assert_eq!(errors(&setup), [None]);
    setup.sync(&[("j", &["a:1", "b:1"])]).await;
    sleep(Duration::from_secs(11)).await;
    assert_eq!(errors(&setup), [over(2), over(2)]);
    assert_eq!(setup.metrics.exceeded_target_limit.get(), 1);
    setup.manager.apply(vec![limits(2)], 0).await.expect("a good job");
    sleep(Duration::from_secs(11)).await;
    assert_eq!(errors(&setup), [None, None]);
    setup.manager.apply(vec![limits(1)], 0).await.expect("a good job");
    setup.sync(&[("j", &["b:1"])]).await;
    sleep(Duration::from_secs(11)).await;
    assert_eq!(errors(&setup), [None]);
}

/// Follows the upstream tests TestReuseScrapeCache, TestScrapePoolReload.
#[tokio::test(start_paused = true)]
async fn a_reload_keeps_what_stays_valid() {
    let setup = setup();
    setup.manager.apply(vec![job("j")], 0).await.expect("a good job");
    setup.sync(&[("j", &["a:1"])]).await;
    sleep(Duration::from_secs(11)).await;
    let asked = |setup: &Setup| std::mem::take(&mut setup.store.lock().resolved);
    assert_eq!(asked(&setup), [6], "a series and its report");
    setup.manager.apply(vec![job("j")], 0).await.expect("a good job");
    assert_eq!(setup.metrics.pool_reloads.get(), 0, "nothing has changed");
    let limited = Job { limits: Limits { samples: 9, ..Limits::default() }, ..job("j") };
    setup.manager.apply(vec![limited], 0).await.expect("a good job");
    sleep(Duration::from_secs(11)).await;
    assert_eq!((asked(&setup), setup.metrics.pool_reloads.get()), (vec![5], 1));
    let honoring = Job { honor_labels: true, ..job("j") };
    setup.manager.apply(vec![honoring], 0).await.expect("a good job");
    sleep(Duration::from_secs(11)).await;
    assert_eq!(asked(&setup), [6], "the cache is a new one");
    let wrong = Job { metric_relabel: vec![RuleSpec::new(Action::HashMod)], ..job("j") };
    let error = setup.manager.apply(vec![wrong], 0).await.expect_err("it has no modulus");
    assert!(error.to_string().starts_with("job \"j\": "), "{error}");
    assert!(setup.manager.job("j").expect("it is there").honor_labels, "the old settings go on");
    setup.scraped();
    sleep(Duration::from_secs(11)).await;
    assert_eq!(setup.scraped(), [up("j", "a:1")]);
    setup.manager.apply(Vec::new(), 0).await.expect("no job");
    assert_eq!(setup.manager.pools(), [""; 0]);
    setup.scraped();
    sleep(Duration::from_secs(11)).await;
    assert_eq!(setup.scraped(), [""; 0]);
}

/// Groups of a job without targets are applied at once, others at most each five seconds, and
/// nothing is written after the shutdown.
#[tokio::test(start_paused = true)]
async fn the_manager_runs_until_the_shutdown() {
    let setup = setup();
    setup.manager.apply(vec![job("j")], 0).await.expect("a good job");
    setup.manager.update(sets(&[("j", &["a:1"])]));
    let manager = setup.manager.clone();
    let run = tokio::spawn(async move { manager.run().await });
    sleep(Duration::from_millis(1)).await;
    assert_eq!(setup.instances("j"), ["a:1"]);
    setup.manager.update(sets(&[("j", &["b:1"])]));
    sleep(SYNC_INTERVAL - Duration::from_millis(2)).await;
    assert_eq!(setup.instances("j"), ["a:1"]);
    sleep(Duration::from_millis(2)).await;
    assert_eq!(setup.instances("j"), ["b:1"]);
    sleep(Duration::from_secs(11)).await;
    setup.store.take_all();
    setup.shutdown.send_replace(true);
    run.await.expect("no panic");
    sleep(Duration::from_secs(60)).await;
    assert_eq!(setup.store.take_all(), []);
    assert_eq!(setup.manager.pools(), [""; 0]);
    assert_eq!(setup.metrics.by_pool(), []);
}
