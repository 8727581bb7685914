//! The task that delivers the journal's events to one receiver.
//!
//! ```text
//! step (on a thread that may block): read the journal, write the position, ask what is due
//!   │ due:     deliver ─▶ answer ─▶ step
//!   └ nothing: wait for a new event, the next moment of the groups, or the stop signal ─▶ step
//! ```
//!
//! One delivery runs at a time. Nothing waits for a pump: what it has not read stays in the
//! journal.

#[cfg(test)]
mod tests;
mod work;

use super::figures::{PumpFigures, PumpStatus};
use super::groups::Due;
use super::position::Positions;
use super::terms::Terms;
use super::{Moment, groups};
use crate::event::{Cause, Change, Entry, Event, Origin};
use crate::journal::Journal;
use crate::notification::{Notification, Reason};
use crate::receivers::{Answered, DeliveryError, Receiver};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::time::Duration;
use tidepool_lifecycle::shutdown::Shutdown;
use tidepool_rules::file::Labels;
use tidepool_rules::labels::{ALERT_NAME, LabelSet};
use tokio::task::{JoinError, spawn_blocking};
use tokio::time::{Instant, sleep_until, timeout};
use work::{Step, Work};

/// How long a delivery may go on after the stop signal. One that is given up is repeated after the
/// next start.
const STOP_GRACE: Duration = Duration::from_secs(3);

/// Pause after a bug has ended a step.
const BUG_PAUSE: Duration = Duration::from_secs(30);

/// Longest sleep, so that the end of a sleep can be computed.
const SLEEP_MAX: Duration = Duration::from_secs(3_600);

pub const TEST_ALERT_NAME: &str = "TidepoolTest";

/// What a pump works with.
pub struct PumpParts {
    pub terms: Terms,
    pub receiver: Arc<dyn Receiver>,
    pub journal: Journal,
    pub positions: Positions,
    /// Whether a silence matches an alert with these labels now.
    pub is_silenced: Arc<dyn Fn(&LabelSet) -> bool + Send + Sync>,
    /// The time since the epoch, in milliseconds.
    pub now_ms: Arc<dyn Fn() -> i64 + Send + Sync>,
    pub figures: PumpFigures,
}

/// Clones are the same pump. Only one of them may run, and no other pump of this receiver's name.
#[derive(Clone)]
pub struct Pump(Arc<Parts>);

struct Parts {
    terms: Arc<Terms>,
    receiver: Arc<dyn Receiver>,
    journal: Journal,
    positions: Positions,
    is_silenced: Arc<dyn Fn(&LabelSet) -> bool + Send + Sync>,
    now_ms: Arc<dyn Fn() -> i64 + Send + Sync>,
    figures: PumpFigures,
    started: Instant,
}

enum Outcome {
    /// With the number of alerts in what was delivered.
    Accepted(usize),
    Refused(String),
    Failed(String, Option<Duration>),
}

impl Pump {
    pub fn new(parts: PumpParts) -> Pump {
        let PumpParts { terms, receiver, journal, positions, is_silenced, now_ms, figures } = parts;
        let (terms, started) = (Arc::new(terms), Instant::now());
        Pump(Arc::new(Parts {
            terms,
            receiver,
            journal,
            positions,
            is_silenced,
            now_ms,
            figures,
            started,
        }))
    }

    pub fn status(&self) -> PumpStatus {
        self.0.figures.status()
    }

    /// Delivers a made-up alert, past journal, groups and silences.
    pub async fn test(&self) -> Result<Answered, DeliveryError> {
        self.0.deliver(&self.0.test_notification()).await
    }

    /// Delivers until the stop signal. The position is on disk when this returns.
    pub async fn run(self, mut shutdown: Shutdown) {
        let receiver = self.0.terms.name.as_str();
        while let Err(error) = self.attend(&mut shutdown).await {
            tracing::error!(receiver, %error, "delivery failed by a bug; it starts again");
            tokio::select! {
                () = shutdown.wait() => return,
                () = tokio::time::sleep(BUG_PAUSE) => {}
            }
        }
    }

    async fn attend(&self, shutdown: &mut Shutdown) -> Result<(), JoinError> {
        let (mut newest, mut durable) = (self.0.journal.newest(), self.0.journal.durable());
        let parts = self.0.clone();
        let mut work = spawn_blocking(move || Work::open(&parts)).await?;
        loop {
            newest.borrow_and_update();
            durable.borrow_and_update();
            let parts = self.0.clone();
            let (stepped, step) = spawn_blocking(move || {
                let step = work.step(&parts);
                (work, step)
            })
            .await?;
            work = stepped;
            let is_stopping = match step {
                Step::Deliver(due) => match self.deliver(&due, shutdown).await {
                    (Some(outcome), is_stopping) => {
                        self.answer(&mut work, due, outcome);
                        is_stopping
                    }
                    (None, is_stopping) => is_stopping,
                },
                Step::Wait(until) => {
                    let until = until.map(|at| at.min(self.0.moment().at + SLEEP_MAX));
                    tokio::select! {
                        () = shutdown.wait() => true,
                        changed = newest.changed() => match changed {
                            Ok(()) => false,
                            // No event will follow. What is due by time still is.
                            Err(_) => self.sleep(until, shutdown).await,
                        },
                        Ok(()) = durable.changed() => false,
                        is_stopping = self.sleep_only(until) => is_stopping,
                    }
                }
            };
            if is_stopping {
                let parts = self.0.clone();
                return spawn_blocking(move || work.close(&parts)).await;
            }
        }
    }

    /// Sleeps until a moment of this pump, or for ever; returns whether the stop signal came.
    async fn sleep(&self, until: Option<Duration>, shutdown: &mut Shutdown) -> bool {
        tokio::select! {
            () = shutdown.wait() => true,
            is_stopping = self.sleep_only(until) => is_stopping,
        }
    }

    async fn sleep_only(&self, until: Option<Duration>) -> bool {
        match until {
            Some(until) => sleep_until(self.0.started + until).await,
            None => std::future::pending().await,
        }
        false
    }

    /// Returns the outcome, unless the stop signal ended the wait for it, and whether the signal
    /// came.
    async fn deliver(&self, due: &Due, shutdown: &mut Shutdown) -> (Option<Outcome>, bool) {
        let answer = self.0.deliver(&due.notification);
        tokio::pin!(answer);
        let (answer, is_stopping) = tokio::select! {
            biased;
            () = shutdown.wait() => (timeout(STOP_GRACE, &mut answer).await.ok(), true),
            answer = &mut answer => (Some(answer), false),
        };
        let outcome = answer.map(|answer| match answer {
            Ok(answered) => Outcome::Accepted(answered.alerts),
            Err(error) if error.is_refusal() => Outcome::Refused(error.to_string()),
            Err(error) => Outcome::Failed(error.to_string(), error.retry_after()),
        });
        (outcome, is_stopping)
    }

    fn answer(&self, work: &mut Work, due: Due, outcome: Outcome) {
        let (moment, receiver) = (self.0.moment(), self.0.terms.name.as_str());
        let group = due.notification.group_key.clone();
        let before = work.groups.failing();
        // Random keys of hashes are the only random numbers of the standard library.
        let dice = RandomState::new().hash_one(moment.at) as u32;
        match outcome {
            Outcome::Accepted(alerts) => {
                work.groups.accepted(due, alerts, moment);
                self.0.figures.update(|status| status.succeeded_ms = Some(moment.wall_ms));
            }
            Outcome::Refused(error) => work.groups.refused(due, error, moment, dice),
            Outcome::Failed(error, after) => work.groups.failed(due, error, after, moment, dice),
        }
        // The first of a row of equal failures is enough, and its end.
        match (before, work.groups.failing()) {
            (None, Some(failing)) => tracing::warn!(
                receiver,
                group,
                error = failing.error,
                is_refusal = failing.is_refusal,
                "notification not accepted; it is tried again until it is"
            ),
            (Some(before), Some(failing)) if before.error != failing.error => tracing::warn!(
                receiver,
                group,
                error = failing.error,
                is_refusal = failing.is_refusal,
                since_ms = failing.since_ms,
                "notification still not accepted"
            ),
            (Some(before), None) => {
                tracing::info!(
                    receiver,
                    since_ms = before.since_ms,
                    "notifications are accepted again"
                );
            }
            _ => {}
        }
    }
}

impl Parts {
    async fn deliver(&self, notification: &Notification) -> Result<Answered, DeliveryError> {
        let deadline = self.terms.deadline;
        let answer = timeout(deadline, self.receiver.deliver(notification)).await;
        answer.unwrap_or(Err(DeliveryError::Timeout(deadline)))
    }

    fn moment(&self) -> Moment {
        Moment { at: self.started.elapsed(), wall_ms: (self.now_ms)() }
    }

    fn test_notification(&self) -> Notification {
        let now_ms = (self.now_ms)();
        let text = format!("Test notification of tidepool for the receiver {}", self.terms.name);
        let event = Event {
            change: Change::Firing,
            time_ms: now_ms,
            origin: Origin { file: "".into(), group: "".into() },
            labels: LabelSet::new([(ALERT_NAME, TEST_ALERT_NAME)]),
            annotations: Arc::new(Labels::from([("summary".to_owned(), text)])),
            value: 1.0,
            fired_at_ms: now_ms,
            cause: Cause::Evaluation,
            is_unnamed: false,
        };
        let group = self.terms.group_of(&event.labels);
        let alert = groups::alert(&self.terms, &Entry { number: 0, event });
        Notification {
            receiver: self.terms.name.clone(),
            reason: Reason::Test,
            group_key: self.terms.group_key(&group),
            group_labels: group.to_map(),
            external_url: self.terms.links.external_url.clone(),
            alerts: vec![crate::notification::NotifiedAlert { is_news: true, ..alert }],
            truncated_alerts: 0,
        }
    }
}
