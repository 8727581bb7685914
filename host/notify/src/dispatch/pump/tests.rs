//! The task with paused time, a scripted receiver and real files.

use super::*;
use crate::config::{GroupBy, Grouping};
use crate::dispatch::{Failing, Links, Position, position::Found};
use crate::journal::{JournalBounds, JournalThread};
use crate::matchers::Matchers;
use std::collections::{BTreeSet, VecDeque};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use tidepool_disk::fs::RealDisk;
use tidepool_lifecycle::boxed::BoxFuture;
use tidepool_lifecycle::shutdown::ShutdownTrigger;
use tokio::task::JoinHandle;
use tokio::time::sleep;

const BEGIN_MS: i64 = 1_767_225_600_000;
const GROUP_WAIT: Duration = Duration::from_secs(30);
const DEADLINE: Duration = Duration::from_secs(20);

/// What the receiver does next; it accepts when nothing is left.
enum Script {
    Refuse,
    Fail(Option<Duration>),
    Hang,
    Take(Duration),
}

struct Scripted {
    started: Instant,
    script: Mutex<VecDeque<Script>>,
    /// Attempts with their seconds.
    attempts: Mutex<Vec<(f64, Notification)>>,
    accepted: Mutex<Vec<Notification>>,
}

impl Receiver for Scripted {
    fn deliver<'a>(
        &'a self,
        notification: &'a Notification,
    ) -> BoxFuture<'a, Result<Answered, DeliveryError>> {
        Box::pin(async move {
            let secs = self.started.elapsed().as_secs_f64();
            self.attempts.lock().unwrap().push((secs, notification.clone()));
            let script = self.script.lock().unwrap().pop_front();
            match script {
                Some(Script::Refuse) => return Err(refusal()),
                Some(Script::Fail(after)) => return Err(failure(after)),
                Some(Script::Hang) => std::future::pending().await,
                Some(Script::Take(time)) => sleep(time).await,
                None => {}
            }
            self.accepted.lock().unwrap().push(notification.clone());
            let alerts = notification.alerts.len();
            Ok(Answered { summary: "204 No Content".into(), alerts })
        })
    }
}

fn refusal() -> DeliveryError {
    DeliveryError::Refused { what: "400 Bad Request".into() }
}

fn failure(after: Option<Duration>) -> DeliveryError {
    DeliveryError::Failed { what: "503".into(), retry_after: after }
}

struct Bench {
    dir: tempfile::TempDir,
    journal: Journal,
    /// Ends with the test.
    _thread: JournalThread,
    receiver: Arc<Scripted>,
    terms: Terms,
    is_silenced: Arc<AtomicBool>,
    started: Instant,
}

struct Running {
    pump: Pump,
    stop: ShutdownTrigger,
    task: JoinHandle<()>,
}

impl Bench {
    fn new() -> Bench {
        let started = Instant::now();
        let receiver = Scripted {
            started,
            script: Mutex::default(),
            attempts: Mutex::default(),
            accepted: Mutex::default(),
        };
        let terms = Terms {
            name: "phone".into(),
            matchers: Vec::new(),
            send_resolved: true,
            grouping: Grouping {
                by: GroupBy::Labels(Vec::new()),
                wait: GROUP_WAIT,
                interval: Duration::from_secs(300),
                repeat: Duration::from_secs(4 * 3600),
            },
            deadline: DEADLINE,
            links: Links {
                external_labels: LabelSet::default(),
                external_url: "http://node".into(),
                generator_url: Arc::new(|_| "g".into()),
            },
        };
        let dir = tempfile::tempdir().unwrap();
        let (bounds, now) = (JournalBounds::default(), Arc::new(|| None));
        let (journal, _thread) =
            Journal::open(Arc::new(RealDisk), dir.path().to_owned(), bounds, 1, now);
        Bench {
            dir,
            journal,
            _thread,
            receiver: Arc::new(receiver),
            terms,
            is_silenced: Arc::default(),
            started,
        }
    }

    fn start(&self) -> Running {
        let (is_silenced, started) = (self.is_silenced.clone(), self.started);
        let pump = Pump::new(PumpParts {
            terms: self.terms.clone(),
            receiver: self.receiver.clone(),
            journal: self.journal.clone(),
            positions: self.positions(),
            is_silenced: Arc::new(move |_| is_silenced.load(Relaxed)),
            now_ms: Arc::new(move || BEGIN_MS + started.elapsed().as_millis() as i64),
            figures: PumpFigures::default(),
        });
        let (stop, shutdown) = Shutdown::manual();
        let task = tokio::spawn(pump.clone().run(shutdown));
        Running { pump, stop, task }
    }

    fn positions(&self) -> Positions {
        Positions::new(Arc::new(RealDisk), receivers(self.dir.path()))
    }

    fn script(&self, script: impl IntoIterator<Item = Script>) {
        self.receiver.script.lock().unwrap().extend(script);
    }

    fn event(&self, change: Change, name: &str) {
        let time_ms = BEGIN_MS + self.started.elapsed().as_millis() as i64;
        self.journal.append(vec![Event {
            change,
            time_ms,
            origin: Origin { file: "f".into(), group: "g".into() },
            labels: LabelSet::new([("alertname", name)]),
            annotations: Arc::default(),
            value: 1.0,
            fired_at_ms: time_ms,
            cause: Cause::Evaluation,
            is_unnamed: false,
        }]);
    }

    fn fire(&self, name: &str) {
        self.event(Change::Firing, name);
    }

    fn resolve(&self, name: &str) {
        self.event(Change::Resolved, name);
    }

    /// Names of the accepted notifications' news, with a minus for an end.
    fn told(&self) -> Vec<String> {
        let told = |notification: &Notification| {
            let news = notification.alerts.iter().filter(|alert| alert.is_news);
            let one = |alert: &crate::notification::NotifiedAlert| {
                let sign = if alert.change == Change::Firing { "" } else { "-" };
                format!("{sign}{}", alert.labels.get("alertname"))
            };
            news.map(one).collect::<Vec<String>>().join(" ")
        };
        self.receiver.accepted.lock().unwrap().iter().map(told).collect()
    }

    fn attempt_secs(&self) -> Vec<f64> {
        self.receiver.attempts.lock().unwrap().iter().map(|(secs, _)| *secs).collect()
    }

    /// Identifiers of all news that the receiver accepted.
    fn ids(&self) -> Vec<String> {
        let accepted = self.receiver.accepted.lock().unwrap();
        let alerts = accepted.iter().flat_map(|notification| &notification.alerts);
        alerts.filter(|alert| alert.is_news).map(|alert| alert.id.clone()).collect()
    }
}

impl Running {
    async fn stop(self) {
        self.stop.stop();
        self.task.await.unwrap();
    }

    /// Ends the task as a kill does.
    async fn kill(self) {
        self.task.abort();
        assert!(self.task.await.unwrap_err().is_cancelled());
    }
}

fn receivers(dir: &Path) -> std::path::PathBuf {
    dir.join("receivers")
}

fn through(number: u64) -> Found {
    Found::Position(Position { through: number, ..Position::default() })
}

async fn secs(secs: u64) {
    sleep(Duration::from_secs(secs)).await;
}

#[tokio::test(start_paused = true)]
async fn events_are_delivered_and_the_position_follows() {
    let bench = Bench::new();
    let running = bench.start();
    secs(1).await;
    bench.fire("A");
    secs(29).await;
    bench.fire("B");
    assert_eq!(bench.told().len(), 0);
    secs(2).await;
    assert_eq!(bench.told(), ["A B"]);
    secs(1).await;
    assert_eq!(bench.positions().load("phone"), through(2));
    bench.resolve("A");
    secs(300).await;
    assert_eq!(bench.told(), ["A B", "-A"]);
    let status = running.pump.status();
    assert_eq!((status.totals.sent, status.totals.delivered, status.totals.failed), (2, 3, 0));
    assert_eq!((status.undelivered, status.waiting, status.failing), (0, 0, None));
    assert_eq!(status.succeeded_ms, Some(BEGIN_MS + 331_000));
    running.stop().await;
    assert_eq!(bench.positions().load("phone"), through(3));
}

#[tokio::test(start_paused = true)]
async fn a_failing_receiver_is_tried_again_with_growing_pauses() {
    let bench = Bench::new();
    bench.script((0..12).map(|_| Script::Fail(None)));
    let running = bench.start();
    bench.fire("A");
    secs(60).await;
    let status = running.pump.status();
    assert_eq!((status.undelivered, status.oldest_undelivered_ms), (1, Some(BEGIN_MS)));
    let since_ms = BEGIN_MS + 30_000;
    let error = "503".to_owned();
    assert_eq!(status.failing, Some(Failing { since_ms, error, is_refusal: false }));
    secs(3_600).await;
    assert_eq!(bench.told(), ["A"]);
    let at = bench.attempt_secs();
    let pauses: Vec<f64> = at.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(pauses.len(), 12);
    for (pause, full) in pauses.iter().zip([1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]) {
        let full = f64::from(full);
        assert!((full * 0.75 - 0.01..full + 0.01).contains(pause), "{pause} of {full} s");
    }
    let accepted = &bench.receiver.accepted.lock().unwrap()[0];
    assert!(accepted.alerts[0].is_late);
    let status = running.pump.status();
    assert_eq!((status.undelivered, status.failing, status.totals.failed), (0, None, 12));
}

#[tokio::test(start_paused = true)]
async fn a_receiver_that_asks_for_a_pause_has_it() {
    let bench = Bench::new();
    let ask = |secs| Script::Fail(Some(Duration::from_secs(secs)));
    bench.script([ask(100), ask(9_000)]);
    let _running = bench.start();
    bench.fire("A");
    secs(1_000).await;
    let at: Vec<u64> = bench.attempt_secs().iter().map(|secs| secs.round() as u64).collect();
    assert_eq!(at, [30, 130, 430]);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_holds_up_its_group_only() {
    let mut bench = Bench::new();
    bench.terms.grouping.by = GroupBy::EachAlert;
    bench.script([Script::Refuse]);
    let running = bench.start();
    bench.fire("A");
    bench.fire("B");
    sleep(Duration::from_millis(30_500)).await;
    assert_eq!(bench.told().len(), 1, "the other one");
    assert!(running.pump.status().failing.is_some_and(|failing| failing.is_refusal));
    secs(2).await;
    assert_eq!(bench.told().into_iter().collect::<BTreeSet<_>>().len(), 2);
    assert_eq!(running.pump.status().failing, None);
}

#[tokio::test(start_paused = true)]
async fn a_receiver_that_hangs_is_given_up_at_the_deadline() {
    let bench = Bench::new();
    bench.script([Script::Hang]);
    let running = bench.start();
    bench.fire("A");
    sleep(GROUP_WAIT + DEADLINE + Duration::from_millis(100)).await;
    let failing = running.pump.status().failing.unwrap();
    assert_eq!(failing.error, "no answer within 20 s");
    secs(2).await;
    assert_eq!(bench.told(), ["A"]);
}

#[tokio::test(start_paused = true)]
async fn a_silence_counts_at_the_time_of_the_delivery() {
    let bench = Bench::new();
    let running = bench.start();
    bench.fire("A");
    secs(10).await;
    bench.is_silenced.store(true, Relaxed);
    secs(30).await;
    let status = running.pump.status();
    assert_eq!((bench.told().len(), status.muted, status.totals.silenced), (0, 1, 1));
    let muted = Position { through: 1, beyond: Vec::new(), muted: vec![1] };
    assert_eq!(bench.positions().load("phone"), Found::Position(muted));
    bench.is_silenced.store(false, Relaxed);
    secs(300).await;
    assert_eq!(bench.told(), ["A"]);
    assert_eq!(running.pump.status().muted, 0);
}

/// A kill at each tenth of a second of a busy minute and its restart.
#[tokio::test(start_paused = true)]
async fn a_kill_at_any_time_loses_nothing() {
    for tenth in (0..620).step_by(7) {
        let bench = Bench::new();
        bench.script([Script::Take(Duration::from_secs(2)), Script::Fail(None)]);
        let running = bench.start();
        // Let the first start write its position, or the alerts would be history to it.
        sleep(Duration::from_millis(1)).await;
        let kill = async {
            sleep(Duration::from_millis(tenth * 100)).await;
            running.kill().await;
            bench.start()
        };
        let happen = async {
            for name in ["A", "B", "C"] {
                bench.fire(name);
                secs(11).await;
                bench.resolve(name);
                secs(5).await;
            }
        };
        let (again, ()) = tokio::join!(kill, happen);
        secs(700).await;
        let mut expected = Vec::new();
        bench.journal.scan(0, &mut |item| match item {
            crate::journal::Item::Open(entry) => expected.push(entry.event.id()),
            crate::journal::Item::Event(entry) => expected.push(entry.event.id()),
        });
        let ids = bench.ids();
        let first = |id: &String| ids.iter().position(|other| other == id);
        for pair in expected.chunks(2) {
            let (begin, end) = (first(&pair[0]), first(&pair[1]));
            assert!(
                begin.is_some() && begin < end,
                "killed after {tenth} tenths: {:?}",
                bench.told()
            );
        }
        let told: BTreeSet<&String> = ids.iter().collect();
        assert_eq!(told.len(), expected.len(), "nothing is invented");
        assert!(ids.len() <= expected.len() + 3, "one notification is repeated, not all");
        again.stop().await;
        assert_eq!(bench.positions().load("phone"), through(6));
    }
}

#[tokio::test(start_paused = true)]
async fn a_new_receiver_hears_of_what_fires_and_of_nothing_else() {
    let bench = Bench::new();
    bench.fire("A");
    bench.fire("B");
    bench.resolve("A");
    secs(100).await;
    let running = bench.start();
    secs(1).await;
    assert_eq!(bench.told(), ["B"]);
    running.stop().await;
    assert_eq!(bench.positions().load("phone"), through(3));
}

#[tokio::test(start_paused = true)]
async fn the_first_position_is_written_before_anything_happens() {
    let bench = Bench::new();
    let running = bench.start();
    sleep(Duration::from_millis(1)).await;
    assert_eq!(bench.positions().load("phone"), through(0));
    bench.fire("A");
    bench.resolve("A");
    running.kill().await;
    let _running = bench.start();
    secs(31).await;
    assert_eq!(bench.told(), ["A", "-A"]);
}

#[tokio::test(start_paused = true)]
async fn a_damaged_position_is_counted_and_begins_at_the_newest_event() {
    let bench = Bench::new();
    bench.fire("A");
    bench.fire("B");
    bench.resolve("A");
    std::fs::create_dir(receivers(bench.dir.path())).unwrap();
    std::fs::write(receivers(bench.dir.path()).join("phone.json"), "{").unwrap();
    let running = bench.start();
    secs(31).await;
    assert_eq!(bench.told(), ["B"]);
    assert_eq!(running.pump.status().damaged_positions_total, 1);
}

#[tokio::test(start_paused = true)]
async fn delivery_goes_on_while_the_position_cannot_be_written() {
    let bench = Bench::new();
    std::fs::write(receivers(bench.dir.path()), "in the way").unwrap();
    let running = bench.start();
    bench.fire("A");
    secs(40).await;
    assert_eq!(bench.told(), ["A"]);
    assert!(running.pump.status().is_position_unwritten);
    std::fs::remove_file(receivers(bench.dir.path())).unwrap();
    secs(11).await;
    assert!(!running.pump.status().is_position_unwritten);
    assert_eq!(bench.positions().load("phone"), through(1));
}

#[tokio::test(start_paused = true)]
async fn events_of_others_are_passed_with_few_writes() {
    let mut bench = Bench::new();
    bench.terms.matchers = vec![Matchers::parse(r#"{severity="page"}"#).unwrap()];
    let _running = bench.start();
    secs(1).await;
    for _ in 0..5 {
        bench.fire("A");
        secs(10).await;
        assert_eq!(bench.positions().load("phone"), through(0));
    }
    secs(10).await;
    assert_eq!(bench.positions().load("phone"), through(5));
    let file = receivers(bench.dir.path()).join("phone.json");
    let inode = || std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(&file).unwrap());
    // Each write is a new file, which cannot have the inode of one that is still there.
    std::fs::hard_link(&file, bench.dir.path().join("kept")).unwrap();
    let before = inode();
    secs(24 * 3_600).await;
    assert_eq!(inode(), before, "a quiet node writes nothing");
}

#[tokio::test(start_paused = true)]
async fn a_stop_does_not_wait_for_a_receiver_that_hangs() {
    let bench = Bench::new();
    bench.script([Script::Hang]);
    let running = bench.start();
    bench.fire("A");
    secs(31).await;
    let stopping = Instant::now();
    running.stop().await;
    assert!(stopping.elapsed() <= STOP_GRACE + Duration::from_millis(10));
    assert_eq!(bench.positions().load("phone"), through(0));
    let _running = bench.start();
    secs(31).await;
    assert_eq!(bench.told(), ["A"]);
}

#[tokio::test(start_paused = true)]
async fn a_stop_lets_a_delivery_end() {
    let bench = Bench::new();
    bench.script([Script::Take(Duration::from_secs(2))]);
    let running = bench.start();
    bench.fire("A");
    secs(31).await;
    running.stop().await;
    assert_eq!(bench.positions().load("phone"), through(1));
}

#[tokio::test(start_paused = true)]
async fn a_test_shows_the_answer() {
    let bench = Bench::new();
    bench.script([Script::Refuse, Script::Hang]);
    let running = bench.start();
    let refused = running.pump.test().await.unwrap_err();
    assert_eq!(refused.to_string(), "the receiver refuses the notification: 400 Bad Request");
    let hung = running.pump.test().await.unwrap_err();
    assert_eq!(hung.to_string(), "no answer within 20 s");
    assert_eq!(running.pump.test().await.unwrap().summary, "204 No Content");
    let accepted = bench.receiver.accepted.lock().unwrap();
    let (notification, alert) = (&accepted[0], &accepted[0].alerts[0]);
    assert_eq!(
        (notification.reason, alert.labels.get("alertname")),
        (Reason::Test, TEST_ALERT_NAME)
    );
    assert_eq!(running.pump.status().totals, Default::default(), "a test is no notification");
}
