//! What is shown of groups, rules and alerts. A snapshot shares texts with its group, no state.

use crate::alert::{Alert, State};
use crate::file::{Kind, Labels};
use crate::group::Group;
use crate::group::rule::Rule;
use crate::labels::LabelSet;
use std::sync::Arc;
use std::time::Duration;

#[derive(Clone, Debug)]
pub struct GroupSnapshot {
    pub name: String,
    pub file: String,
    pub interval_ms: i64,
    pub query_offset_ms: i64,
    /// 0 or less: none.
    pub limit: i64,
    pub last_slot_ms: Option<i64>,
    /// Wall time.
    pub last_evaluation_ms: Option<i64>,
    pub evaluation_time: Duration,
    /// Whether the clock kept alerts from changing their state in the last evaluation.
    pub is_held: bool,
    pub rules: Vec<RuleSnapshot>,
}

#[derive(Clone, Debug)]
pub struct RuleSnapshot {
    pub name: String,
    pub query: String,
    /// Those of the group included; templates in an alerting rule.
    pub labels: Labels,
    pub health: Health,
    pub last_error: Option<String>,
    /// Wall time.
    pub last_evaluation_ms: Option<i64>,
    pub evaluation_time: Duration,
    pub kind: KindSnapshot,
}

#[derive(Clone, Debug)]
pub enum KindSnapshot {
    Recording,
    Alerting {
        state: State,
        for_: Duration,
        keep_firing_for: Duration,
        /// Templates.
        annotations: Labels,
        /// Whether the alerts of the last run are back, or do not come.
        is_restored: bool,
        /// Resolved ones included, which upstream does not show.
        alerts: Vec<AlertSnapshot>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// Not evaluated yet.
    Unknown,
    Ok,
    Err,
}

#[derive(Clone, Debug, PartialEq)]
pub struct AlertSnapshot {
    pub labels: LabelSet,
    pub annotations: Arc<Labels>,
    pub state: State,
    /// NaN for one that came back and was not found yet.
    pub value: f64,
    pub active_at_ms: i64,
    pub fired_at_ms: Option<i64>,
    pub keep_firing_since_ms: Option<i64>,
    pub resolved_at_ms: Option<i64>,
    /// Whether it came back from samples that another rule may have written, and was not found yet.
    pub is_shared: bool,
}

impl Group {
    pub fn snapshot(&self) -> GroupSnapshot {
        GroupSnapshot {
            name: self.name.clone(),
            file: self.file.clone(),
            interval_ms: self.slots.interval_ms(),
            query_offset_ms: self.query_offset_ms,
            limit: self.limit,
            last_slot_ms: self.last_slot_ms,
            last_evaluation_ms: self.evaluated.map(|(time_ms, _)| time_ms),
            evaluation_time: self.evaluated.map(|(_, took)| took).unwrap_or_default(),
            is_held: self.is_held,
            rules: self.rules.iter().map(Rule::snapshot).collect(),
        }
    }
}

impl Rule {
    fn snapshot(&self) -> RuleSnapshot {
        RuleSnapshot {
            name: self.definition.name().to_owned(),
            query: self.definition.expr.clone(),
            labels: self.definition.labels.clone(),
            health: match (&self.last_error, self.evaluated) {
                (Some(_), _) => Health::Err,
                (None, Some(_)) => Health::Ok,
                (None, None) => Health::Unknown,
            },
            last_error: self.last_error.as_ref().map(ToString::to_string),
            last_evaluation_ms: self.evaluated.map(|(time_ms, _)| time_ms),
            evaluation_time: self.evaluated.map(|(_, took)| took).unwrap_or_default(),
            kind: self.kind(),
        }
    }

    fn kind(&self) -> KindSnapshot {
        let (Kind::Alerting { for_, keep_firing_for, annotations, .. }, Some(rule)) =
            (&self.definition.kind, self.alerting())
        else {
            return KindSnapshot::Recording;
        };
        let least = if self.evaluated.is_some() { State::Inactive } else { State::Unknown };
        KindSnapshot::Alerting {
            state: rule.state().unwrap_or(least),
            for_: *for_,
            keep_firing_for: *keep_firing_for,
            annotations: annotations.clone(),
            is_restored: rule.is_restored(),
            alerts: rule.alerts().map(AlertSnapshot::from).collect(),
        }
    }
}

impl From<&Alert> for AlertSnapshot {
    fn from(alert: &Alert) -> AlertSnapshot {
        AlertSnapshot {
            labels: alert.labels.clone(),
            annotations: alert.annotations.clone(),
            state: alert.state,
            value: alert.value,
            active_at_ms: alert.active_at_ms,
            fired_at_ms: alert.fired_at_ms,
            keep_firing_since_ms: alert.keep_firing_since_ms,
            resolved_at_ms: alert.resolved_at_ms,
            is_shared: alert.is_shared(),
        }
    }
}
