//! Cycles under a paused clock: the times of their scrapes, and what is stored when they end.

use crate::store::{MemoryStore, Stored, TestClock, marker};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tidepool_exposition::MetricType;
use tidepool_scrape::append::{Appender, Mutator, Options};
use tidepool_scrape::cycle::{Cycle, Memory, Orders, Phase};
use tidepool_scrape::error::ScrapeError;
use tidepool_scrape::job::Job;
use tidepool_scrape::labels::Labels;
use tidepool_scrape::metrics::Metrics;
use tidepool_scrape::source::{FamilyWriter, Scraping, Source};
use tidepool_scrape::target::{Health, LabelMap, Target};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

/// Behaviour of a scripted source in one scrape; the last step is repeated.
#[derive(Clone)]
enum Step {
    Samples(&'static [&'static str]),
    Fail,
    Take(Duration),
}

#[derive(Clone)]
struct Script(Arc<Mutex<VecDeque<Step>>>);

impl Script {
    fn of(steps: &[Step]) -> Script {
        Script(Arc::new(Mutex::new(steps.iter().cloned().collect())))
    }
}

impl Source for Script {
    fn scrape<'a>(&'a mut self, appender: &'a mut Appender) -> Scraping<'a> {
        let step = {
            let mut steps = self.0.lock().expect("no test panics while it holds the steps");
            let step = steps.pop_front().expect("steps never run out");
            if steps.is_empty() {
                steps.push_back(step.clone());
            }
            step
        };
        Box::pin(async move {
            match step {
                Step::Fail => Err(ScrapeError::Request("refused".into())),
                Step::Take(length) => {
                    sleep(length).await;
                    FamilyWriter::new(appender).sample("slow", &[], 1.0)
                }
                Step::Samples(names) => {
                    let mut writer = FamilyWriter::new(appender);
                    for name in names {
                        writer.family(name, MetricType::Gauge, "help");
                        writer.sample(name, &[("x", "1")], 1.0)?;
                    }
                    Ok(())
                }
            }
        })
    }
}

const INTERVAL: Duration = Duration::from_secs(10);

struct Running {
    target: Arc<Target>,
    store: Arc<MemoryStore>,
    metrics: Arc<Metrics>,
    orders: watch::Sender<Orders>,
    shutdown: watch::Sender<bool>,
    stopped: oneshot::Receiver<Option<Memory>>,
    task: JoinHandle<()>,
}

fn options() -> Options {
    let target = vec![("job".to_owned(), "j".to_owned())];
    Options {
        mutator: Mutator {
            target,
            honor_labels: false,
            rules: Arc::default(),
            validation: Default::default(),
            limits: Default::default(),
        },
        honor_timestamps: true,
        track_timestamps_staleness: false,
        sample_limit: 0,
        bucket_limit: 0,
        schema_max: 8,
        extra_metrics: false,
    }
}

fn run(steps: &[Step], store: Arc<MemoryStore>, memory: Option<Memory>) -> Running {
    run_by(Arc::new(TestClock::at_seconds(1_000_000)), steps, store, memory)
}

fn run_by(
    clock: Arc<TestClock>,
    steps: &[Step],
    store: Arc<MemoryStore>,
    memory: Option<Memory>,
) -> Running {
    let metrics = Arc::<Metrics>::default();
    let job = Job { interval: INTERVAL, timeout: Duration::from_secs(5), ..Job::new("j") };
    let target = Arc::new(Target::new(&job, LabelMap::new(), Labels::default()));
    let appender = match memory {
        Some((cache, families)) => {
            Appender::with_cache(options(), metrics.clone(), cache, families)
        }
        None => Appender::new(options(), metrics.clone(), 7),
    };
    let cycle = Cycle {
        target: target.clone(),
        appender,
        source: Ok(Box::new(Script::of(steps))),
        store: store.clone(),
        clock,
        // Its first scrape is at once.
        offset_seed: target.hash(),
        sample_limit: 0,
        metrics: metrics.clone(),
        job: "j".into(),
        failures: None,
    };
    let (orders, received) = watch::channel(Orders::default());
    let (shutdown, is_shut_down) = watch::channel(false);
    let (answer, stopped) = oneshot::channel();
    let task = tokio::spawn(cycle.run(received, is_shut_down, answer));
    Running { target, store, metrics, orders, shutdown, stopped, task }
}

/// Returns seconds from the start of each scrape that has a value of `up`, with the value.
fn ups(store: &MemoryStore, start_ms: i64) -> Vec<(i64, f64)> {
    let inner = store.lock();
    let of = inner.samples.iter().filter(|stored| stored.series == "up{job=\"j\"}");
    of.map(|stored| (stored.at_ms - start_ms, stored.value)).collect()
}

const START_MS: i64 = 1_000_010_000;

/// Waits until a little more than this long after the first scrape.
async fn until(seconds: u64) {
    sleep(INTERVAL + Duration::from_secs(seconds) + Duration::from_millis(1)).await;
}

#[tokio::test(start_paused = true)]
async fn scrapes_are_one_interval_apart() {
    let running = run(&[Step::Samples(&["a"])], Arc::default(), None);
    until(30).await;
    let expected = [(0, 1.0), (10_000, 1.0), (20_000, 1.0), (30_000, 1.0)];
    assert_eq!(ups(&running.store, START_MS), expected);
    let intervals = running.metrics.intervals();
    assert_eq!((intervals[0].0, intervals[0].1.count), (INTERVAL, 3));
    assert_eq!(running.target.state().health, Health::Up);
    assert_eq!(
        running.target.state().last_scrape,
        Some(Duration::from_millis(START_MS as u64 + 30_000))
    );
}

/// A scrape that exceeds its timeout is abandoned, and has the time at which it began.
#[tokio::test(start_paused = true)]
async fn a_scrape_ends_by_its_timeout() {
    let slow = Step::Take(Duration::from_secs(7));
    let in_time = Step::Take(Duration::from_secs(4));
    let running = run(&[Step::Samples(&["a"]), slow, in_time], Arc::default(), None);
    until(26).await;
    assert_eq!(ups(&running.store, START_MS), [(0, 1.0), (10_000, 0.0), (20_000, 1.0)]);
    let durations = running.store.values("scrape_duration_seconds{job=\"j\"}");
    assert_eq!(durations, [0.0, 5.0, 4.0]);
    assert!(running.store.take().contains(&marker("a{job=\"j\",x=\"1\"}", START_MS + 10_000)));
}

#[tokio::test(start_paused = true)]
async fn a_failure_says_why_and_is_over_with_the_next_scrape() {
    let good = Step::Samples(&["a"]);
    let running = run(&[good.clone(), Step::Fail, good], Arc::default(), None);
    until(10).await;
    let state = running.target.state();
    assert_eq!(state.health, Health::Down);
    assert_eq!(state.last_error.map(|error| error.to_string()), Some("refused".into()));
    until(10).await;
    assert_eq!(running.target.state().last_error, None);
    assert_eq!(ups(&running.store, START_MS)[..3], [(0, 1.0), (10_000, 0.0), (20_000, 1.0)]);
}

/// Regression: a target was up without an error while the store kept nothing of it.
#[tokio::test(start_paused = true)]
async fn what_the_store_refuses_is_the_last_error() {
    let store = Arc::<MemoryStore>::default();
    store.lock().refused.insert("a".into());
    let running = run(&[Step::Samples(&["a", "b"])], store.clone(), None);
    let last = || {
        let state = running.target.state();
        (state.health, state.last_error.map(|error| error.to_string()).unwrap_or_default())
    };
    until(0).await;
    let refused = "the store refused 1 of the scrape's samples: 1 of series beyond the limit of \
                   series (a{job=\"j\",x=\"1\"}: too many series)";
    assert_eq!(last(), (Health::Up, refused.to_owned()));
    store.lock().is_broken = true;
    sleep(INTERVAL).await;
    let unstored =
        "nothing of the scrape is stored: the store refused the scrape: the disk is full";
    assert_eq!(last(), (Health::Up, unstored.to_owned()));
    (store.lock().is_broken, store.lock().refused) = (false, Default::default());
    sleep(INTERVAL).await;
    assert_eq!(last(), (Health::Up, String::new()));
}

/// Follows the upstream test TestScrapeLoopForcedErr.
#[tokio::test(start_paused = true)]
async fn a_forced_error_takes_the_place_of_a_scrape() {
    let running = run(&[Step::Samples(&["a"])], Arc::default(), None);
    until(5).await;
    let forced = Some(ScrapeError::TargetLimit { targets: 2, limit: 1 });
    running.orders.send_modify(|orders| orders.forced = forced.clone());
    sleep(INTERVAL).await;
    assert_eq!(running.target.state().last_error, forced);
    assert_eq!(ups(&running.store, START_MS), [(0, 1.0), (10_000, 0.0)]);
    assert!(running.store.take().contains(&marker("a{job=\"j\",x=\"1\"}", START_MS + 10_000)));
    running.orders.send_modify(|orders| orders.forced = None);
    sleep(INTERVAL).await;
    assert_eq!(running.target.state().health, Health::Up);
}

/// Follows the upstream test TestScrapeLoopStop.
#[tokio::test(start_paused = true)]
async fn the_end_is_marked_at_the_first_missed_scrape() {
    let running = run(&[Step::Samples(&["a"])], Arc::default(), None);
    until(15).await;
    running.orders.send_modify(|orders| orders.phase = Phase::Ended);
    assert!(running.stopped.await.expect("an answer").is_none());
    running.store.take_all();
    // The next ticks are at 20 s and 30 s, and 10 % of the interval later it is 31 s.
    sleep(Duration::from_secs(15)).await;
    assert_eq!(running.store.take_all(), []);
    running.task.await.expect("no panic");
    let at_ms = START_MS + 20_000;
    let stored: Vec<Stored> = running.store.take_all();
    assert_eq!(stored.len(), 6);
    assert!(stored.contains(&marker("a{job=\"j\",x=\"1\"}", at_ms)));
    assert!(stored.contains(&marker("up{job=\"j\"}", at_ms)));
}

/// Follows the upstream test TestSetOptionsHandlingStaleness.
#[tokio::test(start_paused = true)]
async fn a_target_that_comes_back_has_no_markers() {
    let store = Arc::<MemoryStore>::default();
    let clock = Arc::new(TestClock::at_seconds(1_000_000));
    let first = run_by(clock.clone(), &[Step::Samples(&["a"])], store.clone(), None);
    until(15).await;
    first.orders.send_modify(|orders| orders.phase = Phase::Ended);
    first.stopped.await.expect("an answer");
    let second = run_by(clock, &[Step::Samples(&["a"])], store.clone(), None);
    first.task.await.expect("no panic");
    assert!(store.take_all().iter().all(|stored| !stored.value.is_nan()), "no markers");
    drop(second);
}

#[tokio::test(start_paused = true)]
async fn a_target_that_was_never_scraped_leaves_nothing() {
    let running = run(&[Step::Samples(&["a"])], Arc::default(), None);
    sleep(Duration::from_secs(5)).await;
    running.orders.send_modify(|orders| orders.phase = Phase::Ended);
    running.stopped.await.expect("an answer");
    running.task.await.expect("no panic");
    assert_eq!(running.store.take_all(), []);
}

/// Follows the upstream tests TestScrapeLoopDisableStalenessMarkerInjection, TestScrapePoolReload.
#[tokio::test(start_paused = true)]
async fn the_cache_goes_to_the_next_cycle() {
    let store = Arc::<MemoryStore>::default();
    let clock = Arc::new(TestClock::at_seconds(1_000_000));
    let first = run_by(clock.clone(), &[Step::Samples(&["a", "b"])], store.clone(), None);
    until(5).await;
    first.orders.send_modify(|orders| orders.phase = Phase::Replaced);
    let memory = first.stopped.await.expect("an answer");
    first.task.await.expect("no panic");
    store.take_all();
    let resolved = store.lock().resolved.len();
    let second = run_by(clock, &[Step::Samples(&["a"])], store.clone(), memory);
    sleep(INTERVAL).await;
    let stored = store.take_all();
    let markers: Vec<&str> =
        stored.iter().filter(|of| of.value.is_nan()).map(|of| of.series.as_str()).collect();
    assert_eq!(markers, ["b{job=\"j\",x=\"1\"}"]);
    assert_eq!(store.lock().resolved[resolved..], [5], "only the report is asked for");
    drop(second);
}

/// A scrape under way is finished when a target ends, and abandoned at a shutdown.
#[tokio::test(start_paused = true)]
async fn a_scrape_under_way_is_finished_or_given_up() {
    let slow = [Step::Take(Duration::from_secs(4))];
    let ended = run(&slow, Arc::default(), None);
    until(2).await;
    ended.orders.send_modify(|orders| orders.phase = Phase::Ended);
    ended.stopped.await.expect("an answer");
    assert_eq!(ups(&ended.store, START_MS), [(0, 1.0)]);
    let second = run(&slow, Arc::default(), None);
    until(2).await;
    second.shutdown.send_replace(true);
    let wait = timeout(Duration::from_millis(1), second.stopped).await;
    assert!(wait.expect("at once").expect("an answer").is_none());
    second.task.await.expect("no panic");
    assert_eq!(second.store.take_all(), []);
}

/// Upstream: no markers on shutdown, not even those of a target that has just ended.
#[tokio::test(start_paused = true)]
async fn a_shutdown_writes_nothing() {
    let running = run(&[Step::Samples(&["a"])], Arc::default(), None);
    until(5).await;
    running.orders.send_modify(|orders| orders.phase = Phase::Ended);
    running.stopped.await.expect("an answer");
    running.store.take_all();
    running.shutdown.send_replace(true);
    running.task.await.expect("no panic");
    assert_eq!(running.store.take_all(), []);
}
