//! Which events of the journal an Alertmanager has not heard of.
//!
//! ```text
//!            through                       read_to
//! ──settled────┤ 5 │ 6  │ 7 │ 8  │ 9  │ 10 ├─▶
//!                  ▲    F       R    F
//!                  └ beyond: 5, 7, 10 are settled, too
//! ```
//!
//! A beginning (F) is settled once Alertmanager has accepted the alert as firing, which live alerts
//! do: they are sent again each minute. An end (R) is settled once it is accepted, live or from the
//! journal; or if the same alert has begun again, because Alertmanager would then take an end of
//! earlier for the end of the new one (`Put` in `provider/mem/mem.go` of prometheus/alertmanager).
//!
//! If an end is settled before its beginning, Alertmanager notifies nobody of the alert: such
//! alerts are counted.
//!
//! Invariants: numbers are noted once, ascending but for alerts that were open before the oldest
//! event; no event of another alert changes what is settled of one.

use super::alert::{Alert, AlertKey};
use crate::event::Change;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;
use tokio::time::Instant;

/// Maximum number of settled events after an unsettled one. Above it, beginnings that Alertmanager
/// does not accept are taken for settled, which bounds the position file.
const BEYOND_MAX: u64 = 1000;

/// How long it is remembered what was accepted: until its event has been read for certain.
const ACCEPTED_AGE: Duration = Duration::from_secs(600);

/// Maximum number of alerts of which that is remembered. Ends of others are sent twice.
const ACCEPTED_MAX: usize = 50_000;

/// What is needed of an event to decide on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Noted {
    pub number: u64,
    pub change: Change,
    pub key: AlertKey,
    pub fired_at_ms: i64,
    pub time_ms: i64,
}

/// Settled events, as they are stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Position {
    /// All events up to this number are settled.
    pub through: u64,
    /// Numbers of settled events after it.
    pub beyond: BTreeSet<u64>,
}

pub(super) struct Ledger {
    read_to: u64,
    /// Settled events of the position that was stored, until they are read.
    beyond: BTreeSet<u64>,
    unsettled: BTreeMap<u64, Unsettled>,
    /// Key, beginning and number of unsettled beginnings.
    firing: BTreeSet<(AlertKey, i64, u64)>,
    /// Key and number of unsettled ends.
    resolved: BTreeSet<(AlertKey, u64)>,
}

struct Unsettled {
    noted: Noted,
    /// When an end is sent from the journal, unless it was sent live before.
    due_at: Instant,
}

/// What Alertmanager accepted of live alerts in the last minutes.
#[derive(Default)]
pub(super) struct Accepted {
    alerts: HashMap<AlertKey, LastAccepted>,
    pruned_at: Option<Instant>,
}

struct LastAccepted {
    starts_at_ms: i64,
    /// Whether it was accepted while it fired.
    has_fired: bool,
    /// `None` while it fires.
    ends_at_ms: Option<i64>,
    at: Instant,
}

impl Accepted {
    pub fn add(&mut self, alerts: &[Alert], now: Instant) {
        if self.pruned_at.is_none_or(|at| now - at > ACCEPTED_AGE / 10) {
            self.alerts.retain(|_, last| now - last.at <= ACCEPTED_AGE);
            self.pruned_at = Some(now);
        }
        for alert in alerts {
            let last = self.alerts.get(&alert.key);
            if last.is_none() && self.alerts.len() >= ACCEPTED_MAX {
                continue;
            }
            let had_fired =
                last.is_some_and(|last| last.starts_at_ms == alert.starts_at_ms && last.has_fired);
            let last = LastAccepted {
                starts_at_ms: alert.starts_at_ms,
                has_fired: had_fired || !alert.is_resolved,
                ends_at_ms: alert.is_resolved.then_some(alert.ends_at_ms),
                at: now,
            };
            self.alerts.insert(alert.key, last);
        }
    }

    fn settles(&self, noted: &Noted) -> bool {
        let Some(last) = self.alerts.get(&noted.key) else { return false };
        let is_same = last.starts_at_ms == noted.fired_at_ms;
        match noted.change {
            Change::Firing => is_same && last.has_fired,
            Change::Resolved => {
                let has_begun_again = last.starts_at_ms > noted.time_ms;
                is_same && last.ends_at_ms == Some(noted.time_ms) || has_begun_again
            }
        }
    }
}

impl Ledger {
    pub fn new(position: Position) -> Ledger {
        Ledger {
            read_to: position.through,
            beyond: position.beyond,
            unsettled: BTreeMap::new(),
            firing: BTreeSet::new(),
            resolved: BTreeSet::new(),
        }
    }

    /// Number of the newest event that was read.
    pub fn read_to(&self) -> u64 {
        self.read_to
    }

    /// Takes events that were read, all up to the number `read_to` that concern Alertmanager.
    /// Returns the number of alerts that it will notify nobody of.
    pub fn note(&mut self, events: Vec<Noted>, read_to: u64, due_at: Instant) -> u64 {
        let mut not_notified = 0;
        for noted in events {
            let Noted { number, key, fired_at_ms, .. } = noted;
            if self.beyond.contains(&number) {
                continue;
            }
            match noted.change {
                Change::Firing => {
                    let ended = self.resolved.range((key, 0)..(key, number));
                    let ended: Vec<u64> = ended.map(|(_, number)| *number).collect();
                    not_notified += self.settle_ends(&ended);
                    self.firing.insert((key, fired_at_ms, number));
                }
                Change::Resolved => {
                    self.resolved.insert((key, number));
                }
            }
            self.unsettled.insert(number, Unsettled { noted, due_at });
        }
        self.read_to = self.read_to.max(read_to);
        self.beyond.retain(|number| *number > read_to);
        not_notified
    }

    /// Settles what was accepted live. Returns the number of alerts that Alertmanager notifies
    /// nobody of.
    pub fn settle_accepted(&mut self, accepted: &Accepted) -> u64 {
        let settled = self.unsettled.values().filter(|one| accepted.settles(&one.noted));
        let settled: Vec<Noted> = settled.map(|one| one.noted).collect();
        let mut ends = Vec::new();
        // All beginnings first: an end that is settled in the same step has had its beginning.
        for Noted { number, change, key, fired_at_ms, .. } in settled {
            match change {
                Change::Firing => {
                    self.firing.remove(&(key, fired_at_ms, number));
                    self.unsettled.remove(&number);
                }
                Change::Resolved => ends.push(number),
            }
        }
        self.settle_ends(&ends)
    }

    /// Settles ends that were accepted, were refused for good, or are not needed any more. Returns
    /// the number of alerts that Alertmanager notifies nobody of.
    pub fn settle_ends(&mut self, numbers: &[u64]) -> u64 {
        let mut not_notified = 0;
        for number in numbers {
            let Some(Unsettled { noted, .. }) = self.unsettled.remove(number) else { continue };
            self.resolved.remove(&(noted.key, *number));
            let begin = (noted.key, noted.fired_at_ms, 0);
            let begun = self.firing.range(begin..(noted.key, noted.fired_at_ms, *number));
            let begun: Vec<_> = begun.copied().collect();
            not_notified += u64::from(!begun.is_empty());
            for beginning in begun {
                self.firing.remove(&beginning);
                self.unsettled.remove(&beginning.2);
            }
        }
        not_notified
    }

    /// Settles ends that the journal does not hold any more. Returns their number, and that of
    /// alerts that Alertmanager notifies nobody of.
    pub fn drop_before(&mut self, oldest: u64) -> (u64, u64) {
        let dropped = self.unsettled.range(..oldest).map(|(_, one)| one.noted);
        let dropped = dropped.filter(|noted| noted.change == Change::Resolved);
        let dropped: Vec<u64> = dropped.map(|noted| noted.number).collect();
        (dropped.len() as u64, self.settle_ends(&dropped))
    }

    /// Returns numbers of ends that are due, the oldest first, at most `count`.
    pub fn due(&self, now: Instant, count: usize) -> Vec<u64> {
        let is_due = |one: &&Unsettled| one.noted.change == Change::Resolved && one.due_at <= now;
        self.unsettled.values().filter(is_due).map(|one| one.noted.number).take(count).collect()
    }

    pub fn next_due_at(&self) -> Option<Instant> {
        let ends = self.resolved.iter().filter_map(|(_, number)| self.unsettled.get(number));
        ends.map(|one| one.due_at).min()
    }

    /// Number of ends that Alertmanager has not heard of.
    pub fn ends(&self) -> u64 {
        self.resolved.len() as u64
    }

    /// Returns the time of the oldest unsettled end.
    pub fn oldest_end_ms(&self) -> Option<i64> {
        let ends = self.resolved.iter().filter_map(|(_, number)| self.unsettled.get(number));
        ends.map(|end| end.noted.time_ms).min()
    }

    /// Returns the position to be stored.
    pub fn position(&mut self) -> Position {
        while self.settled_beyond() > BEYOND_MAX
            && let Some(first) = self.unsettled.first_entry()
            && first.get().noted.change == Change::Firing
        {
            let Noted { number, key, fired_at_ms, .. } = first.remove().noted;
            self.firing.remove(&(key, fired_at_ms, number));
        }
        let through = self.through();
        let all = through.saturating_add(1)..=self.read_to;
        let settled = all.filter(|number| !self.unsettled.contains_key(number));
        Position { through, beyond: settled.take(BEYOND_MAX as usize).collect() }
    }

    fn through(&self) -> u64 {
        self.unsettled.first_key_value().map_or(self.read_to, |(first, _)| first.saturating_sub(1))
    }

    fn settled_beyond(&self) -> u64 {
        (self.read_to - self.through()).saturating_sub(self.unsettled.len() as u64)
    }
}
