//! What a receiver is sent: the alerts of a group, as JSON and as templates see them.
//!
//! The JSON is the message of Alertmanager's webhooks, version 4 (prometheus/alertmanager 0.34,
//! `notify/webhook` and `template`), with three keys more for each alert: `id`, `late` and `value`.
//! `routeLabels` is always empty, since there are no routes.

use crate::event::Change;
use jiff::Timestamp;
use serde::Serialize;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use tidepool_model::number::general;
use tidepool_rules::file::Labels;
use tidepool_rules::labels::LabelSet;
use tidepool_rules::template::{AlertData, NotificationData, NotificationView};

const VERSION: &str = "4";

/// The end of an alert that fires: Go's zero time.
const NO_TIME: &str = "0001-01-01T00:00:00Z";

#[derive(Clone, Debug, PartialEq)]
pub struct Notification {
    pub receiver: String,
    pub reason: Reason,
    pub group_labels: Labels,
    pub group_key: String,
    /// URL under which users reach the server.
    pub external_url: String,
    pub alerts: Vec<NotifiedAlert>,
    /// Alerts of the group that are not among `alerts`.
    pub truncated_alerts: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub struct NotifiedAlert {
    /// The same for every notification of the same change ([`crate::event::Event::id`]).
    pub id: String,
    pub change: Change,
    pub labels: LabelSet,
    pub annotations: Arc<Labels>,
    pub starts_at_ms: i64,
    /// `None` while it fires.
    pub ends_at_ms: Option<i64>,
    pub value: f64,
    pub generator_url: String,
    pub fingerprint: String,
    /// Whether the receiver hears of it long after it happened.
    pub is_late: bool,
    /// Whether the receiver did not hear of it before.
    pub is_news: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    FirstNotification,
    NewAlerts,
    /// Some alerts, or all, resolved.
    Resolved,
    Repeat,
    /// A person asked for it.
    Test,
}

/// The first alerts of a notification, with what is computed over them.
#[derive(Clone, Debug)]
pub struct Excerpt<'n> {
    notification: &'n Notification,
    alerts: &'n [NotifiedAlert],
    labels: Vec<Arc<Labels>>,
    common_labels: Arc<Labels>,
    common_annotations: Arc<Labels>,
}

impl Notification {
    /// Returns `firing` if any alert fires.
    pub fn status(&self) -> &'static str {
        status(&self.alerts)
    }

    /// Takes at most this number of alerts; 0 means all.
    pub fn excerpt(&self, alerts_max: usize) -> Excerpt<'_> {
        let count = match alerts_max {
            0 => self.alerts.len(),
            most => self.alerts.len().min(most),
        };
        let alerts = &self.alerts[..count];
        let labels: Vec<_> = alerts.iter().map(|alert| Arc::new(alert.labels.to_map())).collect();
        let common_labels = Arc::new(common(labels.iter().map(|labels| &**labels)));
        let annotations = alerts.iter().map(|alert| &*alert.annotations);
        let common_annotations = Arc::new(common(annotations));
        Excerpt { notification: self, alerts, labels, common_labels, common_annotations }
    }
}

impl Excerpt<'_> {
    pub fn notification(&self) -> &Notification {
        self.notification
    }

    pub fn alerts(&self) -> &[NotifiedAlert] {
        self.alerts
    }

    /// Labels that all alerts have with the same values.
    pub fn common_labels(&self) -> &Labels {
        &self.common_labels
    }

    pub fn common_annotations(&self) -> &Labels {
        &self.common_annotations
    }

    pub fn status(&self) -> &'static str {
        status(self.alerts)
    }

    /// Returns the reason as Alertmanager writes it.
    pub fn reason(&self) -> &'static str {
        match self.notification.reason {
            Reason::FirstNotification => "first notification",
            Reason::NewAlerts => "new alerts added",
            Reason::Resolved if self.status() == Change::Firing.name() => "some alerts resolved",
            Reason::Resolved => "all alerts resolved",
            Reason::Repeat => "repeat interval elapsed",
            Reason::Test => "test",
        }
    }

    pub fn truncated_alerts(&self) -> usize {
        let Notification { alerts, truncated_alerts, .. } = self.notification;
        truncated_alerts.saturating_add(alerts.len() - self.alerts.len())
    }

    /// Returns the message of Alertmanager's webhooks.
    pub fn json(&self) -> Vec<u8> {
        let alert = |(alert, labels): (&'_ NotifiedAlert, &'_ Arc<Labels>)| AlertMessage {
            status: alert.change.name(),
            labels: labels.clone(),
            annotations: alert.annotations.clone(),
            starts_at: time_text(alert.starts_at_ms).into(),
            ends_at: alert.ends_at_ms.map_or(NO_TIME.into(), |at| time_text(at).into()),
            generator_url: alert.generator_url.clone(),
            fingerprint: alert.fingerprint.clone(),
            id: alert.id.clone(),
            late: alert.is_late,
            value: general(alert.value),
        };
        let message = Message {
            receiver: &self.notification.receiver,
            status: self.status(),
            alerts: self.alerts.iter().zip(&self.labels).map(alert).collect(),
            notification_reason: self.reason(),
            group_labels: &self.notification.group_labels,
            common_labels: &self.common_labels,
            common_annotations: &self.common_annotations,
            route_labels: BTreeMap::new(),
            external_url: &self.notification.external_url,
            version: VERSION,
            group_key: &self.notification.group_key,
            truncated_alerts: self.truncated_alerts(),
        };
        // Maps of texts to texts always can be written.
        serde_json::to_vec(&message).unwrap_or_default()
    }

    /// Returns what templates see of it.
    pub fn view(&self, now_ms: i64) -> NotificationView {
        let alert = |(alert, labels): (&'_ NotifiedAlert, &'_ Arc<Labels>)| AlertData {
            status: alert.change.name(),
            labels: labels.clone(),
            annotations: alert.annotations.clone(),
            starts_at_ms: alert.starts_at_ms,
            ends_at_ms: alert.ends_at_ms,
            generator_url: alert.generator_url.clone(),
            fingerprint: alert.fingerprint.clone(),
            id: alert.id.clone(),
            is_late: alert.is_late,
            value: alert.value,
        };
        NotificationView::new(NotificationData {
            receiver: self.notification.receiver.clone(),
            status: self.status(),
            reason: self.reason(),
            group_labels: Arc::new(self.notification.group_labels.clone()),
            common_labels: self.common_labels.clone(),
            common_annotations: self.common_annotations.clone(),
            external_url: self.notification.external_url.clone(),
            alerts: self.alerts.iter().zip(&self.labels).map(alert).collect(),
            now_ms,
        })
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Message<'n> {
    receiver: &'n str,
    status: &'static str,
    alerts: Vec<AlertMessage>,
    #[serde(rename = "notification_reason")]
    notification_reason: &'static str,
    group_labels: &'n Labels,
    common_labels: &'n Labels,
    common_annotations: &'n Labels,
    route_labels: Labels,
    #[serde(rename = "externalURL")]
    external_url: &'n str,
    version: &'static str,
    group_key: &'n str,
    truncated_alerts: usize,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AlertMessage {
    status: &'static str,
    #[serde(serialize_with = "shared")]
    labels: Arc<Labels>,
    #[serde(serialize_with = "shared")]
    annotations: Arc<Labels>,
    starts_at: Cow<'static, str>,
    ends_at: Cow<'static, str>,
    #[serde(rename = "generatorURL")]
    generator_url: String,
    fingerprint: String,
    id: String,
    late: bool,
    value: String,
}

fn shared<S: serde::Serializer>(labels: &Arc<Labels>, serializer: S) -> Result<S::Ok, S::Error> {
    (**labels).serialize(serializer)
}

fn status(alerts: &[NotifiedAlert]) -> &'static str {
    let is_firing = alerts.iter().any(|alert| alert.change == Change::Firing);
    if is_firing { Change::Firing.name() } else { Change::Resolved.name() }
}

fn common<'l>(mut maps: impl Iterator<Item = &'l Labels>) -> Labels {
    let mut common = maps.next().cloned().unwrap_or_default();
    for map in maps {
        common.retain(|name, value| map.get(name) == Some(value));
    }
    common
}

/// Formats a time as Go does in JSON (RFC 3339).
fn time_text(time_ms: i64) -> String {
    match Timestamp::from_millisecond(time_ms) {
        Ok(time) => time.to_string(),
        Err(_) => NO_TIME.to_owned(),
    }
}

#[cfg(test)]
pub(crate) mod tests;
