//! The part of a pump that blocks: journal, silences, position file.

use super::super::groups::{Due, Groups, Known, Progress};
use super::super::position::{Found, Position};
use super::{Moment, Parts};
use crate::journal::Item;
use std::time::Duration;
use tidepool_rules::labels::LabelSet;

/// Time between two writes of the position after a delivery, to spare the flash: what was delivered
/// since the last one is delivered again after a crash.
const WRITE_EVERY: Duration = Duration::from_secs(10);

/// The same if it has only moved over events for other receivers, to spare the flash.
const WRITE_PASSED_EVERY: Duration = Duration::from_secs(60);

/// The same after a failed write.
const WRITE_AGAIN: Duration = Duration::from_secs(10);

/// Maximum wait for events to be synced. A disk that hangs holds no notification up for longer.
const SYNC_WAIT: Duration = Duration::from_secs(5);

/// Time between two log lines about dropped events.
const LOG_EVERY: Duration = Duration::from_secs(60);

/// Time between two counts of what is undelivered while there is always something to deliver.
const COUNT_EVERY: Duration = Duration::from_secs(1);

pub struct Work {
    pub groups: Groups,
    /// On disk; `None` before the first write.
    saved: Option<Position>,
    saved_at: Duration,
    is_unwritten: bool,
    counted_at: Duration,
    /// Since when there are events that are not synced.
    unsynced_since: Option<Duration>,
    /// Dropped events that no log line has told of.
    unlogged: u64,
    logged_at: Option<Duration>,
}

pub enum Step {
    Deliver(Due),
    /// Nothing to do before this moment, or before a new event.
    Wait(Option<Duration>),
}

impl Work {
    /// Reads position and journal. A new receiver's position is written at once: without it, a
    /// restart would take what happens from now on for history.
    pub fn open(parts: &Parts) -> Work {
        let (moment, receiver) = (parts.moment(), parts.terms.name.as_str());
        let found = parts.positions.load(receiver);
        let saved = match &found {
            Found::Position(position) => Some(position.clone()),
            Found::Nothing | Found::Damaged => None,
        };
        if found == Found::Damaged {
            parts.figures.update(|status| status.damaged_positions_total += 1);
        }
        let known = saved.clone().map_or(Known::AllButFiring, Known::Position);
        let mut work = Work {
            groups: Groups::new(parts.terms.clone()),
            saved,
            saved_at: moment.at,
            is_unwritten: false,
            counted_at: moment.at,
            unsynced_since: None,
            unlogged: 0,
            logged_at: None,
        };
        work.take_in(parts, known, moment);
        if work.saved.is_none() {
            work.save(parts, moment);
        }
        work
    }

    pub fn step(&mut self, parts: &Parts) -> Step {
        let moment = parts.moment();
        self.groups.drop_before(parts.journal.oldest());
        if *parts.journal.newest().borrow() > self.groups.read() {
            self.take_in(parts, Known::Read, moment);
        }
        if self.save_at().is_some_and(|at| at <= moment.at) {
            self.save(parts, moment);
        }
        if let Some(until) = self.sync_until(parts, moment) {
            self.count(parts, moment, true);
            return Step::Wait([Some(until), self.save_at()].into_iter().flatten().min());
        }
        let is_silenced = |labels: &LabelSet| (parts.is_silenced)(&parts.terms.labels_of(labels));
        let due = self.groups.next(moment, &is_silenced);
        self.count(parts, moment, due.is_none());
        match due {
            Some(due) => Step::Deliver(due),
            None => {
                let wakes = [self.groups.wake(moment), self.save_at()];
                Step::Wait(wakes.into_iter().flatten().min())
            }
        }
    }

    /// Returns until when to wait for events that were read and are not synced.
    fn sync_until(&mut self, parts: &Parts, moment: Moment) -> Option<Duration> {
        if *parts.journal.durable().borrow() >= self.groups.read() {
            self.unsynced_since = None;
            return None;
        }
        let until = *self.unsynced_since.get_or_insert(moment.at) + SYNC_WAIT;
        (until > moment.at).then_some(until)
    }

    /// Writes the position for the last time.
    pub fn close(mut self, parts: &Parts) {
        let moment = parts.moment();
        self.save(parts, moment);
        self.count(parts, moment, true);
    }

    fn take_in(&mut self, parts: &Parts, known: Known, moment: Moment) {
        // Before the scan, in which more may be dropped: then it is counted the next time.
        let oldest = parts.journal.oldest();
        let from = match known {
            Known::Read => self.groups.read() + 1,
            Known::AllButFiring | Known::Position(_) => 0,
        };
        let mut intake = self.groups.take_in(known, oldest, moment);
        parts.journal.scan(from, &mut |item| match item {
            Item::Open(entry) => intake.open(entry),
            Item::Event(entry) => intake.event(entry),
        });
        intake.finish();
    }

    /// Returns when the position is to be written; `None` if it has not moved.
    fn save_at(&self) -> Option<Duration> {
        let every = match self.groups.progress() {
            _ if self.is_unwritten => WRITE_AGAIN,
            Progress::None => return None,
            Progress::Passed => WRITE_PASSED_EVERY,
            Progress::Done => WRITE_EVERY,
        };
        Some(self.saved_at + every)
    }

    fn save(&mut self, parts: &Parts, moment: Moment) {
        let receiver = parts.terms.name.as_str();
        let position = self.groups.position();
        self.groups.take_progress();
        self.saved_at = moment.at;
        if self.saved.as_ref() == Some(&position) {
            self.is_unwritten = false;
            return;
        }
        match parts.positions.store(receiver, &position) {
            Ok(()) => {
                if self.is_unwritten {
                    tracing::info!(receiver, "the position can be written again");
                }
                (self.saved, self.is_unwritten) = (Some(position), false);
            }
            Err(error) => {
                if !self.is_unwritten {
                    tracing::error!(receiver, %error, "position not written");
                }
                self.is_unwritten = true;
            }
        }
    }

    /// Publishes totals, and from time to time or if `is_idle` what must be counted.
    fn count(&mut self, parts: &Parts, moment: Moment, is_idle: bool) {
        let totals = self.groups.take_totals();
        self.unlogged += totals.dropped;
        let is_due = is_idle || moment.at >= self.counted_at + COUNT_EVERY;
        let backlog = is_due.then(|| self.groups.backlog(moment));
        parts.figures.update(|status| {
            status.totals.add(totals);
            status.is_position_unwritten = self.is_unwritten;
            if let Some(backlog) = backlog {
                status.undelivered = backlog.undelivered;
                status.oldest_undelivered_ms = backlog.oldest_undelivered_ms;
                status.waiting = backlog.waiting;
                status.muted = backlog.muted;
                status.failing = backlog.failing;
                self.counted_at = moment.at;
            }
        });
        let may_log = self.logged_at.is_none_or(|at| moment.at >= at + LOG_EVERY);
        if self.unlogged > 0 && may_log {
            let (receiver, events) = (parts.terms.name.as_str(), self.unlogged);
            tracing::warn!(
                receiver,
                events,
                "the limits of the alert journal dropped events before they were delivered"
            );
            (self.unlogged, self.logged_at) = (0, Some(moment.at));
        }
    }
}
