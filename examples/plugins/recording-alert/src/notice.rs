//! The message for the webhook.
//!
//! Source: Alertmanager's documentation, "Configuration", section `webhook_config`: version 4.

use jiff::Timestamp;
use serde_json::{Value, json};

/// An alert that fires or has ended.
pub struct Alert {
    /// Sorted by name in ascending order.
    pub labels: Vec<(String, String)>,
    pub value: f64,
    pub starts_ms: i64,
    /// `None` if the alert still fires.
    pub ends_ms: Option<i64>,
}

/// Returns all alerts as one message.
pub fn message(name: &str, alerts: &[Alert]) -> String {
    let is_firing = alerts.iter().any(|alert| alert.ends_ms.is_none());
    let is_common = |pair: &&(String, String)| alerts.iter().all(|a| a.labels.contains(pair));
    let common = alerts.first().into_iter().flat_map(|alert| alert.labels.iter().filter(is_common));
    let alerts: Vec<Value> = alerts.iter().map(one).collect();
    json!({
        "version": "4",
        "groupKey": format!("{{}}:{{alertname={name:?}}}"),
        "truncatedAlerts": 0,
        "status": if is_firing { "firing" } else { "resolved" },
        "receiver": "tidepool",
        "groupLabels": {"alertname": name},
        "commonLabels": object(common),
        "commonAnnotations": {},
        "externalURL": "",
        "alerts": alerts,
    })
    .to_string()
}

fn one(alert: &Alert) -> Value {
    json!({
        "status": if alert.ends_ms.is_none() { "firing" } else { "resolved" },
        "labels": object(alert.labels.iter()),
        "annotations": {"value": alert.value.to_string()},
        "startsAt": time(alert.starts_ms),
        // Go's zero time, which Alertmanager writes for alerts without an end.
        "endsAt": alert.ends_ms.map_or("0001-01-01T00:00:00Z".to_owned(), time),
        "generatorURL": "",
        "fingerprint": format!("{:016x}", fingerprint(&alert.labels)),
    })
}

fn object<'a>(pairs: impl Iterator<Item = &'a (String, String)>) -> Value {
    pairs
        .map(|(name, value)| (name.clone(), json!(value)))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

fn time(ms: i64) -> String {
    Timestamp::from_millisecond(ms).map(|time| time.to_string()).unwrap_or_default()
}

/// Returns FNV-1a over names and values, by which Prometheus' client libraries hash label sets.
fn fingerprint(labels: &[(String, String)]) -> u64 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    let mut add = |byte: u8| hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    for (name, value) in labels {
        name.bytes().chain([255]).chain(value.bytes()).chain([255]).for_each(&mut add);
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_has_the_fields_of_alertmanagers() {
        let labels = |room: &str| {
            [("alertname", "A"), ("room", room)].map(|(n, v)| (n.to_owned(), v.to_owned())).to_vec()
        };
        let alerts = [
            Alert { labels: labels("a"), value: 1.5, starts_ms: 1_700_000_000_000, ends_ms: None },
            Alert { labels: labels("b"), value: 0.0, starts_ms: 0, ends_ms: Some(60_000) },
        ];
        let message: Value = serde_json::from_str(&message("A", &alerts)).expect("JSON");
        assert_eq!(message["status"], "firing");
        assert_eq!(message["commonLabels"], json!({"alertname": "A"}));
        assert_eq!(message["alerts"][0]["startsAt"], "2023-11-14T22:13:20Z");
        assert_eq!(message["alerts"][0]["endsAt"], "0001-01-01T00:00:00Z");
        assert_eq!(message["alerts"][1]["status"], "resolved");
        assert_eq!(message["alerts"][1]["endsAt"], "1970-01-01T00:01:00Z");
    }
}
