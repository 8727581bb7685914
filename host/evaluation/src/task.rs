//! The task of one group: waits for its slots, and has it evaluated on a thread for reads.

use crate::Shared;
use crate::append::SeriesNumbers;
use crate::restore::restore;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tidepool_lifecycle::clock::system_now_ms;
use tidepool_rules::alert::{RestoreOptions, RestoreRequest};
use tidepool_rules::clock::Trust;
use tidepool_rules::file;
use tidepool_rules::group::{Defaults, Group, GroupSnapshot, Options};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

/// Interval of checking whether the WAL has been replayed.
const READY_POLL: Duration = Duration::from_millis(20);

#[derive(Clone, Debug)]
pub struct Source {
    pub path: PathBuf,
    pub group: file::Group,
    pub defaults: Defaults,
    /// Whether its rules write samples.
    pub stores: bool,
}

impl Source {
    pub fn group(&self) -> Group {
        Group::new(&self.path, &self.group, &self.defaults)
    }
}

/// A group whose task runs.
pub struct Running {
    pub source: Source,
    /// As after the last evaluation: the group itself may be on another thread.
    snapshot: Mutex<Arc<GroupSnapshot>>,
    /// Pending and firing alerts after the last evaluation.
    alerts: AtomicUsize,
    is_stopping: AtomicBool,
    stop: watch::Sender<bool>,
}

impl Running {
    pub fn new(source: Source, group: &Group) -> Arc<Running> {
        Arc::new(Running {
            source,
            snapshot: Mutex::new(Arc::new(group.snapshot())),
            alerts: AtomicUsize::new(group.alert_count()),
            is_stopping: AtomicBool::new(false),
            stop: watch::Sender::new(false),
        })
    }

    pub fn snapshot(&self) -> Arc<GroupSnapshot> {
        Arc::clone(&self.snapshot.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Ends the task after the rule that it evaluates now.
    pub fn stop(&self) {
        self.is_stopping.store(true, Relaxed);
        self.stop.send_replace(true);
    }

    fn note(&self, group: &Group) {
        let snapshot = Arc::new(group.snapshot());
        *self.snapshot.lock().unwrap_or_else(PoisonError::into_inner) = snapshot;
        self.alerts.store(group.alert_count(), Relaxed);
    }
}

/// Starts the task of a group. It returns the group when it is stopped.
pub fn spawn(
    running: Arc<Running>,
    group: Group,
    requests: Vec<RestoreRequest>,
    shared: Arc<Shared>,
) -> JoinHandle<Group> {
    tokio::spawn(async move {
        let mut stop = running.stop.subscribe();
        let can_query = async {
            while !shared.intake.store().is_ready() {
                tokio::time::sleep(READY_POLL).await;
            }
        };
        // A group that is stopped before that was never evaluated.
        tokio::select! {
            () = can_query => {}
            _ = stop.wait_for(|stop| *stop) => return group,
        }
        let group = Some((group, SeriesNumbers::default()));
        let mut task = Task { running, shared, group, requests, is_complete: false };
        task.run(stop).await;
        task.group.map_or_else(|| task.running.source.group(), |(group, _)| group)
    })
}

struct Task {
    running: Arc<Running>,
    shared: Arc<Shared>,
    /// `None` while a thread evaluates it, and if that thread panicked.
    group: Option<(Group, SeriesNumbers)>,
    /// What is restored before the first evaluation.
    requests: Vec<RestoreRequest>,
    /// Whether the alerts are back that receivers take for firing.
    is_complete: bool,
}

impl Task {
    async fn run(&mut self, mut stop: watch::Receiver<bool>) {
        let Some(slots) = self.group.as_ref().map(|(group, _)| group.slots()) else { return };
        let mut last_ms = slots.at_or_before(system_now_ms());
        loop {
            let now_ms = system_now_ms();
            let slot_ms = slots.at_or_before(now_ms);
            // A clock that is corrected a little must not repeat a slot, and is no step back.
            let is_behind = slot_ms <= last_ms && slot_ms + slots.interval_ms() >= last_ms;
            if is_behind {
                let next_ms = last_ms + slots.interval_ms();
                let wait = Duration::from_millis((next_ms - now_ms).max(1).unsigned_abs());
                tokio::select! {
                    () = tokio::time::sleep(wait) => continue,
                    _ = stop.wait_for(|stop| *stop) => return,
                }
            }
            let turn = tokio::select! {
                turn = Arc::clone(&self.shared.turns).acquire_owned() => turn,
                _ = stop.wait_for(|stop| *stop) => return,
            };
            // Fails only if the turns are closed, which nobody does.
            let Ok(turn) = turn else { return };
            let missed = slots.missed(last_ms, slot_ms);
            self.evaluate(slot_ms, missed).await;
            drop(turn);
            last_ms = slot_ms;
            if *stop.borrow() {
                return;
            }
        }
    }

    /// Evaluates the group on a thread for reads, and waits for it.
    async fn evaluate(&mut self, slot_ms: i64, missed: u64) {
        let (group, mut numbers) = self
            .group
            .take()
            .unwrap_or_else(|| (self.running.source.group(), SeriesNumbers::default()));
        // At a wrong time, alerts could look too old to come back. Until then no samples of alerts
        // are written.
        let is_doubted = self.shared.intake.store().clock_is_doubted();
        let turn = Turn {
            slot_ms,
            missed,
            is_doubted,
            requests: if is_doubted { Vec::new() } else { std::mem::take(&mut self.requests) },
            completes: !self.is_complete && !is_doubted,
            observes: self.is_complete || !is_doubted,
        };
        self.is_complete |= turn.completes;
        let (running, shared) = (Arc::clone(&self.running), Arc::clone(&self.shared));
        let (send, receive) = oneshot::channel();
        let runtime = tokio::runtime::Handle::current();
        let started = self.shared.reading.run(move || {
            // The thread does not belong to the runtime, but the store's calls need it.
            let _entered = runtime.enter();
            // The receiver waits for as long as the task lives.
            numbers.begin();
            let group = evaluate(group, &mut numbers, &turn, &running, &shared);
            let _ = send.send((group, numbers));
        });
        if let Err(error) = started {
            tracing::error!(%error, "could not start a thread for rules");
        }
        // Without a group, the thread panicked or did not start: the next one begins anew.
        self.group = receive.await.ok();
        if self.group.is_none() {
            let source = &self.running.source;
            tracing::error!(
                file = %source.path.display(),
                group = source.group.name,
                "the evaluation of a rule group panicked; its alerts are restored from the store"
            );
            self.requests = source.group().restore_requests();
            self.is_complete = false;
        }
    }
}

/// What one evaluation is to do.
struct Turn {
    slot_ms: i64,
    /// Slots before it that were missed.
    missed: u64,
    is_doubted: bool,
    /// Alerts that come back from the store before it.
    requests: Vec<RestoreRequest>,
    /// Whether alerts come back before it that receivers take for firing.
    completes: bool,
    /// Whether receivers are told of the alerts after it.
    observes: bool,
}

fn evaluate(
    mut group: Group,
    numbers: &mut SeriesNumbers,
    turn: &Turn,
    running: &Running,
    shared: &Shared,
) -> Group {
    let runtime = tokio::runtime::Handle::current();
    let (limits, slot_ms) = (shared.limits(), turn.slot_ms);
    let mut engine = shared.engine(&runtime, &running.is_stopping, numbers, running.source.stores);
    if !turn.requests.is_empty() {
        let begun = Instant::now();
        let options = RestoreOptions {
            outage_tolerance_ms: millis(limits.outage_tolerance),
            grace_period_ms: millis(limits.grace_period),
            alerts_max: limits.alerts_max,
        };
        engine.options.lookback_ms = millis(limits.outage_tolerance).max(1);
        // At the slot, so that the first evaluation is no step back.
        restore(&mut group, &turn.requests, &engine, slot_ms, &options);
        engine.options = shared.queries.options();
        shared.figures.add_restore(&group, begun.elapsed());
    }
    if turn.completes {
        let newest_ms = shared.intake.store().newest_at_start_ms().unwrap_or(slot_ms);
        let outage_ms = *shared.outage_ms.get_or_init(|| slot_ms.saturating_sub(newest_ms));
        if outage_ms <= millis(limits.outage_tolerance) {
            let told = shared.notifier.told(group.file(), group.name());
            group.bring_back(told, slot_ms, limits.alerts_max);
        }
    }
    let options = Options {
        trust: if turn.is_doubted { Trust::Doubted } else { Trust::Trusted },
        resend_delay_ms: millis(limits.resend_delay),
        rule_alerts_max: limits.alerts_max,
        alerts_max: limits.alerts_max.saturating_mul(ALL_ALERTS_FACTOR),
        alerts_elsewhere: shared.alerts_elsewhere(running),
        timeout: shared.queries.timeout(),
        ..Options::default()
    };
    let (begun, now_ms) = (Instant::now(), system_now_ms());
    shared.figures.add_missed(&group, turn.missed);
    let report = group.evaluate(slot_ms, &mut engine, &options);
    shared.figures.add_report(&group, &report, now_ms, begun.elapsed(), engine.ended.get());
    let before = running.snapshot();
    running.note(&group);
    let after = running.snapshot();
    log_new_errors(&before, &after);
    if turn.observes {
        let is_unnamed = !running.source.stores;
        shared.notifier.observe(&after, is_unnamed);
        if !is_unnamed {
            let notices = report.rules.into_iter().map(|rule| rule.notices);
            shared.notifier.send(&after, notices);
        }
    }
    group
}

/// Logs the errors of rules that failed otherwise, or not at all, at the evaluation before.
fn log_new_errors(before: &GroupSnapshot, after: &GroupSnapshot) {
    for (before, rule) in before.rules.iter().zip(&after.rules) {
        if let Some(error) = &rule.last_error
            && before.last_error.as_ref() != Some(error)
        {
            let (file, group, rule) = (&after.file, &after.name, &rule.name);
            tracing::warn!(file, group, rule, error, "evaluating a rule failed");
        }
    }
}

/// Number of rules that may have as many alerts as a rule may have.
const ALL_ALERTS_FACTOR: usize = 10;

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

impl Shared {
    /// Number of alerts of all other groups.
    fn alerts_elsewhere(&self, running: &Running) -> usize {
        let all = self.running().iter().map(|other| other.alerts.load(Relaxed)).sum::<usize>();
        all.saturating_sub(running.alerts.load(Relaxed))
    }
}
