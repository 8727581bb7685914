//! An alert as Alertmanager reads it, and the rules that change its labels before.
//!
//! Source: `notifier/alert.go` and `notifier/util.go` of prometheus/prometheus, and
//! `api/v2/openapi.yaml` of prometheus/alertmanager.

use crate::event::{Change, Event};
use jiff::Timestamp;
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, PoisonError};
use tidepool_relabel::{Rule, RuleError, relabel};
use tidepool_rules::alert::Notice;
use tidepool_rules::file::Labels;
use tidepool_rules::labels::LabelSet;
use tidepool_settings::RelabelConfig;

/// Identifies an alert by the labels that its rule gave it. Relabeling can make two alerts look the
/// same, but not their keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct AlertKey(u64);

/// An alert to be sent. Clones share their texts.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Alert {
    pub key: AlertKey,
    pub labels: LabelSet,
    pub annotations: Arc<Labels>,
    pub starts_at_ms: i64,
    /// When it ended or, if it fires, when Alertmanager may take it for ended.
    pub ends_at_ms: i64,
    pub is_resolved: bool,
    /// Empty for an alert that is sent from the journal, which does not hold it.
    pub generator_url: Arc<str>,
}

/// Labels and rules that are applied to all alerts of one stage.
#[derive(Default)]
pub(super) struct Relabeling {
    /// Added to alerts that lack them.
    external_labels: Labels,
    rules: Mutex<Vec<Rule>>,
}

impl AlertKey {
    pub fn of(labels: &LabelSet) -> AlertKey {
        let mut hasher = DefaultHasher::new();
        labels.hash(&mut hasher);
        AlertKey(hasher.finish())
    }
}

impl Alert {
    pub fn of_notice(notice: &Notice, generator_url: &Arc<str>) -> Alert {
        Alert {
            key: AlertKey::of(&notice.labels),
            labels: notice.labels.clone(),
            annotations: notice.annotations.clone(),
            starts_at_ms: notice.starts_at_ms,
            ends_at_ms: notice.ends_at_ms,
            is_resolved: notice.is_resolved,
            generator_url: Arc::clone(generator_url),
        }
    }

    /// Converts an event. One that tells of the beginning ends when it began, because nothing is
    /// known of its end; such alerts are not sent.
    pub fn of_event(event: &Event) -> Alert {
        Alert {
            key: AlertKey::of(&event.labels),
            labels: event.labels.clone(),
            annotations: event.annotations.clone(),
            starts_at_ms: event.fired_at_ms,
            ends_at_ms: event.time_ms,
            is_resolved: event.change == Change::Resolved,
            generator_url: "".into(),
        }
    }
}

impl Relabeling {
    pub fn new(
        external_labels: Labels,
        configs: &[RelabelConfig],
    ) -> Result<Relabeling, RuleError> {
        let rules = configs.iter().map(RelabelConfig::rule).collect::<Result<_, _>>()?;
        Ok(Relabeling { external_labels, rules: Mutex::new(rules) })
    }

    /// Returns the alert with changed labels, or `None` if a rule drops it.
    pub fn apply(&self, alert: Alert) -> Option<Alert> {
        let mut rules = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        if rules.is_empty() && self.external_labels.is_empty() {
            return Some(alert);
        }
        let mut labels = alert.labels.to_map();
        for (name, value) in &self.external_labels {
            labels.entry(name.clone()).or_insert_with(|| value.clone());
        }
        let is_kept = relabel(&mut rules, &mut labels);
        is_kept.then(|| Alert { labels: LabelSet::of(&labels), ..alert })
    }
}

impl Serialize for Alert {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        // Upstream leaves out what is empty.
        if !self.annotations.is_empty() {
            map.serialize_entry("annotations", &*self.annotations)?;
        }
        map.serialize_entry("endsAt", &time_text(self.ends_at_ms))?;
        map.serialize_entry("startsAt", &time_text(self.starts_at_ms))?;
        if !self.generator_url.is_empty() {
            map.serialize_entry("generatorURL", &*self.generator_url)?;
        }
        map.serialize_entry("labels", &Pairs(&self.labels))?;
        map.end()
    }
}

struct Pairs<'a>(&'a LabelSet);

impl Serialize for Pairs<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter())
    }
}

/// Prints a time as go-openapi does: in UTC, with milliseconds.
fn time_text(time_ms: i64) -> String {
    // A year that does not have four digits is no RFC 3339, and Alertmanager refuses the batch.
    const YEAR_0001_MS: i64 = -62_135_596_800_000;
    /// The last day that every time zone has, which is the last of jiff.
    const YEAR_9999_MS: i64 = 253_402_207_200_000;
    let time_ms = time_ms.clamp(YEAR_0001_MS, YEAR_9999_MS);
    let time = Timestamp::from_millisecond(time_ms).unwrap_or(Timestamp::UNIX_EPOCH);
    format!("{time:.3}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidepool_settings::yaml;

    fn notice() -> Notice {
        Notice {
            labels: LabelSet::new([("alertname", "Disk"), ("host", "a")]),
            annotations: Arc::new(Labels::from([("summary".to_owned(), "x \"y\"".to_owned())])),
            starts_at_ms: 1_700_000_000_123,
            ends_at_ms: 1_700_000_240_000,
            is_resolved: false,
        }
    }

    fn rules(text: &str) -> Vec<RelabelConfig> {
        let node = yaml::load(text).expect("YAML");
        yaml::read("rules", &node).expect("rules")
    }

    /// The keys and formats of `postableAlert` in Alertmanager's `openapi.yaml`.
    #[test]
    fn an_alert_is_written_as_alertmanager_reads_it() {
        let alert = Alert::of_notice(&notice(), &"http://a/graph?g0.expr=up&g0.tab=1".into());
        let expected = serde_json::json!([{
            "annotations": {"summary": "x \"y\""},
            "endsAt": "2023-11-14T22:17:20.000Z",
            "startsAt": "2023-11-14T22:13:20.123Z",
            "generatorURL": "http://a/graph?g0.expr=up&g0.tab=1",
            "labels": {"alertname": "Disk", "host": "a"},
        }]);
        assert_eq!(serde_json::to_value([alert]).expect("JSON"), expected);
        let bare = Notice { annotations: Arc::default(), ..notice() };
        let bare = serde_json::to_value(Alert::of_notice(&bare, &"".into())).expect("JSON");
        let keys: Vec<&String> = bare.as_object().expect("a map").keys().collect();
        assert_eq!(keys, ["endsAt", "startsAt", "labels"]);
    }

    #[test]
    fn no_time_is_outside_of_rfc_3339() {
        for (time_ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
            (i64::MAX, "9999-12-30T22:00:00.000Z"),
            (i64::MIN, "0001-01-01T00:00:00.000Z"),
        ] {
            assert_eq!(time_text(time_ms), text);
        }
    }

    /// Upstream: TestExternalLabels, TestHandlerRelabel.
    #[test]
    fn labels_of_the_alert_win_and_rules_see_external_labels() {
        let external = [("host", "node"), ("region", "west"), ("replica", "1")];
        let external = external.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let rules = rules(
            "- {action: labeldrop, regex: replica}\n\
             - {action: drop, source_labels: [alertname], regex: Quiet}\n\
             - {source_labels: [region], regex: (.).*, target_label: side}\n",
        );
        let relabeling = Relabeling::new(external, &rules).expect("rules");
        let alert = Alert::of_notice(&notice(), &"".into());
        let changed = relabeling.apply(alert.clone()).expect("it is kept");
        let expected = [("alertname", "Disk"), ("host", "a"), ("region", "west"), ("side", "w")];
        assert_eq!(changed.labels, LabelSet::new(expected));
        assert_eq!(changed, Alert { labels: changed.labels.clone(), ..alert.clone() });
        let quiet = Alert { labels: LabelSet::new([("alertname", "Quiet")]), ..alert.clone() };
        assert_eq!(relabeling.apply(quiet), None);
        assert_eq!(Relabeling::default().apply(alert.clone()), Some(alert));
    }
}
