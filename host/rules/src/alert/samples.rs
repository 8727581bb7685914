//! The series that an alert has while it is active.

use crate::alert::{Alert, AlertingRule};
use crate::engine::{NewSample, NewValue};
use crate::labels::{ALERT_NAME, LabelSet, METRIC_NAME};

/// Has 1 for each active alert.
pub(crate) const ALERTS: &str = "ALERTS";

/// Has the time, in seconds, since when an alert is active.
pub(crate) const ALERTS_FOR_STATE: &str = "ALERTS_FOR_STATE";

pub(crate) const ALERT_STATE: &str = "alertstate";

impl AlertingRule {
    /// Returns the samples of active alerts; none before the state of the last run is back.
    pub(crate) fn samples<H>(&self, time_ms: i64) -> Vec<NewSample<H>> {
        let is_written = |alert: &&Alert| alert.is_active() && !alert.is_shared();
        let alerts = self.alerts.values().filter(|_| self.is_restored).filter(is_written);
        let sample = |series, value| NewSample { series, time_ms, value: NewValue::Float(value) };
        let samples = alerts.flat_map(|alert| {
            let state = [(METRIC_NAME, ALERTS), (ALERT_STATE, alert.state.name())];
            let active_at = alert.active_at_ms.div_euclid(1000) as f64;
            [
                sample(self.series(alert, &state), 1.0),
                sample(self.series(alert, &[(METRIC_NAME, ALERTS_FOR_STATE)]), active_at),
            ]
        });
        samples.collect()
    }

    /// Labels of a series of an alert. As upstream does it, a label of the rule whose template
    /// expands to nothing has the template as its value here.
    fn series(&self, alert: &Alert, own: &[(&str, &str)]) -> LabelSet {
        let rule = self.labels.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let name = (ALERT_NAME, self.name.as_str());
        LabelSet::new(rule.chain(alert.labels.iter()).chain(own.iter().copied()).chain([name]))
    }
}
