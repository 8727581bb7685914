//! Decides what to deliver, and when: a state machine without clock, disk and network.
//!
//! ```text
//! Intake: entries of the journal ──▶ Groups ──▶ next() ─▶ Due (a notification)
//!                                      ▲  └───▶ wake(): when to ask again
//!                                      └────── accepted() / refused() / failed()
//!
//! group: due after group_wait ──▶ flush ──▶ due again after group_interval, until it is empty
//!                                   │ news?    notification; what it did not hold follows at once
//!                                   └ no news: after repeat_interval, a repetition
//! ```
//!
//! An alert has at most one *current* beginning, which is delivered or muted, and a queue of
//! undelivered events. Only the first event of a queue goes into a notification.
//!
//! Invariants: `undelivered` has exactly the numbers in the queues; `muted` has exactly those of
//! current beginnings that are muted; each group is in the schedule once.

mod group;
mod intake;
mod notice;
#[cfg(test)]
mod tests;

pub use intake::{Intake, Known};
pub(super) use notice::alert;
pub use notice::{ALERTS_MAX, BYTES_MAX};

use super::Moment;
use super::backoff::Backoff;
use super::figures::{Failing, Totals};
use super::position::Position;
use super::terms::Terms;
use crate::notification::{Notification, Reason};
use group::{AlertKey, Group};
use notice::Chosen;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;
use tidepool_rules::labels::LabelSet;

/// Whether a silence matches an alert now.
pub type IsSilenced<'s> = &'s (dyn Fn(&LabelSet) -> bool + 's);

pub struct Groups {
    terms: Arc<Terms>,
    /// By their labels.
    groups: HashMap<LabelSet, Group>,
    schedule: BTreeSet<(Duration, LabelSet)>,
    ledger: Ledger,
    /// After a failure of the receiver.
    retry_at: Option<Duration>,
    backoff: Backoff,
    failing: Option<Failing>,
}

/// What the position and the figures are made of.
#[derive(Default)]
struct Ledger {
    /// Number of the last entry that was read.
    read: u64,
    /// Number of the oldest event of the journal, when it was last seen.
    oldest: u64,
    undelivered: BTreeSet<u64>,
    muted: BTreeSet<u64>,
    totals: Totals,
    progress: Progress,
}

/// How much the position has moved since the last time it was taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Progress {
    #[default]
    None,
    /// Over events that are not for this receiver: a restart reads them again, and nothing else.
    Passed,
    /// A restart from the older position would deliver something again.
    Done,
}

/// A notification to deliver now. It must be answered before the next one is asked for.
#[derive(Debug)]
pub struct Due {
    pub notification: Arc<Notification>,
    group: LabelSet,
    /// Alerts with the number of the event that is news.
    news: Vec<(AlertKey, u64)>,
    flushed_at: Duration,
    /// Whether it has alerts that are no news.
    has_context: bool,
    has_more: bool,
}

/// What cannot be known from totals: see [`super::PumpStatus`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Backlog {
    pub undelivered: u64,
    pub oldest_undelivered_ms: Option<i64>,
    pub waiting: u64,
    pub muted: u64,
    pub failing: Option<Failing>,
}

impl Groups {
    pub fn new(terms: Arc<Terms>) -> Groups {
        Groups {
            terms,
            groups: HashMap::new(),
            schedule: BTreeSet::new(),
            ledger: Ledger::default(),
            retry_at: None,
            backoff: Backoff::default(),
            failing: None,
        }
    }

    /// Number of the last entry that was read.
    pub fn read(&self) -> u64 {
        self.ledger.read
    }

    pub fn position(&self) -> Position {
        let Ledger { read, undelivered, muted, .. } = &self.ledger;
        Position::without(undelivered.iter().copied(), *read, muted.iter().copied())
    }

    pub fn progress(&self) -> Progress {
        self.ledger.progress
    }

    pub fn take_progress(&mut self) -> Progress {
        std::mem::take(&mut self.ledger.progress)
    }

    /// Takes what was counted since the last time.
    pub fn take_totals(&mut self) -> Totals {
        std::mem::take(&mut self.ledger.totals)
    }

    /// Returns the next notification that is due. Mutes what is due and silenced.
    pub fn next(&mut self, moment: Moment, is_silenced: IsSilenced<'_>) -> Option<Due> {
        if self.retry_at.is_some_and(|at| at > moment.at) {
            return None;
        }
        loop {
            let (due_at, key) = self.schedule.first()?;
            if *due_at > moment.at {
                return None;
            }
            let key = key.clone();
            let due = self.flush(&key, moment, is_silenced);
            if due.is_some() {
                return due;
            }
            if let Some(group) = self.groups.get_mut(&key) {
                // What the receiver refused is over, or silenced.
                group.well();
            }
            self.reschedule_or_retry(&key, moment.at + self.terms.tick(), moment.at);
        }
    }

    /// Returns when the answer of [`Groups::next`], or of [`Groups::backlog`], changes.
    pub fn wake(&self, moment: Moment) -> Option<Duration> {
        let later = (moment.at + Duration::from_nanos(1), LabelSet::default());
        match self.retry_at.filter(|at| *at > moment.at) {
            None => self.schedule.first().map(|(at, _)| *at),
            Some(retry_at) => {
                let next = self.schedule.range(later..).next().map_or(retry_at, |(at, _)| *at);
                Some(next.min(retry_at))
            }
        }
    }

    /// The receiver has accepted the first `alerts` of a notification; the others follow at once.
    pub fn accepted(&mut self, due: Due, alerts: usize, moment: Moment) {
        let Some(group) = self.groups.get_mut(&due.group) else { return };
        // News are first. A notification of nothing would be sent for ever.
        let delivered = alerts.max(1).min(due.news.len());
        for (key, number) in &due.news[..delivered] {
            group.delivered(key, *number, &mut self.ledger);
        }
        group.tidy();
        self.ledger.totals.sent += 1;
        self.ledger.totals.delivered += delivered as u64;
        group.repeat_at = due.flushed_at + self.terms.grouping.repeat;
        group.well();
        self.reachable();
        let next = match due.has_more || delivered < due.news.len() {
            true => moment.at,
            false => due.flushed_at + self.terms.tick(),
        };
        self.reschedule_or_retry(&due.group, next, moment.at);
    }

    /// The receiver does not want this notification: its group goes on with a half of it, and at
    /// last without the alert that is refused alone. Other groups do not wait.
    pub fn refused(&mut self, due: Due, error: String, moment: Moment, dice: u32) {
        self.ledger.totals.failed += 1;
        self.reachable();
        let Some(group) = self.groups.get_mut(&due.group) else { return };
        if due.news.len() > 1 || due.has_context && !due.news.is_empty() {
            group.news_max = Some((due.news.len() / 2).max(1));
            self.reschedule(&due.group, moment.at);
            return;
        }
        let failing = Failing { since_ms: moment.wall_ms, error, is_refusal: true };
        if let [(key, number)] = due.news.as_slice() {
            group.refused(key, *number, failing.clone(), moment.at, dice);
            if !group.has_others(key, moment.at) {
                group.well();
                let next = due.flushed_at + self.terms.tick();
                return self.reschedule_or_retry(&due.group, next, moment.at);
            }
        }
        // A repetition, or perhaps one of many: a receiver that refuses everything is asked ever
        // less.
        let since_ms = group.held.as_ref().map_or(failing.since_ms, |held| held.since_ms);
        group.held = Some(Failing { since_ms, ..failing });
        let pause = group.backoff.pause(None, dice);
        self.reschedule(&due.group, moment.at + pause);
    }

    /// The receiver could not be reached, or is not well: everything waits.
    pub fn failed(
        &mut self,
        due: Due,
        error: String,
        retry_after: Option<Duration>,
        moment: Moment,
        dice: u32,
    ) {
        // The group stays due.
        drop(due);
        self.ledger.totals.failed += 1;
        let since_ms = self.failing.as_ref().map_or(moment.wall_ms, |failing| failing.since_ms);
        self.failing = Some(Failing { since_ms, error, is_refusal: false });
        self.retry_at = Some(moment.at + self.backoff.pause(retry_after, dice));
    }

    pub fn backlog(&self, moment: Moment) -> Backlog {
        let muted = self.ledger.muted.len() as u64;
        let mut backlog = Backlog { muted, failing: self.failing(), ..Backlog::default() };
        for group in self.groups.values() {
            let is_waiting = group.held.is_none() && group.due_at > moment.at;
            for alert in group.alerts.values() {
                if is_waiting && alert.refused_until().is_none() {
                    backlog.waiting += alert.queue.len() as u64;
                    continue;
                }
                for entry in &alert.queue {
                    backlog.undelivered += 1;
                    let oldest = backlog.oldest_undelivered_ms.get_or_insert(entry.event.time_ms);
                    *oldest = entry.event.time_ms.min(*oldest);
                }
            }
        }
        backlog
    }

    /// Returns the failure of the receiver, or else the oldest refusal.
    pub fn failing(&self) -> Option<Failing> {
        let refusals = |group: &'_ Group| {
            group
                .held
                .iter()
                .chain(group.refusals())
                .cloned()
                .min_by_key(|refusal| refusal.since_ms)
        };
        let refusal =
            || self.groups.values().filter_map(refusals).min_by_key(|refusal| refusal.since_ms);
        self.failing.clone().or_else(refusal)
    }

    /// Drops the undelivered events that the journal has dropped.
    pub fn drop_before(&mut self, oldest: u64) {
        if oldest <= self.ledger.oldest {
            return;
        }
        self.ledger.oldest = oldest;
        // An alert whose beginning was dropped, and its end not, is kept by the journal as open.
        self.drop_ended_before(oldest, &|_| true);
    }

    fn drop_ended_before(&mut self, oldest: u64, is_open: &dyn Fn(u64) -> bool) {
        for group in self.groups.values_mut() {
            group.drop_ended_before(oldest, is_open, &mut self.ledger);
        }
    }

    fn reachable(&mut self) {
        (self.retry_at, self.backoff, self.failing) = (None, Backoff::default(), None);
    }

    /// Makes the notification of a group, if there is one.
    fn flush(
        &mut self,
        key: &LabelSet,
        moment: Moment,
        is_silenced: IsSilenced<'_>,
    ) -> Option<Due> {
        let group = self.groups.get_mut(key)?;
        group.settle(&self.terms, is_silenced, &mut self.ledger);
        let is_repeat = moment.at >= group.repeat_at;
        let chosen = Chosen::of(group, moment.at, is_repeat, is_silenced);
        let reason = match chosen.reason(group) {
            Some(reason) => reason,
            None if is_repeat && !chosen.context.is_empty() => Reason::Repeat,
            None => return None,
        };
        let notification = chosen.notification(&self.terms, key, reason, moment.wall_ms);
        Some(Due {
            notification: Arc::new(notification),
            group: key.clone(),
            has_context: !chosen.context.is_empty(),
            has_more: chosen.has_more,
            news: chosen.news.iter().map(|news| (news.key.clone(), news.entry.number)).collect(),
            flushed_at: moment.at,
        })
    }

    /// As [`Groups::reschedule`], or earlier if an alert that was refused is to be tried again.
    fn reschedule_or_retry(&mut self, key: &LabelSet, at: Duration, now: Duration) {
        let retry_at = self.groups.get(key).and_then(|group| group.retry_at(now));
        self.reschedule(key, retry_at.map_or(at, |retry_at| retry_at.min(at)));
    }

    /// Sets when a group is looked at again; an empty one is removed.
    fn reschedule(&mut self, key: &LabelSet, at: Duration) {
        let Some(group) = self.groups.get_mut(key) else { return };
        let before = (group.due_at, key.clone());
        self.schedule.remove(&before);
        match group.is_empty() {
            true => drop(self.groups.remove(key)),
            false => {
                group.due_at = at;
                self.schedule.insert((at, before.1));
            }
        }
    }
}

impl Ledger {
    /// An event is done.
    fn done(&mut self, number: u64) {
        self.undelivered.remove(&number);
        self.progress = Progress::Done;
    }

    /// A beginning is muted no more: delivered, or ended.
    fn unmute(&mut self, number: u64) {
        if self.muted.remove(&number) {
            self.progress = Progress::Done;
        }
    }
}
