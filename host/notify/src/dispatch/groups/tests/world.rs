//! A journal as a plain list, a clock, and silences, around [`Groups`].

use crate::config::{GroupBy, Grouping};
use crate::dispatch::groups::{Due, Groups, Known};
use crate::dispatch::{Links, Moment, Position, Terms};
use crate::event::{Cause, Change, Entry, Event, Origin};
use crate::matchers::Matchers;
use crate::notification::{Notification, Reason};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tidepool_rules::labels::LabelSet;

/// 2026-01-01T00:00:00Z.
pub const BEGIN_MS: i64 = 1_767_225_600_000;

pub const GROUP_WAIT: u64 = 30;
pub const GROUP_INTERVAL: u64 = 300;
pub const REPEAT_INTERVAL: u64 = 4 * 3_600;

pub struct World {
    pub terms: Arc<Terms>,
    pub groups: Groups,
    /// All entries that ever were.
    pub entries: Vec<Entry>,
    pub oldest: u64,
    pub now: Duration,
    /// Values of `alertname`.
    pub silenced: BTreeSet<String>,
}

pub fn terms() -> Terms {
    Terms {
        name: "phone".into(),
        matchers: Vec::new(),
        send_resolved: true,
        grouping: Grouping {
            by: GroupBy::Labels(Vec::new()),
            wait: Duration::from_secs(GROUP_WAIT),
            interval: Duration::from_secs(GROUP_INTERVAL),
            repeat: Duration::from_secs(REPEAT_INTERVAL),
        },
        deadline: Duration::from_secs(20),
        links: Links {
            external_labels: LabelSet::default(),
            external_url: "http://node:9090".into(),
            generator_url: Arc::new(|event| format!("/rule?group={}", event.origin.group)),
        },
    }
}

pub fn grouped(by: GroupBy) -> Terms {
    let terms = terms();
    Terms { grouping: Grouping { by, ..terms.grouping }, ..terms }
}

pub fn matching(matchers: &str) -> Terms {
    Terms { matchers: vec![Matchers::parse(matchers).unwrap()], ..terms() }
}

pub fn event(change: Change, name: &str, time_ms: i64) -> Event {
    Event {
        change,
        time_ms,
        origin: Origin { file: "rules.yml".into(), group: "g".into() },
        labels: LabelSet::new([("alertname", name)]),
        annotations: Arc::default(),
        value: 1.0,
        fired_at_ms: time_ms,
        cause: Cause::Evaluation,
        is_unnamed: false,
    }
}

impl World {
    pub fn new(terms: Terms) -> World {
        let terms = Arc::new(terms);
        let mut world = World {
            groups: Groups::new(terms.clone()),
            terms,
            entries: Vec::new(),
            oldest: 1,
            now: Duration::ZERO,
            silenced: BTreeSet::new(),
        };
        world.start(Known::AllButFiring);
        world
    }

    pub fn moment(&self) -> Moment {
        Moment { at: self.now, wall_ms: BEGIN_MS + self.now.as_millis() as i64 }
    }

    pub fn pass(&mut self, secs: u64) {
        self.now += Duration::from_secs(secs);
    }

    pub fn add(&mut self, event: Event) -> u64 {
        let number = self.entries.len() as u64 + 1;
        self.entries.push(Entry { number, event });
        number
    }

    pub fn fire(&mut self, name: &str) -> u64 {
        self.add(event(Change::Firing, name, self.moment().wall_ms))
    }

    pub fn resolve(&mut self, name: &str) -> u64 {
        self.add(event(Change::Resolved, name, self.moment().wall_ms))
    }

    /// What was open before the oldest event.
    pub fn open(&self) -> Vec<Entry> {
        let mut open: Vec<Entry> = Vec::new();
        for entry in self.entries.iter().filter(|entry| entry.number < self.oldest) {
            open.retain(|other| other.event.labels != entry.event.labels);
            if entry.event.change == Change::Firing {
                open.push(entry.clone());
            }
        }
        open
    }

    fn scan(&mut self, known: Known, from: u64) {
        let (open, moment) = (self.open(), self.moment());
        let mut intake = self.groups.take_in(known, self.oldest, moment);
        open.iter().for_each(|entry| intake.open(entry));
        let entries = self.entries.iter().filter(|entry| entry.number >= self.oldest.max(from));
        entries.for_each(|entry| intake.event(entry));
        intake.finish();
    }

    pub fn start(&mut self, known: Known) {
        self.groups = Groups::new(self.terms.clone());
        self.scan(known, 0);
    }

    pub fn restart(&mut self) -> Position {
        let position = self.groups.position();
        self.start(Known::Position(position.clone()));
        position
    }

    pub fn read(&mut self) {
        self.groups.drop_before(self.oldest);
        if self.entries.len() as u64 > self.groups.read() {
            self.scan(Known::Read, self.groups.read() + 1);
        }
    }

    pub fn next(&mut self) -> Option<Due> {
        self.read();
        let silenced = self.silenced.clone();
        let moment = self.moment();
        self.groups.next(moment, &|labels| silenced.contains(labels.get("alertname")))
    }

    pub fn accept(&mut self, due: Due) {
        let alerts = due.notification.alerts.len();
        self.accept_some(due, alerts);
    }

    /// The receiver was sent only the first alerts.
    pub fn accept_some(&mut self, due: Due, alerts: usize) {
        let moment = self.moment();
        self.groups.accepted(due, alerts, moment);
    }

    pub fn fail(&mut self, due: Due) {
        let moment = self.moment();
        self.groups.failed(due, "no route".into(), None, moment, 0);
    }

    pub fn refuse(&mut self, due: Due) {
        let moment = self.moment();
        self.groups.refused(due, "400".into(), moment, 0);
    }

    /// Accepts all that is due now; returns texts such as `Resolved: A firing, B* resolved`, in
    /// which a star marks news.
    pub fn told(&mut self) -> Vec<String> {
        let mut told = Vec::new();
        while let Some(due) = self.next() {
            told.push(text(&due.notification));
            self.accept(due);
        }
        told
    }
}

pub fn text(notification: &Notification) -> String {
    let alert = |alert: &crate::notification::NotifiedAlert| {
        let star = if alert.is_news { "*" } else { "" };
        format!("{}{star} {}", alert.labels.get("alertname"), alert.change.name())
    };
    let alerts: Vec<String> = notification.alerts.iter().map(alert).collect();
    let reason = match notification.reason {
        Reason::FirstNotification => "first",
        Reason::NewAlerts => "new",
        Reason::Resolved => "resolved",
        Reason::Repeat => "repeat",
        Reason::Test => "test",
    };
    format!("{reason}: {}", alerts.join(", "))
}
