//! What a backtest found.

use super::interval;
use super::order::Step;
use crate::alert::{Change, Transition};
use crate::engine::Reads;
use crate::file::{Labels, Rule, RuleFile};
use crate::group::{Defaults, Report};
use crate::labels::LabelSet;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

#[derive(Clone, Debug)]
pub struct Outcome {
    /// In the order of the files.
    pub groups: Vec<GroupOutcome>,
    /// Names that rules read of the store.
    pub stored: BTreeSet<String>,
    /// Names that rules read of computed series.
    pub computed: BTreeSet<String>,
    /// Whether a rule reads series that it does not name.
    pub reads_any: bool,
    /// Names of the rules that read what is computed after them.
    pub circular: BTreeSet<String>,
}

#[derive(Clone, Debug)]
pub struct GroupOutcome {
    pub file: String,
    pub name: String,
    pub interval: Duration,
    pub rules: Vec<RuleOutcome>,
}

#[derive(Clone, Debug)]
pub struct RuleOutcome {
    pub rule: Rule,
    /// Evaluations from the start of the range on.
    pub evaluations: u64,
    pub failures: u64,
    pub last_error: Option<String>,
    pub done: Done,
}

/// What the evaluations of a rule gave.
#[derive(Clone, Debug)]
pub enum Done {
    Recording {
        /// Number of samples from the start of the range on.
        samples: u64,
        series: u64,
    },
    Alerting {
        /// Alerts that were pending, and did not fire.
        pending: u64,
        fired: u64,
        /// By the time at which they fired; fewer than `fired` if that are too many.
        alerts: Vec<FiredAlert>,
    },
}

/// An alert from its beginning to its end.
#[derive(Clone, Debug, PartialEq)]
pub struct FiredAlert {
    pub labels: LabelSet,
    /// As when it fired.
    pub annotations: Arc<Labels>,
    /// As when it fired; 0 for a native histogram.
    pub value: f64,
    pub active_at_ms: i64,
    pub fired_at_ms: i64,
    /// `None` if it fires at the end of the range.
    pub resolved_at_ms: Option<i64>,
}

impl Outcome {
    pub(super) fn new(files: &[RuleFile], defaults: &Defaults) -> Outcome {
        let mut groups = Vec::new();
        for file in files {
            groups.extend(file.groups.iter().map(|group| GroupOutcome {
                file: file.path.to_string_lossy().into_owned(),
                name: group.name.clone(),
                interval: interval(group, defaults),
                rules: group.rules.iter().map(RuleOutcome::new).collect(),
            }));
        }
        let (stored, computed, circular) = Default::default();
        Outcome { groups, stored, computed, reads_any: false, circular }
    }

    pub(super) fn note_reads(&mut self, reads: &Reads) {
        match reads {
            Reads::Anything => self.reads_any = true,
            Reads::Names(names) => {
                self.stored.extend(names.difference(&self.computed).cloned());
            }
        }
    }

    /// Sets what became of a rule.
    pub(super) fn set(&mut self, step: &Step, files: &[RuleFile], collector: Collector) {
        let (file, group, rule) = step.position();
        let before: usize = files.iter().take(file).map(|file| file.groups.len()).sum();
        let place = self.groups.get_mut(before + group);
        if let Some(place) = place.and_then(|group| group.rules.get_mut(rule)) {
            *place = collector.outcome;
        }
    }
}

impl RuleOutcome {
    fn new(rule: &Rule) -> RuleOutcome {
        let done = match rule.kind {
            crate::file::Kind::Recording { .. } => Done::Recording { samples: 0, series: 0 },
            crate::file::Kind::Alerting { .. } => {
                Done::Alerting { pending: 0, fired: 0, alerts: Vec::new() }
            }
        };
        let rule = rule.clone();
        RuleOutcome { rule, evaluations: 0, failures: 0, last_error: None, done }
    }
}

/// Collects what the evaluations of one rule report.
pub(super) struct Collector {
    outcome: RuleOutcome,
    /// Alerts that are pending or fire; those that fire have a position in the list if there was
    /// room for them.
    open: HashMap<LabelSet, Open>,
}

enum Open {
    Pending,
    Firing(Option<usize>),
}

impl Collector {
    pub fn new(rule: &Rule) -> Collector {
        Collector { outcome: RuleOutcome::new(rule), open: HashMap::new() }
    }

    /// Adds an evaluation. `room` is the number of alerts that may still be listed.
    pub fn add(&mut self, report: Report, room: &mut usize) {
        for rule in report.rules {
            self.outcome.evaluations += 1;
            match rule.result {
                Ok(count) => {
                    if let Done::Recording { samples, .. } = &mut self.outcome.done {
                        *samples += count as u64;
                    }
                }
                Err(error) => {
                    self.outcome.failures += 1;
                    self.outcome.last_error = Some(error.to_string());
                }
            }
            for transition in rule.transitions {
                self.note(transition, room);
            }
        }
    }

    fn note(&mut self, transition: Transition, room: &mut usize) {
        let Done::Alerting { pending, fired, alerts } = &mut self.outcome.done else { return };
        let Transition { change, slot_ms, alert } = transition;
        match change {
            Change::Pending => drop(self.open.insert(alert.labels, Open::Pending)),
            Change::Firing => {
                *fired += 1;
                let position = (*room > 0).then(|| {
                    *room -= 1;
                    alerts.push(FiredAlert {
                        labels: alert.labels.clone(),
                        annotations: alert.annotations,
                        value: alert.value,
                        active_at_ms: alert.active_at_ms,
                        fired_at_ms: slot_ms,
                        resolved_at_ms: None,
                    });
                    alerts.len() - 1
                });
                self.open.insert(alert.labels, Open::Firing(position));
            }
            Change::Resolved | Change::Dropped => match self.open.remove(&alert.labels) {
                Some(Open::Firing(position)) => {
                    let place = position.and_then(|position| alerts.get_mut(position));
                    if let Some(listed) = place {
                        listed.resolved_at_ms = Some(slot_ms);
                    }
                }
                Some(Open::Pending) => *pending += 1,
                None => {}
            },
        }
    }

    /// Ends the range: `series` are those that the rule wrote.
    pub fn finish(&mut self, series: &HashSet<u64>) {
        match &mut self.outcome.done {
            Done::Recording { series: count, .. } => *count = series.len() as u64,
            Done::Alerting { pending, .. } => {
                let open = self.open.values().filter(|open| matches!(open, Open::Pending));
                *pending += open.count() as u64;
            }
        }
    }
}
