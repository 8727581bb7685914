//! Makes events of what rule groups say after each evaluation.
//!
//! The firing alerts of a group are compared with those that are open: that began and did not end
//! for receivers. So what a kill cost between an evaluation and the journal is completed by the
//! next evaluation, and nothing that did not happen is told.

use crate::event::{Cause, Change, Entry, Event, Origin};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tidepool_rules::alert::{State, Told};
use tidepool_rules::group::{AlertSnapshot, GroupSnapshot, KindSnapshot};
use tidepool_rules::labels::{ALERT_NAME, LabelSet};

/// Alerts that began and did not end, by group.
#[derive(Debug, Default)]
pub struct OpenAlerts(BTreeMap<Origin, BTreeMap<LabelSet, Event>>);

impl OpenAlerts {
    pub fn new(entries: Vec<Entry>) -> OpenAlerts {
        let mut open = OpenAlerts::default();
        entries.iter().for_each(|entry| open.note(&entry.event));
        open
    }

    /// Returns the alerts of a group that receivers take for firing.
    pub fn told(&self, origin: &Origin) -> Vec<Told> {
        let alerts = self.0.get(origin).into_iter().flat_map(BTreeMap::values);
        let told = alerts.map(|event| Told {
            labels: event.labels.clone(),
            annotations: event.annotations.clone(),
            value: event.value,
            fired_at_ms: event.fired_at_ms,
        });
        told.collect()
    }

    /// Returns the events of an evaluation.
    ///
    /// Alerts whose rule is not restored yet, or that may be those of another rule, stay as they
    /// are; so does all of a group whose clock is doubted.
    pub fn observe(&mut self, group: &GroupSnapshot, is_unnamed: bool) -> Vec<Event> {
        let Some(slot_ms) = group.last_slot_ms.filter(|_| !group.is_held) else {
            return Vec::new();
        };
        let origin = Origin { file: group.file.as_str().into(), group: group.name.as_str().into() };
        let open = self.0.get(&origin);
        let rules = Rules::of(group);
        if open.is_none() && rules.firing.is_empty() {
            return Vec::new();
        }
        let mut events = Vec::new();
        for (labels, alert) in &rules.firing {
            if !open.is_some_and(|open| open.contains_key(*labels)) {
                let fired_at_ms = alert.fired_at_ms.unwrap_or(slot_ms);
                events.push(Event {
                    change: Change::Firing,
                    time_ms: fired_at_ms,
                    origin: origin.clone(),
                    labels: (*labels).clone(),
                    annotations: alert.annotations.clone(),
                    value: alert.value,
                    fired_at_ms,
                    cause: Cause::Evaluation,
                    is_unnamed,
                });
            }
        }
        for event in open.into_iter().flat_map(BTreeMap::values) {
            let is_unknown = rules.unknown.contains(&event.labels)
                || rules.unrestored.contains(event.labels.get(ALERT_NAME));
            if is_unknown || rules.firing.contains_key(&event.labels) {
                continue;
            }
            let ended = rules.ended.get(&event.labels);
            let name = event.labels.get(ALERT_NAME);
            let cause = if !rules.names.contains(name) {
                Cause::RuleRemoved
            } else if ended.is_some_and(|alert| alert.state == State::Inactive)
                || rules.failed.contains(name)
            {
                Cause::Evaluation
            } else {
                Cause::Unseen
            };
            let resolved_ms = ended.and_then(|alert| alert.resolved_at_ms).unwrap_or(slot_ms);
            events.push(event.ended(resolved_ms, cause));
        }
        events.sort_by_key(|event| event.time_ms);
        events.iter().for_each(|event| self.note(event));
        events
    }

    /// Returns the events of groups that the configuration has no longer.
    pub fn retain(&mut self, groups: &BTreeSet<Origin>, now_ms: i64) -> Vec<Event> {
        let gone = self.0.iter().filter(|(origin, _)| !groups.contains(*origin));
        let events: Vec<Event> = gone
            .flat_map(|(_, alerts)| alerts.values())
            .map(|event| event.ended(now_ms, Cause::RuleRemoved))
            .collect();
        events.iter().for_each(|event| self.note(event));
        events
    }

    fn note(&mut self, event: &Event) {
        let alerts = self.0.entry(event.origin.clone()).or_default();
        match event.change {
            Change::Firing => drop(alerts.insert(event.labels.clone(), event.clone())),
            Change::Resolved => drop(alerts.remove(&event.labels)),
        }
        if alerts.is_empty() {
            self.0.remove(&event.origin);
        }
    }
}

impl Event {
    /// The end of an alert that this event began.
    fn ended(&self, resolved_ms: i64, cause: Cause) -> Event {
        Event {
            change: Change::Resolved,
            // A clock that was set back must not let it end before it began.
            time_ms: resolved_ms.max(self.fired_at_ms),
            cause,
            ..self.clone()
        }
    }
}

/// The alerting rules of a group, by what they tell of alerts.
#[derive(Default)]
struct Rules<'a> {
    names: BTreeSet<&'a str>,
    /// Names of rules whose last evaluation failed; a limit that is exceeded ends all alerts.
    failed: BTreeSet<&'a str>,
    /// Names of rules whose alerts of the last run are not back yet.
    unrestored: BTreeSet<&'a str>,
    firing: BTreeMap<&'a LabelSet, &'a AlertSnapshot>,
    /// Alerts that may be those of another rule.
    unknown: BTreeSet<&'a LabelSet>,
    /// Alerts that are resolved, or that wait again: `for` was raised, or the program did not run
    /// for longer than the outage that alerts survive.
    ended: BTreeMap<&'a LabelSet, &'a AlertSnapshot>,
}

impl<'a> Rules<'a> {
    fn of(group: &'a GroupSnapshot) -> Rules<'a> {
        let mut rules = Rules::default();
        for rule in &group.rules {
            let KindSnapshot::Alerting { alerts, is_restored, .. } = &rule.kind else { continue };
            rules.names.insert(&rule.name);
            if rule.last_error.is_some() {
                rules.failed.insert(&rule.name);
            }
            if !is_restored {
                rules.unrestored.insert(&rule.name);
                continue;
            }
            for alert in alerts {
                match alert.state {
                    _ if alert.is_shared => drop(rules.unknown.insert(&alert.labels)),
                    State::Firing => drop(rules.firing.insert(&alert.labels, alert)),
                    State::Inactive | State::Pending => {
                        rules.ended.insert(&alert.labels, alert);
                    }
                    State::Unknown => {}
                }
            }
        }
        rules
    }
}

/// Returns the origin of a group.
pub fn origin(file: &str, group: &str) -> Origin {
    Origin { file: Arc::from(file), group: Arc::from(group) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tidepool_rules::group::{Health, RuleSnapshot};

    const SLOT_MS: i64 = 600_000;

    fn alert(name: &str, state: State) -> AlertSnapshot {
        AlertSnapshot {
            labels: LabelSet::new([("alertname", "A"), ("k", name)]),
            annotations: Arc::default(),
            state,
            value: 2.0,
            active_at_ms: 0,
            fired_at_ms: (state != State::Pending).then_some(60_000),
            keep_firing_since_ms: None,
            resolved_at_ms: (state == State::Inactive).then_some(300_000),
            is_shared: false,
        }
    }

    fn group(rule: &str, alerts: Vec<AlertSnapshot>) -> GroupSnapshot {
        let rule = RuleSnapshot {
            name: rule.to_owned(),
            query: "q".to_owned(),
            labels: BTreeMap::new(),
            health: Health::Ok,
            last_error: None,
            last_evaluation_ms: None,
            evaluation_time: Duration::ZERO,
            kind: KindSnapshot::Alerting {
                state: State::Inactive,
                for_: Duration::ZERO,
                keep_firing_for: Duration::ZERO,
                annotations: BTreeMap::new(),
                is_restored: true,
                alerts,
            },
        };
        GroupSnapshot {
            name: "g".to_owned(),
            file: "f".to_owned(),
            interval_ms: 60_000,
            query_offset_ms: 0,
            limit: 0,
            last_slot_ms: Some(SLOT_MS),
            last_evaluation_ms: None,
            evaluation_time: Duration::ZERO,
            is_held: false,
            rules: vec![rule],
        }
    }

    /// What events say: change, label, time and cause.
    fn said(events: &[Event]) -> Vec<(Change, &str, i64, Cause)> {
        let one = |event: &Event| (event.change, event.time_ms, event.cause);
        let with = |event| {
            let (change, time_ms, cause) = one(event);
            (change, event.labels.get("k"), time_ms, cause)
        };
        events.iter().map(with).collect()
    }

    #[test]
    fn an_alert_begins_and_ends_once() {
        let mut open = OpenAlerts::default();
        let pending = group("A", vec![alert("a", State::Pending)]);
        assert_eq!(open.observe(&pending, false), []);
        let firing = group("A", vec![alert("a", State::Firing)]);
        let begun = open.observe(&firing, false);
        assert_eq!(said(&begun), [(Change::Firing, "a", 60_000, Cause::Evaluation)]);
        assert_eq!(open.observe(&firing, false), []);
        let resolved = group("A", vec![alert("a", State::Inactive)]);
        let ended = open.observe(&resolved, false);
        assert_eq!(said(&ended), [(Change::Resolved, "a", 300_000, Cause::Evaluation)]);
        assert_eq!(ended[0].fired_at_ms, 60_000);
        assert_eq!(open.observe(&resolved, false), []);
    }

    #[test]
    fn after_a_start_what_is_missing_is_completed() {
        let entry = |number, name: &str| {
            let mut open = OpenAlerts::default();
            let event =
                open.observe(&group("A", vec![alert(name, State::Firing)]), false).remove(0);
            Entry { number, event }
        };
        let mut open = OpenAlerts::new(vec![entry(1, "ended"), entry(2, "fires")]);
        assert_eq!(open.told(&origin("f", "g")).len(), 2);
        assert_eq!(open.told(&origin("f", "other")).len(), 0);
        // One has ended while the program did not run; another one began before the journal had it.
        let now = group("A", vec![alert("fires", State::Firing), alert("begun", State::Firing)]);
        let events = open.observe(&now, false);
        assert_eq!(
            said(&events),
            [
                (Change::Firing, "begun", 60_000, Cause::Evaluation),
                (Change::Resolved, "ended", SLOT_MS, Cause::Unseen)
            ]
        );
    }

    #[test]
    fn what_is_not_known_changes_nothing() {
        let mut open = OpenAlerts::default();
        open.observe(&group("A", vec![alert("a", State::Firing)]), false);
        let held = GroupSnapshot { is_held: true, ..group("A", vec![alert("b", State::Firing)]) };
        assert_eq!(open.observe(&held, false), []);
        let mut unrestored = group("A", vec![]);
        if let KindSnapshot::Alerting { is_restored, .. } = &mut unrestored.rules[0].kind {
            *is_restored = false;
        }
        assert_eq!(open.observe(&unrestored, false), []);
        let shared = AlertSnapshot { is_shared: true, ..alert("a", State::Firing) };
        let other = AlertSnapshot { is_shared: true, ..alert("b", State::Firing) };
        assert_eq!(open.observe(&group("A", vec![shared, other]), false), []);
    }

    #[test]
    fn removed_rules_and_groups_end_their_alerts() {
        let firing = group("A", vec![alert("a", State::Firing)]);
        let mut open = OpenAlerts::default();
        open.observe(&firing, false);
        let events = open.observe(&group("Other", vec![]), false);
        assert_eq!(said(&events), [(Change::Resolved, "a", SLOT_MS, Cause::RuleRemoved)]);
        open.observe(&firing, false);
        assert_eq!(open.retain(&BTreeSet::from([origin("f", "g")]), SLOT_MS), []);
        let events = open.retain(&BTreeSet::new(), 1);
        assert_eq!(said(&events), [(Change::Resolved, "a", 60_000, Cause::RuleRemoved)]);
        assert_eq!(open.retain(&BTreeSet::new(), 1), []);
    }

    #[test]
    fn a_limit_and_a_wait_that_begins_again_end_alerts() {
        let firing = group("A", vec![alert("a", State::Firing)]);
        let mut open = OpenAlerts::default();
        open.observe(&firing, false);
        let mut limited = group("A", vec![]);
        limited.rules[0].last_error = Some("exceeded limit".to_owned());
        let events = open.observe(&limited, false);
        assert_eq!(said(&events), [(Change::Resolved, "a", SLOT_MS, Cause::Evaluation)]);
        open.observe(&firing, false);
        let events = open.observe(&group("A", vec![alert("a", State::Pending)]), false);
        assert_eq!(said(&events), [(Change::Resolved, "a", SLOT_MS, Cause::Unseen)]);
    }
}
