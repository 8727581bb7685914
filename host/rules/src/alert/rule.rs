//! An alerting rule with its alerts, and what an evaluation does to them.

use crate::alert::found::Found;
use crate::alert::text::{Text, is_template};
use crate::alert::{Alert, RESOLVED_RETENTION_MS, State, Unconfirmed};
use crate::clock::{Step, milliseconds};
use crate::error::RuleError;
use crate::file::Labels;
use crate::labels::LabelSet;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug)]
pub struct AlertingRule {
    pub(crate) name: String,
    pub(crate) for_ms: i64,
    pub(crate) keep_firing_for_ms: i64,
    /// As they are written, those of the group included.
    pub(crate) labels: Labels,
    pub(crate) label_texts: Vec<(String, Text)>,
    pub(crate) annotation_texts: Vec<(String, Text)>,
    pub(crate) has_templates: bool,
    pub(crate) external_labels: Arc<Labels>,
    pub(crate) external_url: Arc<str>,
    pub(crate) alerts: BTreeMap<LabelSet, Alert>,
    /// Whether samples are written: not before the state of the last run is back.
    pub(crate) is_restored: bool,
}

/// What happened to an alert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It was found; or it waits again, as `for` was raised.
    Pending,
    Firing,
    Resolved,
    /// It ended without having fired, or the limit of its group cleared it.
    Dropped,
}

/// A change of an alert's state, with the alert as it is after it.
#[derive(Clone, Debug, PartialEq)]
pub struct Transition {
    pub change: Change,
    pub slot_ms: i64,
    pub alert: Alert,
}

/// How an evaluation treats alerts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    pub slot_ms: i64,
    pub step: Step,
    /// Of the group; 0 or less: none.
    pub limit: i64,
    /// Alerts that this rule may have.
    pub alerts_max: usize,
    pub settle_ms: i64,
}

impl AlertingRule {
    pub(crate) fn new(
        name: &str,
        labels: &Labels,
        annotations: &Labels,
        durations: (Duration, Duration),
        external: (&Arc<Labels>, &Arc<str>),
    ) -> AlertingRule {
        let compile = |texts: &Labels| -> Vec<(String, Text)> {
            let compiled = |text: &str| Text::compile(name, text);
            texts.iter().map(|(name, text)| (name.clone(), compiled(text))).collect()
        };
        AlertingRule {
            name: name.to_owned(),
            for_ms: milliseconds(durations.0),
            keep_firing_for_ms: milliseconds(durations.1),
            labels: labels.clone(),
            label_texts: compile(labels),
            annotation_texts: compile(annotations),
            has_templates: labels
                .values()
                .chain(annotations.values())
                .any(|text| is_template(text)),
            external_labels: external.0.clone(),
            external_url: external.1.clone(),
            alerts: BTreeMap::new(),
            is_restored: false,
        }
    }

    pub fn alerts(&self) -> impl Iterator<Item = &Alert> {
        self.alerts.values()
    }

    /// Whether the state of the last run is back, or does not come.
    pub fn is_restored(&self) -> bool {
        self.is_restored
    }

    /// The greatest state of its alerts.
    pub fn state(&self) -> Option<State> {
        self.alerts.values().map(|alert| alert.state).max()
    }

    /// Lets time pass that does not count, and after a jump has alerts wait for data.
    pub(crate) fn pass(&mut self, step: Step, slot_ms: i64) {
        for alert in self.alerts.values_mut() {
            alert.pass(step.uncounted_ms);
            alert.shift(step.returned_ms);
            if step.is_jump && alert.is_active() {
                let is_shared = alert.is_shared();
                // The evaluation at this slot is the first of them.
                let (since_ms, evaluations) = (slot_ms, 1);
                alert.unconfirmed = Some(Unconfirmed { since_ms, evaluations, is_shared });
            }
        }
    }

    /// Takes the result of an evaluation: alerts begin, fire, and end. An error leaves them as they
    /// were, but for the limit of the group, which clears them.
    pub(crate) fn update(
        &mut self,
        mut found: BTreeMap<LabelSet, Found>,
        terms: &Terms,
        transitions: &mut Vec<Transition>,
    ) -> Result<(), RuleError> {
        if terms.step.is_held {
            for (labels, found) in found {
                let known = self.alerts.get_mut(&labels).filter(|alert| alert.is_active());
                known.into_iter().for_each(|alert| alert.refresh(&found));
            }
            return Ok(());
        }
        let alerts = found.len() + self.kept_without(&found, terms.slot_ms);
        if alerts > terms.alerts_max {
            return Err(RuleError::AlertsMax { alerts, alerts_max: terms.alerts_max });
        }
        let mut tell = |change: Change, alert: &Alert| {
            let alert = alert.clone();
            transitions.push(Transition { change, slot_ms: terms.slot_ms, alert });
        };
        let (for_ms, keep_firing_for_ms) = (self.for_ms, self.keep_firing_for_ms);
        self.alerts.retain(|labels, alert| {
            let before = alert.state;
            let is_kept = match found.remove(labels) {
                // Begins anew below.
                Some(again) if before == State::Inactive => {
                    found.insert(labels.clone(), again);
                    return true;
                }
                Some(again) => {
                    alert.refresh(&again);
                    alert.keep_firing_since_ms = None;
                    alert.wait_or_fire(for_ms, terms.slot_ms);
                    true
                }
                None => alert.is_kept_when_absent(for_ms, keep_firing_for_ms, terms),
            };
            match (before, alert.state) {
                (State::Pending, _) if !is_kept && !alert.is_shared() => {
                    tell(Change::Dropped, alert)
                }
                (before, after) if !is_kept || before == after => {}
                (_, State::Firing) => tell(Change::Firing, alert),
                (_, State::Pending) => tell(Change::Pending, alert),
                _ => tell(Change::Resolved, alert),
            }
            is_kept
        });
        for (labels, found) in found {
            let mut alert =
                Alert::pending(labels.clone(), found.annotations, found.value, terms.slot_ms);
            alert.wait_or_fire(for_ms, terms.slot_ms);
            let is_firing = alert.state == State::Firing;
            tell(if is_firing { Change::Firing } else { Change::Pending }, &alert);
            self.alerts.insert(labels, alert);
        }
        self.drop_oldest_resolved(terms.alerts_max);
        let active = || self.alerts.values().filter(|alert| alert.is_active());
        // One that came back and was not found may be gone.
        let count = active().filter(|alert| alert.unconfirmed.is_none()).count();
        let limit = usize::try_from(terms.limit).unwrap_or(0);
        if limit > 0 && count > limit {
            active().for_each(|alert| tell(Change::Dropped, alert));
            self.alerts.clear();
            return Err(RuleError::Limit { limit, found: count, of: "alerts" });
        }
        Ok(())
    }

    /// Number of alerts that go on to fire although they are not found.
    fn kept_without(&self, found: &BTreeMap<LabelSet, Found>, slot_ms: i64) -> usize {
        let is_kept = |alert: &Alert| {
            let since_ms = alert.keep_firing_since_ms.unwrap_or(slot_ms);
            alert.state == State::Firing
                && slot_ms.saturating_sub(since_ms) < self.keep_firing_for_ms
        };
        let kept = self.alerts.iter().filter(|(_, alert)| is_kept(alert));
        kept.filter(|(labels, _)| !found.contains_key(*labels)).count()
    }

    /// Drops the oldest resolved alerts above the bound, so that labels which change with each
    /// evaluation do not fill the memory.
    fn drop_oldest_resolved(&mut self, alerts_max: usize) {
        let over = self.alerts.len().saturating_sub(alerts_max);
        if over == 0 {
            return;
        }
        let resolved = self.alerts.values().filter(|alert| !alert.is_active());
        let mut resolved: Vec<(i64, LabelSet)> =
            resolved.map(|alert| (alert.retained_since_ms, alert.labels.clone())).collect();
        resolved.sort_unstable();
        for (_, labels) in resolved.into_iter().take(over) {
            self.alerts.remove(&labels);
        }
    }
}

impl Alert {
    fn refresh(&mut self, found: &Found) {
        self.value = found.value;
        self.annotations = found.annotations.clone();
        self.unconfirmed = None;
    }

    fn wait_or_fire(&mut self, for_ms: i64, slot_ms: i64) {
        let is_over = slot_ms.saturating_sub(self.active_at_ms) >= for_ms;
        match self.state {
            State::Pending if is_over => {
                self.state = State::Firing;
                self.fired_at_ms = Some(slot_ms);
            }
            // A reload raised `for`.
            State::Firing if !is_over => {
                self.state = State::Pending;
                self.fired_at_ms = None;
                self.last_sent_ms = None;
                self.keep_firing_since_ms = None;
            }
            _ => {}
        }
    }

    fn is_kept_when_absent(&mut self, for_ms: i64, keep_firing_for_ms: i64, terms: &Terms) -> bool {
        let slot_ms = terms.slot_ms;
        if self.is_active() && self.awaits_data(slot_ms, terms.settle_ms) {
            return true;
        }
        match self.state {
            State::Firing => {
                if keep_firing_for_ms > 0 {
                    let since_ms = *self.keep_firing_since_ms.get_or_insert(slot_ms);
                    if slot_ms.saturating_sub(since_ms) < keep_firing_for_ms {
                        self.wait_or_fire(for_ms, slot_ms);
                        return true;
                    }
                }
                self.state = State::Inactive;
                self.resolved_at_ms = Some(slot_ms);
                self.retained_since_ms = slot_ms;
                !self.is_shared()
            }
            State::Inactive => {
                slot_ms.saturating_sub(self.retained_since_ms) <= RESOLVED_RETENTION_MS
            }
            State::Pending | State::Unknown => false,
        }
    }
}
