//! Random histories, judged by what each event was, not by how groups work.

use super::world::*;
use crate::config::GroupBy;
use crate::dispatch::groups::Due;
use crate::event::Change;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet, HashMap};

const NAMES: [&str; 4] = ["A", "B", "C", "D"];

#[derive(Clone, Debug)]
enum Act {
    /// The alert begins or ends.
    Flip(usize),
    Pass(u64),
    Accept,
    /// The receiver is sent only the first alert.
    AcceptFirst,
    Fail,
    Refuse,
    Restart,
    /// A restart from the position before the last notification that was accepted.
    Kill,
    Silence(usize),
    Unsilence(usize),
    /// The journal drops a part of its events.
    Drop(u64),
}

fn acts(with_loss: bool) -> impl Strategy<Value = Vec<Act>> {
    let lossless = prop_oneof![
        6 => (0..NAMES.len()).prop_map(Act::Flip),
        4 => prop_oneof![Just(1u64), Just(29), Just(30), Just(299), Just(300)].prop_map(Act::Pass),
        4 => Just(Act::Accept),
        1 => Just(Act::AcceptFirst),
        1 => Just(Act::Fail),
        2 => Just(Act::Refuse),
        1 => Just(Act::Restart),
        1 => Just(Act::Kill),
    ];
    let loss = prop_oneof![
        2 => (0..NAMES.len()).prop_map(Act::Silence),
        2 => (0..NAMES.len()).prop_map(Act::Unsilence),
        1 => (1u64..4).prop_map(Act::Drop),
    ];
    let weight = if with_loss { 4 } else { 0 };
    let act = prop_oneof![18 => lossless, weight => loss];
    prop::collection::vec(act, 0..60)
}

struct History {
    world: World,
    firing: BTreeSet<usize>,
    /// Numbers of accepted news, an alert, in the order of acceptance.
    accepted: BTreeMap<String, Vec<u64>>,
    /// Numbers of events whose alert was silenced since they happened.
    maybe_silenced: BTreeSet<u64>,
    maybe_dropped: BTreeSet<u64>,
    before_last: Option<crate::dispatch::Position>,
    may_repeat: bool,
}

impl History {
    fn new(group_by: GroupBy) -> History {
        let mut terms = grouped(group_by);
        terms.grouping.repeat = std::time::Duration::from_secs(1 << 30);
        History {
            world: World::new(terms),
            firing: BTreeSet::new(),
            accepted: BTreeMap::new(),
            maybe_silenced: BTreeSet::new(),
            maybe_dropped: BTreeSet::new(),
            before_last: None,
            may_repeat: false,
        }
    }

    fn act(&mut self, act: &Act) {
        match *act {
            Act::Flip(which) => {
                let number = match self.firing.remove(&which) {
                    true => self.world.resolve(NAMES[which]),
                    false => {
                        self.firing.insert(which);
                        self.world.fire(NAMES[which])
                    }
                };
                self.note_silenced();
                // Times of events differ, so identifiers do.
                self.world.now += std::time::Duration::from_millis(1);
                assert_eq!(number, self.world.entries.len() as u64);
            }
            Act::Pass(secs) => self.world.pass(secs),
            Act::Accept => {
                if let Some(due) = self.due() {
                    self.accept(due);
                }
            }
            Act::AcceptFirst => {
                if let Some(due) = self.due() {
                    self.accept_some(due, 1);
                }
            }
            Act::Fail => {
                if let Some(due) = self.due() {
                    self.world.fail(due);
                }
            }
            Act::Refuse => {
                if let Some(due) = self.due() {
                    self.world.refuse(due);
                }
            }
            Act::Restart => {
                self.world.read();
                let position = self.world.restart();
                assert_eq!(self.world.groups.position(), position, "a restart changes nothing");
            }
            Act::Kill => {
                if let Some(position) = self.before_last.take() {
                    self.may_repeat = true;
                    self.world.start(crate::dispatch::groups::Known::Position(position));
                }
            }
            Act::Silence(which) => {
                self.world.silenced.insert(NAMES[which].into());
                self.note_silenced();
            }
            Act::Unsilence(which) => {
                self.world.silenced.remove(NAMES[which]);
            }
            Act::Drop(count) => {
                let end = self.world.entries.len() as u64 + 1;
                let oldest = (self.world.oldest + count).min(end);
                self.maybe_dropped.extend(self.world.oldest..oldest);
                self.world.oldest = oldest;
            }
        }
    }

    fn note_silenced(&mut self) {
        for entry in &self.world.entries {
            if self.world.silenced.contains(entry.event.labels.get("alertname")) {
                self.maybe_silenced.insert(entry.number);
            }
        }
    }

    /// Takes the next notification and checks it.
    fn due(&mut self) -> Option<Due> {
        self.world.read();
        self.before_last = Some(self.world.groups.position());
        let due = self.world.next()?;
        let by_id: HashMap<String, &crate::event::Entry> =
            self.world.entries.iter().map(|entry| (entry.event.id(), entry)).collect();
        let mut labels = BTreeSet::new();
        for alert in &due.notification.alerts {
            let entry = by_id.get(&alert.id).expect("no alert is invented");
            assert_eq!((alert.change, &alert.labels), (entry.event.change, &entry.event.labels));
            assert!(labels.insert(alert.labels.clone()), "twice in one notification");
            let name = alert.labels.get("alertname");
            assert!(!self.world.silenced.contains(name), "silenced");
            let known = self.accepted.get(name).and_then(|numbers| numbers.last());
            if !alert.is_news {
                assert_eq!(known, Some(&entry.number), "not known to the receiver");
            }
        }
        assert!(due.notification.alerts.iter().any(|alert| alert.is_news), "nothing new");
        Some(due)
    }

    fn accept(&mut self, due: Due) {
        let alerts = due.notification.alerts.len();
        self.accept_some(due, alerts);
    }

    fn accept_some(&mut self, due: Due, count: usize) {
        let number_of = |id: &str| {
            let entry = self.world.entries.iter().find(|entry| entry.event.id() == id);
            entry.map(|entry| entry.number)
        };
        let alerts = due.notification.alerts.iter().take(count);
        for alert in alerts.filter(|alert| alert.is_news) {
            let number = number_of(&alert.id).expect("checked before");
            let name = alert.labels.get("alertname").to_owned();
            let numbers = self.accepted.entry(name).or_default();
            match numbers.last() {
                Some(last) if self.may_repeat => assert!(number >= *last, "out of order"),
                Some(last) => assert!(number > *last, "out of order, or twice"),
                None => {}
            }
            numbers.push(number);
        }
        self.world.accept_some(due, count);
    }

    /// Ends all silences and failures, and lets time pass until nothing is left to do.
    fn end(&mut self) {
        self.world.silenced.clear();
        for _ in 0..4 {
            self.world.pass(600);
            while let Some(due) = self.due() {
                self.accept(due);
            }
        }
        let position = self.world.groups.position();
        assert_eq!((position.beyond.len(), position.muted.len()), (0, 0));
        assert_eq!(position.through, self.world.groups.read());
    }

    fn has_accepted(&self, number: u64) -> bool {
        self.accepted.values().any(|numbers| numbers.contains(&number))
    }
}

fn group_bys() -> impl Strategy<Value = GroupBy> {
    prop_oneof![Just(GroupBy::EachAlert), Just(GroupBy::Labels(Vec::new()))]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn without_silences_every_event_is_delivered(acts in acts(false), group_by in group_bys()) {
        let mut history = History::new(group_by);
        acts.iter().for_each(|act| history.act(act));
        history.end();
        let mut accepted: Vec<u64> = history.accepted.values().flatten().copied().collect();
        accepted.sort_unstable();
        if history.may_repeat {
            accepted.dedup();
        }
        let all: Vec<u64> = history.world.entries.iter().map(|entry| entry.number).collect();
        prop_assert_eq!(accepted, all);
    }

    #[test]
    fn only_silences_and_the_journal_take_events(acts in acts(true), group_by in group_bys()) {
        let mut history = History::new(group_by);
        acts.iter().for_each(|act| history.act(act));
        history.end();
        let mut beginnings: BTreeMap<&str, u64> = BTreeMap::new();
        for entry in &history.world.entries {
            let (name, number) = (entry.event.labels.get("alertname"), entry.number);
            let beginning = match entry.event.change {
                Change::Firing => number,
                Change::Resolved => beginnings[name],
            };
            beginnings.insert(name, beginning);
            let is_excused = [number, beginning].iter().any(|number| {
                history.maybe_silenced.contains(number) || history.maybe_dropped.contains(number)
            });
            prop_assert!(is_excused || history.has_accepted(number), "{} is missing", number);
            // An end is told only to those who know of the beginning, or whose journal lost it.
            if entry.event.change == Change::Resolved && history.has_accepted(number) {
                prop_assert!(history.has_accepted(beginning), "{} ends unbegun", number);
            }
        }
        // At the end nothing is silenced: what fires is known, whatever was before.
        for which in &history.firing {
            let last = beginnings[NAMES[*which]];
            prop_assert_eq!(history.accepted[NAMES[*which]].last(), Some(&last));
        }
    }
}
