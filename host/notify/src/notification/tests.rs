//! The message of a webhook, against the fields that Alertmanager documents.

use super::*;
use crate::event::fingerprint;
use serde_json::{Value, json};

pub fn labels(pairs: &[(&str, &str)]) -> Labels {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// An alert that fires since 2023-11-14T22:13:20Z.
pub fn alert(pairs: &[(&str, &str)], annotations: &[(&str, &str)]) -> NotifiedAlert {
    let set = LabelSet::new(pairs.iter().copied());
    NotifiedAlert {
        id: "00ff".into(),
        change: Change::Firing,
        fingerprint: fingerprint(&set),
        labels: set,
        annotations: Arc::new(labels(annotations)),
        starts_at_ms: 1_700_000_000_000,
        ends_at_ms: None,
        value: 1.5,
        generator_url: "http://node/graph".into(),
        is_late: false,
        is_news: true,
    }
}

pub fn notification(alerts: Vec<NotifiedAlert>) -> Notification {
    Notification {
        receiver: "phone".into(),
        reason: Reason::FirstNotification,
        group_labels: labels(&[("alertname", "A")]),
        group_key: "{}:{alertname=\"A\"}".into(),
        external_url: "http://node".into(),
        alerts,
        truncated_alerts: 0,
    }
}

/// Labels, annotations and fingerprints are those of `TestData` in upstream's `template_test.go`.
#[test]
fn the_message_is_alertmanagers() {
    let first = alert(
        &[("severity", "warning"), ("job", "foo")],
        &[("description", "something happened"), ("runbook", "foo")],
    );
    let second = NotifiedAlert {
        change: Change::Resolved,
        ends_at_ms: Some(1_700_000_000_250),
        is_late: true,
        value: f64::INFINITY,
        ..alert(
            &[("severity", "critical"), ("job", "foo")],
            &[("description", "something else happened"), ("runbook", "foo")],
        )
    };
    let notification = Notification { truncated_alerts: 2, ..notification(vec![first, second]) };
    let found: Value = serde_json::from_slice(&notification.excerpt(0).json()).expect("JSON");
    let expected = json!({
        "receiver": "phone",
        "status": "firing",
        "alerts": [
            {
                "status": "firing",
                "labels": {"severity": "warning", "job": "foo"},
                "annotations": {"description": "something happened", "runbook": "foo"},
                "startsAt": "2023-11-14T22:13:20Z",
                "endsAt": "0001-01-01T00:00:00Z",
                "generatorURL": "http://node/graph",
                "fingerprint": "9266ef3da838ad95",
                "id": "00ff",
                "late": false,
                "value": "1.5",
            },
            {
                "status": "resolved",
                "labels": {"severity": "critical", "job": "foo"},
                "annotations": {"description": "something else happened", "runbook": "foo"},
                "startsAt": "2023-11-14T22:13:20Z",
                "endsAt": "2023-11-14T22:13:20.25Z",
                "generatorURL": "http://node/graph",
                "fingerprint": "3b15fd163d36582e",
                "id": "00ff",
                "late": true,
                "value": "+Inf",
            },
        ],
        "notification_reason": "first notification",
        "groupLabels": {"alertname": "A"},
        "commonLabels": {"job": "foo"},
        "commonAnnotations": {"runbook": "foo"},
        "routeLabels": {},
        "externalURL": "http://node",
        "version": "4",
        "groupKey": "{}:{alertname=\"A\"}",
        "truncatedAlerts": 2,
    });
    assert_eq!(found, expected);
}

#[test]
fn an_excerpt_is_of_its_alerts() {
    let resolved = NotifiedAlert {
        change: Change::Resolved,
        ..alert(&[("alertname", "A"), ("job", "a")], &[])
    };
    let firing = alert(&[("alertname", "A"), ("job", "b")], &[("summary", "s")]);
    let whole = notification(vec![resolved, firing]);
    let excerpt = whole.excerpt(1);
    assert_eq!((whole.status(), excerpt.status()), ("firing", "resolved"));
    assert_eq!(excerpt.truncated_alerts(), 1);
    assert_eq!(*excerpt.common_labels(), labels(&[("alertname", "A"), ("job", "a")]));
    assert_eq!(*whole.excerpt(9).common_labels(), labels(&[("alertname", "A")]));
    let none = notification(vec![]);
    assert_eq!((none.status(), none.excerpt(0).common_labels().len()), ("resolved", 0));
}

/// Texts of `NotifyReason.String` in upstream's `notify/notify.go`.
#[test]
fn reasons_are_alertmanagers() {
    let firing = alert(&[("alertname", "A")], &[]);
    let resolved = NotifiedAlert { change: Change::Resolved, ..firing.clone() };
    for (reason, alerts, expected) in [
        (Reason::FirstNotification, vec![firing.clone()], "first notification"),
        (Reason::NewAlerts, vec![firing.clone()], "new alerts added"),
        (Reason::Resolved, vec![resolved.clone(), firing.clone()], "some alerts resolved"),
        (Reason::Resolved, vec![resolved], "all alerts resolved"),
        (Reason::Repeat, vec![firing.clone()], "repeat interval elapsed"),
        (Reason::Test, vec![firing], "test"),
    ] {
        let notification = Notification { reason, ..notification(alerts) };
        assert_eq!(notification.excerpt(0).reason(), expected);
    }
}

#[test]
fn times_are_written_or_none() {
    for (time_ms, expected) in [
        (0, "1970-01-01T00:00:00Z"),
        (1_700_000_000_010, "2023-11-14T22:13:20.01Z"),
        (i64::MAX, NO_TIME),
        (i64::MIN, NO_TIME),
    ] {
        assert_eq!(time_text(time_ms), expected);
    }
}
