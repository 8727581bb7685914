//! The outcome of a backtest as the API shows it.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use tidepool_rules::backtest::{Done, FiredAlert, Outcome, RuleOutcome};
use tidepool_rules::file::Kind;
use tidepool_rules::number::scientific;

/// What rules would have done from `start` to `end`, in seconds since the epoch.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BacktestReport {
    pub start: f64,
    pub end: f64,
    pub groups: Vec<GroupReport>,
    pub series: SeriesReport,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GroupReport {
    pub name: String,
    /// In seconds.
    pub interval: f64,
    pub rules: Vec<RuleReport>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RuleReport {
    pub name: String,
    pub query: String,
    pub evaluations: u64,
    pub failures: u64,
    /// Empty if no evaluation failed.
    pub last_error: String,
    #[serde(flatten)]
    pub kind: KindReport,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub enum KindReport {
    Recording {
        samples: u64,
        series: u64,
    },
    Alerting {
        /// `for`, in seconds.
        duration: f64,
        /// In seconds.
        keep_firing_for: f64,
        /// Alerts that were pending, and did not fire.
        pending: u64,
        fired: u64,
        /// Alerts that fired and are not listed.
        omitted: u64,
        alerts: Vec<AlertReport>,
    },
}

/// An alert that fired. Times are in RFC 3339.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AlertReport {
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
    pub active_at: String,
    pub fired_at: String,
    /// `None` if it fires at the end.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub resolved_at: Option<String>,
    pub value: String,
}

/// Names of the series that rules read.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SeriesReport {
    pub stored: BTreeSet<String>,
    pub computed: BTreeSet<String>,
    /// Whether rules read series that they do not name.
    pub any: bool,
    /// Names of the rules that read what is computed after them.
    pub circular: BTreeSet<String>,
}

impl BacktestReport {
    pub fn new(start_ms: i64, end_ms: i64, outcome: Outcome) -> BacktestReport {
        let Outcome { groups, stored, computed, reads_any, circular } = outcome;
        let groups = groups.into_iter().map(|group| GroupReport {
            name: group.name,
            interval: group.interval.as_secs_f64(),
            rules: group.rules.into_iter().map(rule).collect(),
        });
        BacktestReport {
            start: start_ms as f64 / 1000.0,
            end: end_ms as f64 / 1000.0,
            groups: groups.collect(),
            series: SeriesReport { stored, computed, any: reads_any, circular },
        }
    }
}

fn rule(outcome: RuleOutcome) -> RuleReport {
    let kind = match outcome.done {
        Done::Recording { samples, series } => KindReport::Recording { samples, series },
        Done::Alerting { pending, fired, alerts } => {
            let (duration, keep_firing_for) = match &outcome.rule.kind {
                Kind::Alerting { for_, keep_firing_for, .. } => (*for_, *keep_firing_for),
                Kind::Recording { .. } => Default::default(),
            };
            KindReport::Alerting {
                duration: duration.as_secs_f64(),
                keep_firing_for: keep_firing_for.as_secs_f64(),
                pending,
                fired,
                omitted: fired.saturating_sub(alerts.len() as u64),
                alerts: alerts.into_iter().map(alert).collect(),
            }
        }
    };
    RuleReport {
        name: outcome.rule.name().to_owned(),
        query: outcome.rule.expr,
        evaluations: outcome.evaluations,
        failures: outcome.failures,
        last_error: outcome.last_error.unwrap_or_default(),
        kind,
    }
}

fn alert(alert: FiredAlert) -> AlertReport {
    AlertReport {
        labels: alert.labels.to_map(),
        annotations: (*alert.annotations).clone(),
        active_at: rfc3339(alert.active_at_ms),
        fired_at: rfc3339(alert.fired_at_ms),
        resolved_at: alert.resolved_at_ms.map(rfc3339),
        value: scientific(alert.value),
    }
}

fn rfc3339(time_ms: i64) -> String {
    let time = Timestamp::from_millisecond(time_ms).unwrap_or_default();
    time.to_string()
}
