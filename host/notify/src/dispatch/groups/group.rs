//! A group: its alerts, and when it is looked at.

use super::super::backoff::Backoff;
use super::super::figures::Failing;
use super::super::terms::Terms;
use super::{IsSilenced, Ledger};
use crate::event::{Change, Entry, Event, Origin};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use tidepool_rules::labels::LabelSet;

/// Two rules may make alerts with the same labels.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AlertKey {
    pub labels: LabelSet,
    pub origin: Origin,
}

#[derive(Default)]
pub struct Group {
    pub alerts: BTreeMap<AlertKey, Alert>,
    pub due_at: Duration,
    /// When a notification without news is due.
    pub repeat_at: Duration,
    /// Since the receiver refuses each notification of this group.
    pub held: Option<Failing>,
    pub backoff: Backoff,
    /// Maximum number of news in the next notification, after a refused one: so the alert that the
    /// receiver does not want is found by halves.
    pub news_max: Option<usize>,
}

#[derive(Default)]
pub struct Alert {
    pub current: Option<Beginning>,
    /// Undelivered events, ascending.
    pub queue: VecDeque<Entry>,
    refused: Option<Refused>,
}

/// The receiver refused the news of an alert that came alone. It is tried again alone, and holds no
/// other up.
struct Refused {
    number: u64,
    failing: Failing,
    backoff: Backoff,
    retry_at: Duration,
}

/// A beginning that is done, of an alert whose end is not.
pub struct Beginning {
    pub entry: Entry,
    pub is_muted: bool,
}

impl AlertKey {
    pub fn of(event: &Event) -> AlertKey {
        AlertKey { labels: event.labels.clone(), origin: event.origin.clone() }
    }
}

impl Group {
    pub fn is_empty(&self) -> bool {
        self.alerts.is_empty()
    }

    /// The receiver refuses nothing of it, but alerts that it refused alone.
    pub fn well(&mut self) {
        (self.held, self.backoff, self.news_max) = (None, Backoff::default(), None);
    }

    pub fn undelivered(&self) -> impl Iterator<Item = &Entry> {
        self.alerts.values().flat_map(|alert| &alert.queue)
    }

    /// Mutes events of silenced alerts, and passes ends that are not delivered. The first event of
    /// each queue that remains is to be delivered.
    pub fn settle(&mut self, terms: &Terms, is_silenced: IsSilenced<'_>, ledger: &mut Ledger) {
        for (key, alert) in &mut self.alerts {
            if alert.queue.is_empty() && alert.refused.is_none() {
                continue;
            }
            let is_silenced = is_silenced(&key.labels);
            if is_silenced {
                alert.refused = None;
            }
            alert.settle(terms.send_resolved, is_silenced, ledger);
        }
        self.tidy();
    }

    /// The receiver refused this event alone.
    pub fn refused(
        &mut self,
        key: &AlertKey,
        number: u64,
        failing: Failing,
        at: Duration,
        dice: u32,
    ) {
        let Some(alert) = self.alerts.get_mut(key) else { return };
        let before = alert.refused.take().filter(|refused| refused.number == number);
        let (mut backoff, since_ms) = match before {
            Some(before) => (before.backoff, before.failing.since_ms),
            None => (Backoff::default(), failing.since_ms),
        };
        let retry_at = at + backoff.pause(None, dice);
        let failing = Failing { since_ms, ..failing };
        alert.refused = Some(Refused { number, failing, backoff, retry_at });
    }

    /// Returns whether other alerts than one have something to deliver now.
    pub fn has_others(&self, key: &AlertKey, now: Duration) -> bool {
        let can = |alert: &Alert| alert.refused_until().is_none_or(|until| until <= now);
        let mut others = self.alerts.iter().filter(|(other, _)| *other != key);
        others.any(|(_, alert)| !alert.queue.is_empty() && can(alert))
    }

    /// Returns what the receiver refuses, of alerts that still have it as news.
    pub fn refusals(&self) -> impl Iterator<Item = &Failing> {
        self.alerts.values().filter_map(|alert| alert.refusal().map(|refused| &refused.failing))
    }

    /// Returns when an alert is to be tried again that is held now.
    pub fn retry_at(&self, now: Duration) -> Option<Duration> {
        let refusals = self.alerts.values().filter_map(Alert::refusal);
        refusals.map(|refused| refused.retry_at).filter(|at| *at > now).min()
    }

    /// A notification with this event was accepted.
    pub fn delivered(&mut self, key: &AlertKey, number: u64, ledger: &mut Ledger) {
        let Some(alert) = self.alerts.get_mut(key) else { return };
        if alert.queue.front().is_some_and(|entry| entry.number == number) {
            alert.pop(false, ledger);
        } else if let Some(current) = alert.current.as_mut().filter(|b| b.entry.number == number) {
            current.is_muted = false;
            ledger.unmute(number);
        }
    }

    /// Removes alerts of which nothing is left.
    pub fn tidy(&mut self) {
        self.alerts.retain(|_, alert| !alert.is_over());
    }

    /// Drops what ended before the oldest event of the journal.
    pub fn drop_ended_before(
        &mut self,
        oldest: u64,
        is_open: &dyn Fn(u64) -> bool,
        ledger: &mut Ledger,
    ) {
        for alert in self.alerts.values_mut() {
            alert.drop_ended_before(oldest, is_open, ledger);
        }
        self.tidy();
    }
}

impl Alert {
    /// Whether nothing of it is left to deliver, now or later.
    fn is_over(&self) -> bool {
        self.current.is_none() && self.queue.is_empty()
    }

    /// Number of its last event.
    pub fn last(&self) -> Option<u64> {
        let current = || self.current.as_ref().map(|beginning| beginning.entry.number);
        self.queue.back().map(|entry| entry.number).or_else(current)
    }

    /// The event that the next notification has as news, after [`Group::settle`].
    pub fn news(&self, is_silenced: impl FnOnce() -> bool) -> Option<&Entry> {
        match (self.queue.front(), &self.current) {
            (Some(entry), _) => Some(entry),
            (None, Some(Beginning { entry, is_muted: true })) if !is_silenced() => Some(entry),
            (None, _) => None,
        }
    }

    /// Returns when the news that the receiver refused may be tried again.
    pub fn refused_until(&self) -> Option<Duration> {
        self.refusal().map(|refused| refused.retry_at)
    }

    fn refusal(&self) -> Option<&Refused> {
        let muted = || self.current.as_ref().filter(|current| current.is_muted);
        let number = match self.queue.front() {
            Some(entry) => Some(entry.number),
            None => muted().map(|current| current.entry.number),
        };
        self.refused.as_ref().filter(|refused| Some(refused.number) == number)
    }

    fn settle(&mut self, send_resolved: bool, is_silenced: bool, ledger: &mut Ledger) {
        while let Some(entry) = self.queue.front() {
            let is_muted = self.current.as_ref().is_some_and(|beginning| beginning.is_muted);
            let is_end = entry.event.change == Change::Resolved;
            if is_silenced || is_end && is_muted {
                ledger.totals.silenced += 1;
            } else if !is_end || send_resolved {
                return;
            }
            self.pop(is_silenced, ledger);
        }
    }

    /// The first event of the queue is done.
    fn pop(&mut self, is_muted: bool, ledger: &mut Ledger) {
        let Some(entry) = self.queue.pop_front() else { return };
        ledger.done(entry.number);
        let next = match entry.event.change {
            Change::Resolved => None,
            Change::Firing => {
                if is_muted {
                    ledger.muted.insert(entry.number);
                }
                Some(Beginning { entry, is_muted })
            }
        };
        // A beginning may follow another if damage cost the end between.
        self.replace_current(next, ledger);
    }

    pub fn replace_current(&mut self, next: Option<Beginning>, ledger: &mut Ledger) {
        if let Some(before) = std::mem::replace(&mut self.current, next) {
            ledger.unmute(before.entry.number);
        }
    }

    /// As of the oldest event, the alert was open with the last beginning before it, or over.
    /// `is_open` tells the numbers of beginnings that the journal keeps as open.
    fn drop_ended_before(
        &mut self,
        oldest: u64,
        is_open: &dyn Fn(u64) -> bool,
        ledger: &mut Ledger,
    ) {
        let before = self.queue.partition_point(|entry| entry.number < oldest);
        let last = before.checked_sub(1).and_then(|last| self.queue.get(last));
        let is_kept = |entry: &Entry| entry.event.change == Change::Firing && is_open(entry.number);
        let dropped = match last {
            Some(last) => before - usize::from(is_kept(last)),
            None => {
                let ended = |b: &Beginning| b.entry.number < oldest && !is_open(b.entry.number);
                if self.current.as_ref().is_some_and(ended) {
                    self.replace_current(None, ledger);
                }
                return;
            }
        };
        for entry in self.queue.drain(..dropped) {
            ledger.done(entry.number);
            ledger.totals.dropped += 1;
        }
        if dropped > 0 {
            // Its end was among the dropped events, or is the event that the journal lacks.
            self.replace_current(None, ledger);
        }
    }
}
