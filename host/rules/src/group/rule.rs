//! A rule in its group: what it was made of, and what its evaluations left.

use crate::alert::{ALERTS, ALERTS_FOR_STATE, AlertingRule};
use crate::engine::{Reads, Sample};
use crate::error::RuleError;
use crate::file::{self, Kind, Labels};
use crate::group::Defaults;
use crate::labels::{LabelSet, METRIC_NAME};
use std::time::Duration;

#[derive(Debug)]
pub struct Rule {
    pub definition: Definition,
    pub body: Body,
    /// Series of the last evaluation that did not fail, in order.
    pub series: Vec<LabelSet>,
    /// Time of the last evaluation, and how long it took.
    pub evaluated: Option<(i64, Duration)>,
    pub last_error: Option<RuleError>,
    /// Which series its queries read.
    pub reads: Reads,
}

/// What makes two rules the same.
#[derive(Clone, Debug, PartialEq)]
pub struct Definition {
    pub kind: Kind,
    pub expr: String,
    /// Those of the group included.
    pub labels: Labels,
}

#[derive(Debug)]
pub enum Body {
    Recording,
    Alerting(AlertingRule),
}

impl Rule {
    pub fn new(rule: &file::Rule, group: &file::Group, defaults: &Defaults) -> Rule {
        let mut labels = group.labels.clone();
        labels.extend(rule.labels.iter().map(|(name, value)| (name.clone(), value.clone())));
        let external = (&defaults.external_labels, &defaults.external_url);
        let body = match &rule.kind {
            Kind::Recording { .. } => Body::Recording,
            Kind::Alerting { alert, for_, keep_firing_for, annotations } => {
                let durations = (*for_, *keep_firing_for);
                let rule = AlertingRule::new(alert, &labels, annotations, durations, external);
                Body::Alerting(rule)
            }
        };
        let (kind, expr) = (rule.kind.clone(), rule.expr.clone());
        let definition = Definition { kind, expr, labels };
        let (series, reads) = (Vec::new(), Reads::Anything);
        Rule { definition, body, series, evaluated: None, last_error: None, reads }
    }

    pub fn alerting(&self) -> Option<&AlertingRule> {
        match &self.body {
            Body::Alerting(rule) => Some(rule),
            Body::Recording => None,
        }
    }

    pub fn alerting_mut(&mut self) -> Option<&mut AlertingRule> {
        match &mut self.body {
            Body::Alerting(rule) => Some(rule),
            Body::Recording => None,
        }
    }

    /// Number of pending and firing alerts.
    pub fn alert_count(&self) -> usize {
        let alerts = self.alerting().into_iter().flat_map(AlertingRule::alerts);
        alerts.filter(|alert| alert.is_active()).count()
    }
}

/// Names of the series that a rule writes.
pub(crate) fn series_names(kind: &Kind) -> Vec<&str> {
    match kind {
        Kind::Recording { record } => vec![record],
        Kind::Alerting { .. } => vec![ALERTS, ALERTS_FOR_STATE],
    }
}

/// Whether the templates of a rule may have queries, which read anything. `labels` are those of the
/// rule and of its group.
pub(crate) fn may_query<'a>(kind: &'a Kind, labels: impl Iterator<Item = &'a String>) -> bool {
    let Kind::Alerting { annotations, .. } = kind else { return false };
    labels.chain(annotations.values()).any(|text| text.contains("query"))
}

impl Definition {
    /// Name of the series or of the alert.
    pub fn name(&self) -> &str {
        match &self.kind {
            Kind::Recording { record } => record,
            Kind::Alerting { alert, .. } => alert,
        }
    }

    /// Gives the samples of a query the name and the labels of a recording rule.
    pub fn record<H>(&self, samples: &mut [Sample<H>], limit: i64) -> Result<(), RuleError> {
        for sample in &mut *samples {
            let labels = self.labels.iter().map(|(name, value)| (name.as_str(), value.as_str()));
            let name = (METRIC_NAME, self.name());
            sample.labels = sample.labels.with([name].into_iter().chain(labels));
        }
        let mut series: Vec<&LabelSet> = samples.iter().map(|sample| &sample.labels).collect();
        series.sort_unstable();
        if series.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(RuleError::SameSeries);
        }
        let (found, limit) = (samples.len(), usize::try_from(limit).unwrap_or(0));
        if limit > 0 && found > limit {
            return Err(RuleError::Limit { limit, found, of: "series" });
        }
        Ok(())
    }
}
