//! A notification as templates see it, and expansion with it.
//!
//! Names and types are those of Alertmanager's `template.Data`. Alerts have `ID`, `Late` and
//! `Value` besides. There are no routes, so that `RouteLabels` is empty. Functions are those of
//! alerts' rules except for queries, and of Alertmanager `append`, `date`, `dict`, `join`, `list`,
//! `now`, `safeUrl`, `since`, `stringSlice`, `toJson`, `trimSpace` and `urlUnescape`.
//!
//! Source: prometheus/alertmanager 0.34, `template/template.go` and its tests.

use super::budget::{Allowance, Budget, Limits};
use super::data::{Sample, Source};
use super::error::TemplateError;
use super::evaluate::State;
use super::functions::Dialect;
use super::time::Time;
use super::value::{Labels, List, Shape, Struct, Value};
use super::{Template, value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Types of lists; [`PAIRS`], [`STRINGS`] and [`ALERTS`] have methods.
pub const ALERTS: &str = "template.Alerts";
pub const CHOSEN_ALERTS: &str = "[]template.Alert";
pub const LIST: &str = "[]interface {}";
pub const PAIRS: &str = "template.Pairs";
pub const PLAIN_STRINGS: &str = "[]string";
pub const STRINGS: &str = "template.Strings";

/// Milliseconds of Go's zero time, which is the end of an alert that fires.
const ZERO_TIME_MS: i64 = -62_135_596_800_000;

const ALERT_NAME: &str = crate::labels::ALERT_NAME;

static NOTIFICATION: Shape = Shape {
    type_name: "*template.Data",
    fields: &[
        ("Receiver", "receiver"),
        ("Status", "status"),
        ("Alerts", "alerts"),
        ("NotificationReason", "notification_reason"),
        ("GroupLabels", "groupLabels"),
        ("CommonLabels", "commonLabels"),
        ("CommonAnnotations", "commonAnnotations"),
        ("RouteLabels", "routeLabels"),
        ("ExternalURL", "externalURL"),
    ],
};

static ALERT: Shape = Shape {
    type_name: "template.Alert",
    fields: &[
        ("Status", "status"),
        ("Labels", "labels"),
        ("Annotations", "annotations"),
        ("StartsAt", "startsAt"),
        ("EndsAt", "endsAt"),
        ("GeneratorURL", "generatorURL"),
        ("Fingerprint", "fingerprint"),
        ("ID", "id"),
        ("Late", "late"),
        ("Value", "value"),
    ],
};

static PAIR: Shape =
    Shape { type_name: "template.Pair", fields: &[("Name", "Name"), ("Value", "Value")] };

/// What a notification's templates are about.
#[derive(Clone, Debug)]
pub struct NotificationData {
    pub receiver: String,
    /// `firing` or `resolved`.
    pub status: &'static str,
    pub reason: &'static str,
    pub group_labels: Labels,
    pub common_labels: Labels,
    pub common_annotations: Labels,
    /// URL under which users reach the server.
    pub external_url: String,
    pub alerts: Vec<AlertData>,
    /// Time of the function `now`.
    pub now_ms: i64,
}

#[derive(Clone, Debug)]
pub struct AlertData {
    pub status: &'static str,
    pub labels: Labels,
    pub annotations: Labels,
    pub starts_at_ms: i64,
    /// `None` while it fires.
    pub ends_at_ms: Option<i64>,
    pub generator_url: String,
    pub fingerprint: String,
    pub id: String,
    pub is_late: bool,
    pub value: f64,
}

/// A notification that is prepared for any number of expansions.
#[derive(Clone, Debug)]
pub struct NotificationView {
    dot: Value,
    external_url: String,
    now_ms: i64,
}

impl NotificationView {
    pub fn new(data: NotificationData) -> NotificationView {
        let alerts = data.alerts.into_iter().map(AlertData::value);
        let values = vec![
            Value::text(data.receiver),
            Value::text(data.status),
            List::of(ALERTS, alerts),
            Value::text(data.reason),
            Value::Kv(data.group_labels),
            Value::Kv(data.common_labels),
            Value::Kv(data.common_annotations),
            Value::Kv(Labels::default()),
            Value::text(data.external_url.as_str()),
        ];
        let dot = Value::Struct(Arc::new(Struct { shape: &NOTIFICATION, values }));
        NotificationView { dot, external_url: data.external_url, now_ms: data.now_ms }
    }
}

impl AlertData {
    fn value(self) -> Value {
        let time = |time_ms| Value::Time { time: Time::from_millis(time_ms), is_pointer: false };
        let values = vec![
            Value::text(self.status),
            Value::Kv(self.labels),
            Value::Kv(self.annotations),
            time(self.starts_at_ms),
            time(self.ends_at_ms.unwrap_or(ZERO_TIME_MS)),
            Value::text(self.generator_url),
            Value::text(self.fingerprint),
            Value::text(self.id),
            Value::Bool(self.is_late),
            Value::Float(self.value),
        ];
        Value::Struct(Arc::new(Struct { shape: &ALERT, values }))
    }
}

impl Template {
    /// Parses a template of notifications; errors give this name.
    pub fn of_notification(name: &str, text: &str) -> Result<Template, TemplateError> {
        Template::parse_in(Dialect::Notification, name, text)
    }

    pub fn expand_notification(
        &self,
        view: &NotificationView,
        limits: &Limits,
    ) -> Result<String, TemplateError> {
        let clock = Clock { now_ms: view.now_ms };
        let budget = Budget::new(*limits, &Allowance::new(u64::MAX));
        State::new(self, &view.external_url, &clock, budget).run(view.dot.clone())
    }
}

/// Where a notification's templates have their time from. No function of theirs asks for samples.
struct Clock {
    now_ms: i64,
}

impl Source for Clock {
    fn query(&self, _: &str) -> Result<Vec<Sample>, String> {
        Err("notifications have no queries".into())
    }

    fn time_ms(&self) -> i64 {
        self.now_ms
    }
}

/// Yields names and values as Alertmanager sorts them: the name of the alert is first.
pub fn sorted(labels: &BTreeMap<String, String>) -> impl Iterator<Item = (&str, &str)> {
    let first = labels.get_key_value(ALERT_NAME);
    let others = labels.iter().filter(|(name, _)| *name != ALERT_NAME);
    first.into_iter().chain(others).map(|(name, value)| (name.as_str(), value.as_str()))
}

pub fn pairs(labels: &BTreeMap<String, String>) -> Value {
    let pair = |(name, value)| {
        let values = vec![Value::text(name), Value::text(value)];
        Value::Struct(Arc::new(Struct { shape: &PAIR, values }))
    };
    List::of(PAIRS, sorted(labels).map(pair))
}

/// Prints labels as Alertmanager does: `alertname=A, job=b`.
pub fn labels_text(labels: &BTreeMap<String, String>) -> String {
    joined(sorted(labels))
}

pub fn pairs_text(pairs: &[Value]) -> String {
    joined(pairs.iter().map(|pair| (field_text(pair, "Name"), field_text(pair, "Value"))))
}

fn joined<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let pairs: Vec<String> = pairs.map(|(name, value)| format!("{name}={value}")).collect();
    pairs.join(", ")
}

/// Returns the text in a field, which is empty if there is none.
pub fn field_text<'v>(value: &'v Value, name: &str) -> &'v str {
    match value {
        Value::Struct(value) => match value.get(name) {
            Some(Value::Text(text)) => text,
            _ => "",
        },
        _ => "",
    }
}

/// Returns the nesting of a map or list that holds these values; `None` if it is too deep, since
/// values are printed and dropped recursively.
pub fn nesting_above<'v>(values: impl IntoIterator<Item = &'v Value>) -> Option<usize> {
    let nesting = values.into_iter().map(|value| match value {
        Value::List(list) => list.nesting,
        Value::Map(map) => map.nesting,
        _ => 0,
    });
    Some(nesting.max().unwrap_or(0) + 1).filter(|nesting| *nesting <= value::NESTING_MAX)
}
