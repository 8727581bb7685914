//! Alerts as the samples of the last run have them.
//!
//! | in the last run | comes back as |
//! | --- | --- |
//! | firing | firing, active since the same time |
//! | pending, most of a long `for` over | pending; fires after the grace period |
//! | pending | pending; the outage does not count |
//! | ended, or longer ago than the tolerance | nothing |
//!
//! Unlike upstream, which moves the times of alerts that the second evaluation of a new run found,
//! all of them are back before the first one, whatever their `for` is. Nothing ends them before
//! that second evaluation. An alert that fired for `keep_firing_for` alone starts that time again.
//!
//! Source: `rules/group.go`, Prometheus 3.16, for tolerance, grace period and times.

use crate::alert::samples::ALERT_STATE;
use crate::alert::text::is_template;
use crate::alert::{Alert, AlertingRule, State, Unconfirmed};
use crate::file::Labels;
use crate::labels::{ALERT_NAME, LabelSet, METRIC_NAME};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use tidepool_model::is_stale_nan;

/// Requests of one alert name that are compared with each other; more are taken for shared.
const COMPARED_MAX: usize = 64;

/// The last sample of a series between the tolerance and now.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredSample {
    pub series: LabelSet,
    pub time_ms: i64,
    /// May be the marker of a series that ended.
    pub value: f64,
}

/// An alert that receivers were told of as firing, and not as ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Told {
    pub labels: LabelSet,
    pub annotations: Arc<Labels>,
    pub value: f64,
    pub fired_at_ms: i64,
}

/// What to query before the alerts of a rule can be restored.
#[derive(Clone, Debug, PartialEq)]
pub struct RestoreRequest {
    /// Position of the rule in its group.
    pub rule: usize,
    /// What the labels of the series equal, other than their name, which is `ALERTS_FOR_STATE` or
    /// `ALERTS`.
    pub matchers: Vec<(String, String)>,
    /// Whether another rule may have written some of these series. See [`mark_shared`].
    pub is_shared: bool,
}

#[derive(Clone, Copy, Debug)]
pub struct RestoreOptions {
    /// Maximum length of an outage after which alerts come back.
    pub outage_tolerance_ms: i64,
    /// Minimum time until a pending alert fires whose `for` is this long or longer.
    pub grace_period_ms: i64,
    /// Maximum number of alerts that come back; firing ones are preferred.
    pub alerts_max: usize,
}

impl Default for RestoreOptions {
    fn default() -> RestoreOptions {
        RestoreOptions {
            outage_tolerance_ms: 60 * 60 * 1000,
            grace_period_ms: 10 * 60 * 1000,
            alerts_max: usize::MAX,
        }
    }
}

/// Marks the requests whose series may be those of several rules: alerts that come back for them
/// are told to nobody, and write no samples, before an evaluation finds them.
pub fn mark_shared<'a>(requests: impl IntoIterator<Item = &'a mut RestoreRequest>) {
    let mut by_name: HashMap<String, Vec<&'a mut RestoreRequest>> = HashMap::new();
    for request in requests {
        let name = request.matcher(ALERT_NAME).unwrap_or_default().to_owned();
        by_name.entry(name).or_default().push(request);
    }
    for requests in by_name.values_mut() {
        let is_compared = requests.len() <= COMPARED_MAX;
        let overlaps = |position: usize| {
            let others = requests.iter().enumerate().filter(|(other, _)| *other != position);
            others.into_iter().any(|(_, other)| !is_compared || requests[position].overlaps(other))
        };
        let shared: Vec<bool> = (0..requests.len()).map(overlaps).collect();
        requests.iter_mut().zip(shared).for_each(|(request, is)| request.is_shared = is);
    }
}

impl RestoreRequest {
    fn matcher(&self, name: &str) -> Option<&str> {
        let found = self.matchers.iter().find(|(found, _)| found == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Whether a series may match both.
    fn overlaps(&self, other: &RestoreRequest) -> bool {
        let differs =
            |(name, value): &(String, String)| other.matcher(name).is_some_and(|own| own != value);
        !self.matchers.iter().any(differs)
    }
}

impl AlertingRule {
    pub(crate) fn restore_request(&self, rule: usize) -> RestoreRequest {
        let is_fixed = |(_, value): &(&String, &String)| !value.is_empty() && !is_template(value);
        let mut labels: BTreeMap<String, String> = self
            .labels
            .iter()
            .filter(is_fixed)
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        labels.insert(ALERT_NAME.to_owned(), self.name.clone());
        RestoreRequest { rule, matchers: labels.into_iter().collect(), is_shared: false }
    }

    /// Returns the alerts that the last samples of `ALERTS_FOR_STATE` and `ALERTS` tell of.
    pub fn restored_alerts(
        &self,
        for_state: &[StoredSample],
        alerts: &[StoredSample],
        now_ms: i64,
        options: &RestoreOptions,
    ) -> Vec<Alert> {
        let mut last: HashMap<LabelSet, (i64, State)> = HashMap::new();
        for sample in alerts.iter().filter(|sample| !is_stale_nan(sample.value)) {
            let state = match sample.series.get(ALERT_STATE) {
                "firing" => State::Firing,
                _ => State::Pending,
            };
            let found = (sample.time_ms, state);
            let newest = last.entry(common_labels(&sample.series)).or_insert(found);
            *newest = (*newest).max(found);
        }
        let mut restored = Vec::new();
        for sample in for_state.iter().filter(|sample| !is_stale_nan(sample.value)) {
            let age_ms = now_ms.saturating_sub(sample.time_ms);
            if age_ms > options.outage_tolerance_ms {
                continue;
            }
            let state = last.get(&common_labels(&sample.series));
            let state = state.filter(|(time_ms, _)| *time_ms >= sample.time_ms);
            let is_firing = state.is_some_and(|(_, state)| *state == State::Firing);
            restored.push(self.restored_alert(sample, is_firing, now_ms, options));
        }
        restored.sort_by_key(|alert| Reverse(alert.state));
        restored.truncate(options.alerts_max);
        restored
    }

    fn restored_alert(
        &self,
        sample: &StoredSample,
        is_firing: bool,
        now_ms: i64,
        options: &RestoreOptions,
    ) -> Alert {
        // Seconds; a float is cut to the range of integers.
        let active_at_ms = (sample.value as i64).saturating_mul(1000);
        let elapsed_ms = sample.time_ms.saturating_sub(active_at_ms);
        let left_ms = self.for_ms.saturating_sub(elapsed_ms);
        let outage_ms = now_ms.saturating_sub(sample.time_ms);
        let labels = self.labels_of_alert(&sample.series);
        let mut alert = Alert::pending(labels, Arc::default(), f64::NAN, active_at_ms);
        if is_firing {
            alert.state = State::Firing;
            let fired_at_ms = active_at_ms.saturating_add(self.for_ms);
            alert.fired_at_ms = Some(fired_at_ms.min(sample.time_ms));
        }
        // A clock behind the samples has the times behind it, too.
        if outage_ms < 0 {
            alert.pass(outage_ms);
        } else if !is_firing && left_ms > 0 {
            let is_long = self.for_ms >= options.grace_period_ms;
            alert.active_at_ms = if is_long && left_ms < options.grace_period_ms {
                now_ms.saturating_add(options.grace_period_ms).saturating_sub(self.for_ms)
            } else {
                active_at_ms.saturating_add(outage_ms)
            };
        }
        alert
    }

    /// Brings alerts back; those that an evaluation of this run found take their times.
    pub(crate) fn restore(&mut self, restored: Vec<Alert>, now_ms: i64, is_shared: bool) {
        for mut alert in restored {
            let Some(own) = self.alerts.get_mut(&alert.labels) else {
                alert.unconfirmed =
                    Some(Unconfirmed { since_ms: now_ms, evaluations: 0, is_shared });
                self.alerts.insert(alert.labels.clone(), alert);
                continue;
            };
            if own.is_active() {
                own.active_at_ms = alert.active_at_ms;
                own.fired_at_ms = own.fired_at_ms.or(alert.fired_at_ms);
                own.state = own.state.max(alert.state);
            }
        }
        self.is_restored = true;
    }

    /// Brings back alerts that receivers take for firing and that no samples tell of: those of a
    /// rule that writes none, or whose samples a power cut cost. Returns those that are not this
    /// rule's.
    pub(crate) fn bring_back(
        &mut self,
        told: Vec<Told>,
        now_ms: i64,
        alerts_max: usize,
    ) -> Vec<Told> {
        let own = self.restore_request(0).matchers;
        let is_own = |told: &Told| own.iter().all(|(name, value)| told.labels.get(name) == value);
        let (mine, others): (Vec<Told>, Vec<Told>) = told.into_iter().partition(is_own);
        for Told { labels, annotations, value, fired_at_ms } in mine {
            // A wrong clock is behind what it told before.
            let fired_at_ms = fired_at_ms.min(now_ms);
            let active_at_ms = fired_at_ms.saturating_sub(self.for_ms);
            let is_new = !self.alerts.contains_key(&labels);
            if is_new && self.alerts.len() >= alerts_max {
                continue;
            }
            let alert = self.alerts.entry(labels.clone()).or_insert_with(|| {
                let mut alert = Alert::pending(labels, annotations, value, active_at_ms);
                let (since_ms, evaluations, is_shared) = (now_ms, 0, false);
                alert.unconfirmed = Some(Unconfirmed { since_ms, evaluations, is_shared });
                alert
            });
            // Samples have times in whole seconds.
            if alert.is_active() {
                alert.state = State::Firing;
                alert.active_at_ms = alert.active_at_ms.min(active_at_ms);
                alert.fired_at_ms = Some(fired_at_ms);
            }
        }
        others
    }

    /// Labels of the alert that has a series.
    fn labels_of_alert(&self, series: &LabelSet) -> LabelSet {
        let is_left = |(name, value): &(&str, &str)| {
            let is_own = self.labels.get(*name).is_some_and(|own| own == value);
            *name != METRIC_NAME && !(is_own && is_template(value))
        };
        LabelSet::sorted(series.iter().filter(is_left))
    }
}

/// What the series of an alert have in common.
fn common_labels(series: &LabelSet) -> LabelSet {
    series.without(METRIC_NAME).without(ALERT_STATE)
}
