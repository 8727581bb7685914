//! Takes entries of the journal in: all at the start, new ones later.

use super::super::position::Position;
use super::group::{AlertKey, Beginning};
use super::{Groups, Moment, Progress};
use crate::event::{Change, Entry};
use std::collections::HashSet;
use std::time::Duration;
use tidepool_rules::labels::LabelSet;

/// What is known to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Known {
    /// Everything but the beginnings of alerts that fire: a new receiver.
    AllButFiring,
    /// What a position says: a start.
    Position(Position),
    /// All that was read: what follows is new.
    Read,
}

/// One scan of the journal: from its beginning with the first two kinds of [`Known`], else from the
/// entry after [`Groups::read`], or before.
pub struct Intake<'g> {
    groups: &'g mut Groups,
    known: Known,
    moment: Moment,
    /// Number of the last entry that was read before.
    after: u64,
    newest: u64,
    /// Number of the oldest event of the journal, before the scan began.
    oldest: u64,
    /// Numbers of beginnings that the journal gave as open.
    open: HashSet<u64>,
    new_groups: HashSet<LabelSet>,
}

impl Groups {
    pub fn take_in(&mut self, known: Known, oldest: u64, moment: Moment) -> Intake<'_> {
        let after = self.read();
        let (open, new_groups) = (HashSet::new(), HashSet::new());
        Intake { groups: self, known, moment, after, newest: after, oldest, open, new_groups }
    }
}

impl Intake<'_> {
    /// An alert that was open before the scan's first event, or whose event is lost.
    pub fn open(&mut self, entry: &Entry) {
        self.open.insert(entry.number);
        self.event(entry);
    }

    pub fn event(&mut self, entry: &Entry) {
        let number = entry.number;
        self.newest = self.newest.max(number);
        let done_muted = match &self.known {
            Known::Read if number <= self.after => return,
            Known::Read => None,
            Known::AllButFiring => Some(false),
            Known::Position(position) => {
                let is_muted = || position.muted.binary_search(&number).is_ok();
                position.is_done(number).then(is_muted)
            }
        };
        let ledger = &mut self.groups.ledger;
        if !self.groups.terms.wants(&entry.event) {
            ledger.progress = ledger.progress.max(Progress::Passed);
            return;
        }
        let key = self.groups.terms.group_of(&entry.event.labels);
        let group = self.groups.groups.entry(key.clone()).or_insert_with(|| {
            self.new_groups.insert(key);
            Default::default()
        });
        let alert_key = AlertKey::of(&entry.event);
        let alert = group.alerts.entry(alert_key.clone()).or_default();
        if alert.last().is_some_and(|last| number <= last) {
            return;
        }
        let Some(is_muted) = done_muted else {
            ledger.undelivered.insert(number);
            alert.queue.push_back(entry.clone());
            return;
        };
        // Events of an alert are done in their order, so what was before is over.
        alert.queue.drain(..).for_each(|before| ledger.done(before.number));
        let next = match entry.event.change {
            Change::Firing => Some(Beginning { entry: entry.clone(), is_muted }),
            Change::Resolved => None,
        };
        alert.replace_current(next, ledger);
        if is_muted && entry.event.change == Change::Firing {
            ledger.muted.insert(number);
        }
        if alert.current.is_none() {
            group.alerts.remove(&alert_key);
        }
    }

    /// Ends the scan.
    pub fn finish(mut self) {
        self.drop_unread();
        let ledger = &mut self.groups.ledger;
        // Events that the journal dropped had numbers, too.
        ledger.read = self.newest.max(self.oldest.saturating_sub(1));
        match &self.known {
            Known::Read => {}
            Known::Position(position) => ledger.read = ledger.read.max(position.last()),
            Known::AllButFiring => {
                ledger.progress = Progress::Done;
                self.undo_beginnings();
            }
        }
        for key in std::mem::take(&mut self.new_groups) {
            self.schedule(&key);
        }
    }

    /// Counts events that the journal dropped before they were read, and ends alerts whose end was
    /// among them.
    fn drop_unread(&mut self) {
        let undone = match &self.known {
            Known::AllButFiring => 0,
            Known::Position(position) => position.undone_below(self.oldest),
            Known::Read => self.oldest.saturating_sub(1).saturating_sub(self.after),
        };
        if undone == 0 {
            return;
        }
        let is_new = |number: &&u64| match &self.known {
            Known::Position(position) => !position.is_done(**number),
            Known::Read | Known::AllButFiring => **number > self.after,
        };
        let kept = self.open.iter().filter(|number| **number < self.oldest).filter(is_new).count();
        let ledger = &mut self.groups.ledger;
        ledger.totals.dropped += undone.saturating_sub(kept as u64);
        ledger.progress = Progress::Done;
        if self.known == Known::Read {
            let open = std::mem::take(&mut self.open);
            self.groups.drop_ended_before(self.oldest, &|number| open.contains(&number));
        }
    }

    /// Makes the beginnings of alerts that fire undelivered.
    fn undo_beginnings(&mut self) {
        let ledger = &mut self.groups.ledger;
        for group in self.groups.groups.values_mut() {
            for alert in group.alerts.values_mut() {
                if let Some(Beginning { entry, .. }) = alert.current.take() {
                    ledger.undelivered.insert(entry.number);
                    alert.queue.push_front(entry);
                }
            }
        }
    }

    /// Sets when a new group is first looked at: after the group wait, or at once if an event has
    /// waited as long before, as Alertmanager has it.
    fn schedule(&mut self, key: &LabelSet) {
        let Moment { at, wall_ms } = self.moment;
        let terms = self.groups.terms.clone();
        let Some(group) = self.groups.groups.get_mut(key) else { return };
        let age =
            |time_ms: i64| Duration::from_millis(wall_ms.saturating_sub(time_ms).max(0) as u64);
        let oldest_ms = group.undelivered().map(|entry| entry.event.time_ms).min();
        let begun = |alert: &super::group::Alert| alert.current.as_ref().map(|b| b.is_muted);
        let has_muted = group.alerts.values().any(|alert| begun(alert) == Some(true));
        let first = match oldest_ms {
            Some(oldest_ms) if age(oldest_ms) >= terms.grouping.wait => at,
            Some(_) => at + terms.grouping.wait,
            None if has_muted => at + terms.grouping.wait,
            None => at + terms.tick(),
        };
        // When the last notification was is not kept. Repetitions of alerts that began before this
        // start continue in step with the first of them.
        let begun = group.alerts.values().filter_map(|alert| alert.current.as_ref());
        let begun = begun.filter(|beginning| !beginning.is_muted);
        let since = begun.map(|beginning| age(beginning.entry.event.time_ms)).max();
        let since = since.unwrap_or_default().as_nanos();
        let passed = since.checked_rem(terms.grouping.repeat.as_nanos()).unwrap_or(0);
        let passed = Duration::from_nanos(u64::try_from(passed).unwrap_or(u64::MAX));
        group.repeat_at = at + terms.grouping.repeat.saturating_sub(passed);
        self.groups.reschedule(key, first);
    }
}
