//! Ends of alerts from the journal, after an Alertmanager could not be reached.

use super::server::{Server, reply};
use super::{Setup, apply, at, metric, names, notice, until};
use crate::alertmanager::{Alertmanagers, Events, number_max};
use crate::event::{Cause, Change, Entry, Event, Origin};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use tidepool_disk::fs::RealDisk;
use tidepool_rules::alert::Notice;
use tokio::sync::watch;

const NOT_NOTIFIED: &str = "tidepool_notifications_alertmanager_not_notified_total";
const SENT: &str = "prometheus_notifications_sent_total";

/// 2023-11-14T22:13:20Z.
const BEGIN_MS: i64 = 1_700_000_000_000;

/// A journal in memory.
struct TestJournal {
    entries: Mutex<Vec<Entry>>,
    newest: watch::Sender<u64>,
    oldest: AtomicU64,
}

impl Events for TestJournal {
    fn newest(&self) -> watch::Receiver<u64> {
        self.newest.subscribe()
    }

    fn oldest(&self) -> u64 {
        self.oldest.load(SeqCst)
    }

    fn scan(&self, from: u64, visit: &mut dyn FnMut(&Entry)) {
        let entries = self.entries.lock().expect("a lock").clone();
        let first = from.max(self.oldest());
        entries.iter().filter(|entry| entry.number >= first).for_each(visit);
    }
}

impl TestJournal {
    fn new() -> Arc<TestJournal> {
        let (entries, oldest) = (Mutex::default(), AtomicU64::new(1));
        Arc::new(TestJournal { entries, newest: watch::channel(0).0, oldest })
    }

    fn push(&self, event: Event) {
        let mut entries = self.entries.lock().expect("a lock");
        let number = entries.len() as u64 + 1;
        entries.push(Entry { number, event });
        self.newest.send_replace(number);
    }

    /// The alert fires from one second after the begin to another.
    fn fire(&self, name: &str, from: i64) {
        self.push(event(Change::Firing, name, from, from));
    }

    fn resolve(&self, name: &str, from: i64, to: i64) {
        self.push(event(Change::Resolved, name, from, to));
    }
}

fn event(change: Change, name: &str, from: i64, time: i64) -> Event {
    let Notice { labels, annotations, .. } = notice(name);
    Event {
        change,
        time_ms: BEGIN_MS + 1000 * time,
        origin: Origin { file: "rules.yml".into(), group: "g".into() },
        labels,
        annotations,
        value: 1.0,
        fired_at_ms: BEGIN_MS + 1000 * from,
        cause: Cause::Evaluation,
        is_unnamed: false,
    }
}

/// What is sent live of an alert that fires, or that has ended.
fn live(name: &str, from: i64, to: Option<i64>) -> Notice {
    Notice {
        starts_at_ms: BEGIN_MS + 1000 * from,
        ends_at_ms: BEGIN_MS + 1000 * to.unwrap_or(from + 240),
        is_resolved: to.is_some(),
        ..notice(name)
    }
}

/// A server that answers 503 until it is up.
async fn server() -> (Server, Arc<AtomicBool>) {
    let is_up = Arc::new(AtomicBool::new(false));
    let state = Arc::clone(&is_up);
    let server = Server::start(move |_| match state.load(SeqCst) {
        true => reply("200 OK", ""),
        false => reply("503 Service Unavailable", ""),
    })
    .await;
    (server, is_up)
}

fn start(dir: &Path, journal: &Arc<TestJournal>, server: &Server) -> Alertmanagers {
    let events: Arc<dyn Events> = Arc::clone(journal) as Arc<dyn Events>;
    let setup = Setup { events: Some(events), ..Setup::of(dir) };
    setup.start(&at(&[server.address()], ""))
}

fn position_file(dir: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(dir.join("alertmanagers")).ok()?;
    entries.map(|entry| entry.expect("an entry").path()).find(|path| path.extension().is_some())
}

fn through(dir: &Path) -> Option<u64> {
    let text = std::fs::read(position_file(dir)?).ok()?;
    serde_json::from_slice::<Value>(&text).ok()?["through"].as_u64()
}

/// Bodies of the requests since the server is up, by the number of requests before.
fn bodies(server: &Server, before: usize) -> Vec<Value> {
    server.requests().into_iter().skip(before).map(|request| request.body).collect()
}

#[tokio::test]
async fn an_alert_of_an_outage_is_told_with_its_true_times() {
    let dir = tempfile::tempdir().expect("a directory");
    let (journal, (server, is_up)) = (TestJournal::new(), server().await);
    let alertmanagers = start(dir.path(), &journal, &server);
    alertmanagers.send(&[live("Power", 5, None)], "");
    server.wait_for(1).await;
    journal.fire("Power", 5);
    journal.resolve("Power", 5, 65);
    // It is tried again and again.
    server.wait_for(4).await;
    assert_eq!(metric(&alertmanagers, NOT_NOTIFIED, &server.url()), Some(0.0));
    assert_eq!(alertmanagers.statuses()[0].undelivered, 1);
    is_up.store(true, SeqCst);
    until("it arrives", || metric(&alertmanagers, SENT, &server.url()) == Some(1.0)).await;
    assert_eq!(
        server.requests().pop().expect("a request").body,
        json!([{
            "labels": {"alertname": "Power"},
            "annotations": {"summary": "of Power"},
            "startsAt": "2023-11-14T22:13:25.000Z",
            "endsAt": "2023-11-14T22:14:25.000Z",
        }])
    );
    let told = metric(&alertmanagers, NOT_NOTIFIED, &server.url());
    assert_eq!(told, Some(1.0), "its beginning was never accepted");
    until("the position moves", || through(dir.path()) == Some(2)).await;
    alertmanagers.stop().await;
    assert_eq!(number_max(&RealDisk, dir.path()), 2);
    // After a restart nothing is sent again: the next end is the only one.
    let before = server.requests().len();
    let alertmanagers = start(dir.path(), &journal, &server);
    journal.fire("Door", 70);
    journal.resolve("Door", 70, 80);
    server.wait_for(before + 1).await;
    alertmanagers.stop().await;
    let bodies = bodies(&server, before);
    assert_eq!(bodies.iter().map(names).collect::<Vec<_>>(), [["Door"]]);
    assert_eq!(through(dir.path()), Some(4));
}

#[tokio::test]
async fn ends_that_are_accepted_live_are_not_sent_from_the_journal() {
    let dir = tempfile::tempdir().expect("a directory");
    let (journal, server) = (TestJournal::new(), Server::ok().await);
    let alertmanagers = start(dir.path(), &journal, &server);
    alertmanagers.send(&[live("A", 5, None)], "");
    journal.fire("A", 5);
    server.wait_for(1).await;
    alertmanagers.send(&[live("A", 5, Some(65))], "");
    server.wait_for(2).await;
    journal.resolve("A", 5, 65);
    until("it is settled", || through(dir.path()) == Some(2)).await;
    // Known from the journal only: its rule was removed.
    journal.fire("B", 66);
    journal.resolve("B", 66, 70);
    server.wait_for(3).await;
    until("it is settled", || through(dir.path()) == Some(4)).await;
    assert_eq!(bodies(&server, 0).iter().map(names).collect::<Vec<_>>(), [["A"], ["A"], ["B"]]);
    assert_eq!(metric(&alertmanagers, NOT_NOTIFIED, &server.url()), Some(1.0));
}

/// The firing alert was accepted before the outage, so that Alertmanager has notified.
#[tokio::test]
async fn an_alert_that_was_told_before_the_outage_is_not_counted() {
    let dir = tempfile::tempdir().expect("a directory");
    let (journal, (server, is_up)) = (TestJournal::new(), server().await);
    is_up.store(true, SeqCst);
    let alertmanagers = start(dir.path(), &journal, &server);
    journal.fire("A", 5);
    alertmanagers.send(&[live("A", 5, None)], "");
    until("it is settled", || through(dir.path()) == Some(1)).await;
    is_up.store(false, SeqCst);
    journal.resolve("A", 5, 65);
    server.wait_for(3).await;
    // The node restarts in the middle of the outage.
    alertmanagers.stop().await;
    assert_eq!(through(dir.path()), Some(1));
    let alertmanagers = start(dir.path(), &journal, &server);
    is_up.store(true, SeqCst);
    until("it arrives", || through(dir.path()) == Some(2)).await;
    assert_eq!(metric(&alertmanagers, NOT_NOTIFIED, &server.url()), Some(0.0));
    let last = server.requests().pop().expect("a request").body;
    assert_eq!(last[0]["endsAt"], "2023-11-14T22:14:25.000Z");
}

/// Alertmanager replaces a firing alert by the end of an earlier one of the same labels.
#[tokio::test]
async fn an_alert_that_fires_again_is_not_ended() {
    let dir = tempfile::tempdir().expect("a directory");
    let (journal, (server, is_up)) = (TestJournal::new(), server().await);
    let alertmanagers = start(dir.path(), &journal, &server);
    journal.fire("A", 5);
    journal.resolve("A", 5, 65);
    server.wait_for(1).await;
    journal.fire("A", 70);
    until("the end is given up", || alertmanagers.statuses()[0].undelivered == 0).await;
    is_up.store(true, SeqCst);
    let before = server.requests().len();
    alertmanagers.send(&[live("A", 70, None)], "");
    journal.fire("Mark", 80);
    journal.resolve("Mark", 80, 81);
    until("all is settled", || through(dir.path()) == Some(5)).await;
    let bodies = bodies(&server, before);
    let told: Vec<(&str, &str)> = bodies
        .iter()
        .flat_map(|body| body.as_array().expect("a list"))
        .map(|one| (one["labels"]["alertname"].as_str(), one["startsAt"].as_str()))
        .map(|(name, time)| (name.expect("a name"), time.expect("a time")))
        .collect();
    assert_eq!(told, [("A", "2023-11-14T22:14:30.000Z"), ("Mark", "2023-11-14T22:14:40.000Z")]);
    // The first time of A, and Mark.
    assert_eq!(metric(&alertmanagers, NOT_NOTIFIED, &server.url()), Some(2.0));
}

#[tokio::test]
async fn ends_are_sent_in_batches_and_refused_ones_once() {
    let dir = tempfile::tempdir().expect("a directory");
    let (journal, server) =
        (TestJournal::new(), Server::start(|_| reply("400 Bad Request", "label")).await);
    for number in 0..25 {
        journal.fire(&format!("A{number}"), 5);
    }
    let alertmanagers = start(dir.path(), &journal, &server);
    for number in 0..25 {
        journal.resolve(&format!("A{number}"), 5, 65);
    }
    until("all is settled", || through(dir.path()) == Some(50)).await;
    let sizes: Vec<usize> = bodies(&server, 0).iter().map(|body| names(body).len()).collect();
    assert_eq!(sizes.iter().sum::<usize>(), 25);
    assert!(sizes.iter().all(|size| *size <= 10), "{sizes:?}");
    let dropped = metric(&alertmanagers, "prometheus_notifications_dropped_total", &server.url());
    assert_eq!(dropped, Some(25.0));
    // They began before the position, so that nothing is known of their beginning.
    assert_eq!(metric(&alertmanagers, NOT_NOTIFIED, &server.url()), Some(0.0));
}

#[tokio::test]
async fn a_new_alertmanager_is_not_told_of_the_past() {
    let dir = tempfile::tempdir().expect("a directory");
    let (journal, server) = (TestJournal::new(), Server::ok().await);
    journal.fire("Old", 1);
    journal.resolve("Old", 1, 2);
    let alertmanagers = start(dir.path(), &journal, &server);
    journal.fire("A", 10);
    journal.resolve("A", 10, 20);
    until("it is settled", || through(dir.path()) == Some(4)).await;
    alertmanagers.stop().await;
    // The same at the next start, after damage.
    journal.fire("Unheard", 20);
    journal.resolve("Unheard", 20, 25);
    std::fs::write(position_file(dir.path()).expect("a file"), "{").expect("it is written");
    let alertmanagers = start(dir.path(), &journal, &server);
    journal.fire("B", 30);
    journal.resolve("B", 30, 40);
    until("it is settled", || through(dir.path()) == Some(8)).await;
    alertmanagers.stop().await;
    assert_eq!(bodies(&server, 0).iter().map(names).collect::<Vec<_>>(), [["A"], ["B"]]);
}

#[tokio::test]
async fn alerts_that_are_not_sent_live_are_not_sent_from_the_journal() {
    let dir = tempfile::tempdir().expect("a directory");
    let (journal, server) = (TestJournal::new(), Server::ok().await);
    let events: Arc<dyn Events> = Arc::clone(&journal) as Arc<dyn Events>;
    let setup = Setup { events: Some(events), ..Setup::of(dir.path()) };
    let rule = ", alert_relabel_configs: [{action: drop, source_labels: [alertname], regex: Not}]";
    let alertmanagers = setup.start(&at(&[server.address()], rule));
    for change in [Change::Firing, Change::Resolved] {
        journal.push(Event { is_unnamed: true, ..event(change, "Builtin", 5, 65) });
        journal.push(event(change, "Not", 5, 65));
        journal.push(event(change, "A", 5, 65));
    }
    until("all is settled", || through(dir.path()) == Some(6)).await;
    assert_eq!(bodies(&server, 0).iter().map(names).collect::<Vec<_>>(), [["A"]]);
    // A changed item takes the position over.
    apply(&alertmanagers, &at(&[server.address()], ""));
    journal.push(event(Change::Resolved, "Not", 5, 65));
    server.wait_for(2).await;
    assert_eq!(names(&server.requests()[1].body), ["Not"]);
}

#[tokio::test]
async fn what_the_journal_drops_is_given_up() {
    let dir = tempfile::tempdir().expect("a directory");
    let (journal, (server, is_up)) = (TestJournal::new(), server().await);
    let alertmanagers = start(dir.path(), &journal, &server);
    journal.fire("A", 5);
    journal.resolve("A", 5, 65);
    server.wait_for(1).await;
    journal.oldest.store(3, SeqCst);
    journal.fire("B", 70);
    journal.resolve("B", 70, 80);
    until("A is given up", || alertmanagers.statuses()[0].undelivered == 1).await;
    is_up.store(true, SeqCst);
    until("B arrives", || through(dir.path()) == Some(4)).await;
    let requests = server.requests();
    assert_eq!(names(&requests.last().expect("a request").body), ["B"]);
    assert_eq!(metric(&alertmanagers, NOT_NOTIFIED, &server.url()), Some(2.0));
}
