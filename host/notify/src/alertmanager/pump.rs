//! Sends the ends of alerts from the journal, for those that were not accepted live.
//!
//! An alert that resolves is sent live for some minutes only. If Alertmanager cannot be reached for
//! longer, its end is sent from the journal, with its true times. Alerts that fire need no journal:
//! they are sent live again each minute.

use super::alert::{Alert, AlertKey};
use super::endpoint::Endpoint;
use super::journal::Events;
use super::ledger::{Ledger, Noted, Position};
use super::position::PositionFile;
use crate::event::Change;
use std::collections::BTreeSet;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep_until};

/// Waits of a pump.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// How long an end may take to be accepted live before it is sent from the journal.
    pub grace: Duration,
    /// Pause after the first failure. It doubles with each further failure, up to `retry_max`.
    pub retry_min: Duration,
    pub retry_max: Duration,
    /// Shortest time between two writes of the position.
    pub write: Duration,
    /// The same after a failed write.
    pub rewrite: Duration,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace {
            grace: Duration::from_secs(30),
            retry_min: Duration::from_secs(1),
            retry_max: Duration::from_secs(300),
            write: Duration::from_secs(1),
            rewrite: Duration::from_secs(60),
        }
    }
}

/// The pump of one URL. At any time, one endpoint of that URL runs it.
pub(super) struct Pump {
    events: Arc<dyn Events>,
    newest: watch::Receiver<u64>,
    file: PositionFile,
    pace: Pace,
    /// `None` until the position is read.
    ledger: Option<Ledger>,
    /// The position in the file or, without one that can be used, that of the start.
    written: Position,
    has_file: bool,
    /// Earliest time of the next write.
    write_at: Instant,
    /// Whether the last write failed.
    is_unwritten: bool,
    /// Number of failed posts since the last that was accepted.
    failures: u32,
    /// Earliest time of the next post.
    retry_at: Instant,
}

impl Pump {
    pub fn new(events: Arc<dyn Events>, file: PositionFile, pace: Pace) -> Pump {
        let (now, newest) = (Instant::now(), events.newest());
        let start = *newest.borrow();
        Pump {
            events,
            newest,
            file,
            pace,
            ledger: None,
            // Until the file is read: one without a file starts at the newest event.
            written: Position { through: start, beyond: BTreeSet::new() },
            has_file: false,
            write_at: now,
            is_unwritten: false,
            failures: 0,
            retry_at: now,
        }
    }

    /// Waits until there is work. May be dropped at any time.
    pub async fn wait(&mut self) {
        let Some(ledger) = &self.ledger else { return };
        let post_at = ledger.next_due_at().map(|at| at.max(self.retry_at));
        let write_at = self.unwritten_position().map(|_| self.write_at);
        let at = [post_at, write_at].into_iter().flatten().min();
        tokio::select! {
            changed = self.newest.changed() => {
                if changed.is_err() {
                    // The journal has ended, and what is left can still be sent.
                    wait_until(at).await;
                }
            }
            () = wait_until(at) => {}
        }
    }

    /// Does the work that is due: reads, posts, writes the position.
    pub async fn work(&mut self, endpoint: &Arc<Endpoint>) {
        if self.ledger.is_none() {
            self.load().await;
        }
        self.read(endpoint).await;
        self.post(endpoint).await;
        self.write(endpoint, false).await;
    }

    /// Has ends sent at once: live alerts have just been accepted.
    pub fn is_reachable(&mut self) {
        (self.failures, self.retry_at) = (0, Instant::now());
    }

    async fn load(&mut self) {
        let file = self.file.clone();
        let read = spawn_blocking(move || file.read()).await;
        let newest = *self.newest.borrow();
        match read {
            Ok(Ok(Some(position))) if position.through <= newest => {
                (self.written, self.has_file) = (position, true);
            }
            Ok(Err(error)) => tracing::warn!(
                %error,
                "the position of an Alertmanager cannot be used: ends of alerts from before this \
                 start are not sent"
            ),
            // No file, the journal of another directory, or the end of the program.
            Ok(Ok(_)) | Err(_) => {}
        }
        // So that events that are there already are read, too.
        self.newest.mark_changed();
        self.ledger = Some(Ledger::new(self.written.clone()));
    }

    /// Reads new events, and settles what was accepted or dropped.
    async fn read(&mut self, endpoint: &Arc<Endpoint>) {
        let Some(ledger) = &mut self.ledger else { return };
        let newest = *self.newest.borrow_and_update();
        let mut not_notified = 0;
        if newest > ledger.read_to() {
            let (events, from) = (Arc::clone(&self.events), ledger.read_to() + 1);
            let relabels = Arc::clone(endpoint);
            let scanned = spawn_blocking(move || {
                let (mut noted, mut read_to) = (Vec::new(), newest);
                events.scan(from, &mut |entry| {
                    if entry.number < from {
                        return;
                    }
                    read_to = read_to.max(entry.number);
                    let event = &entry.event;
                    // Alerts of rules that nobody named are not sent live either.
                    if event.is_unnamed || relabels.relabeled(Alert::of_event(event)).is_none() {
                        return;
                    }
                    noted.push(Noted {
                        number: entry.number,
                        change: event.change,
                        key: AlertKey::of(&event.labels),
                        fired_at_ms: event.fired_at_ms,
                        time_ms: event.time_ms,
                    });
                });
                (noted, read_to)
            });
            if let Ok((noted, read_to)) = scanned.await {
                not_notified += ledger.note(noted, read_to, Instant::now() + self.pace.grace);
            }
        }
        not_notified += endpoint.peer().with_accepted(|accepted| ledger.settle_accepted(accepted));
        let (dropped, unheard) = ledger.drop_before(self.events.oldest());
        if dropped > 0 {
            tracing::warn!(
                alertmanager = endpoint.peer().url(),
                dropped,
                "the journal has dropped ends of alerts that this Alertmanager was not told of"
            );
        }
        endpoint.peer().figures.not_notified.fetch_add(not_notified + unheard, Relaxed);
        endpoint.peer().report_undelivered(ledger.ends(), ledger.oldest_end_ms());
    }

    /// Posts ends that are due, at most one batch.
    async fn post(&mut self, endpoint: &Arc<Endpoint>) {
        let Some(ledger) = &mut self.ledger else { return };
        let now = Instant::now();
        let due = ledger.due(now, endpoint.batch_size());
        let (Some(first), true) = (due.first().copied(), self.retry_at <= now) else { return };
        let wanted: BTreeSet<u64> = due.iter().copied().collect();
        let (events, relabels) = (Arc::clone(&self.events), Arc::clone(endpoint));
        let alerts = spawn_blocking(move || {
            let mut alerts = Vec::with_capacity(wanted.len());
            events.scan(first, &mut |entry| {
                if wanted.contains(&entry.number) && entry.event.change == Change::Resolved {
                    alerts.extend(relabels.relabeled(Alert::of_event(&entry.event)));
                }
            });
            alerts
        });
        let Ok(alerts) = alerts.await else { return };
        // Nothing is left if the rules were changed meanwhile, or the journal dropped the events.
        let posted = match alerts.is_empty() {
            true => Ok(()),
            false => endpoint.post(&alerts).await,
        };
        match posted {
            Err(error) if !error.is_refusal() => {
                let pause = self.pace.retry_min.saturating_mul(1 << self.failures.min(20));
                let pause = pause.min(self.pace.retry_max);
                // Up to a half less, so that nodes do not return all at once after an outage.
                let share = RandomState::new().hash_one(self.failures) % 512;
                self.retry_at = Instant::now() + pause.mul_f64(1.0 - share as f64 / 1024.0);
                self.failures = self.failures.saturating_add(1);
            }
            posted => {
                if posted.is_err() {
                    endpoint.peer().figures.dropped.fetch_add(alerts.len() as u64, Relaxed);
                }
                (self.failures, self.retry_at) = (0, Instant::now());
                let not_notified = ledger.settle_ends(&due);
                endpoint.peer().figures.not_notified.fetch_add(not_notified, Relaxed);
                endpoint.peer().report_undelivered(ledger.ends(), ledger.oldest_end_ms());
            }
        }
    }

    /// Returns the position if it has to be written. Without events, there is no file.
    fn unwritten_position(&mut self) -> Option<Position> {
        let ledger = self.ledger.as_mut()?;
        let position = ledger.position();
        let is_first = !self.has_file && ledger.read_to() > self.written.through;
        (is_first || position != self.written).then_some(position)
    }

    /// Writes the position if it has moved; not too often, unless it is the last time.
    pub async fn write(&mut self, endpoint: &Arc<Endpoint>, is_last: bool) {
        let Some(position) = self.unwritten_position() else { return };
        if !is_last && self.write_at > Instant::now() {
            return;
        }
        let (file, is_first) = (self.file.clone(), !self.has_file);
        let (content, live) = (position.clone(), endpoint.urls());
        let written = spawn_blocking(move || {
            if is_first {
                file.make_room(&live);
            }
            file.write(&content)
        });
        let Ok(written) = written.await else { return };
        let url = endpoint.peer().url();
        match written {
            Ok(()) => {
                if std::mem::take(&mut self.is_unwritten) {
                    tracing::info!(alertmanager = url, "the position can be written again");
                }
                (self.written, self.has_file) = (position, true);
                self.write_at = Instant::now() + self.pace.write;
            }
            Err(error) => {
                if !std::mem::replace(&mut self.is_unwritten, true) {
                    tracing::error!(
                        alertmanager = url, %error,
                        "cannot write the position of an Alertmanager; sending continues, and a \
                         restart would send ends of alerts again"
                    );
                }
                self.write_at = Instant::now() + self.pace.rewrite;
            }
        }
    }
}

/// Waits until a time, or for ever without one.
async fn wait_until(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}
