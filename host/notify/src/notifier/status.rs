//! What API, page and metrics show of notification.

use super::Notifier;
use super::running::State;
use crate::journal::JournalFigures;
use std::sync::atomic::Ordering::Relaxed;
use tidepool_telemetry::{MetricsText, escaped};

/// State of a receiver. What is not known is `None`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReceiverStatus {
    /// Of the section `notify`, or the URL of an Alertmanager.
    pub name: String,
    pub kind: &'static str,
    /// Events that should be delivered by now.
    pub undelivered: u64,
    /// Time of the oldest of them.
    pub undelivered_since_ms: Option<i64>,
    /// Events that wait for their group's interval.
    pub waiting: u64,
    /// Alerts that fire and were due while a silence matched.
    pub muted: u64,
    pub failing_since_ms: Option<i64>,
    /// Without secrets.
    pub last_error: Option<String>,
    pub succeeded_ms: Option<i64>,
    /// Notifications; alerts of an Alertmanager.
    pub sent: u64,
    /// Attempts; alerts of an Alertmanager.
    pub failed: u64,
    /// Events that the limits of the journal dropped.
    pub dropped: u64,
    /// Events that a silence kept back.
    pub silenced: u64,
    /// Heartbeats that were not sent, because the node was not well.
    pub skipped: u64,
    /// Whether a restart would deliver again what was delivered, because the position cannot be
    /// written.
    pub is_position_unwritten: bool,
    pub damaged_positions: u64,
}

impl ReceiverStatus {
    fn new(name: String, kind: &'static str) -> ReceiverStatus {
        ReceiverStatus { name, kind, ..ReceiverStatus::default() }
    }
}

/// Figures beside those of receivers.
#[derive(Clone, Debug)]
pub struct NotifierFigures {
    pub journal: JournalFigures,
}

impl Notifier {
    pub fn figures(&self) -> NotifierFigures {
        NotifierFigures { journal: self.0.journal.figures() }
    }

    /// State of all receivers by name, and then of all Alertmanagers.
    pub fn receivers(&self) -> Vec<ReceiverStatus> {
        let states = self.0.receivers.states().into_iter();
        let mut all: Vec<ReceiverStatus> =
            states.map(|(name, kind, state)| receiver(name, kind, &state)).collect();
        all.extend(self.0.alertmanagers.statuses().into_iter().map(|status| ReceiverStatus {
            undelivered: status.undelivered,
            undelivered_since_ms: status.undelivered_since_ms,
            failing_since_ms: status.failure.as_ref().map(|failure| failure.since_ms),
            last_error: status.failure.map(|failure| failure.error),
            succeeded_ms: status.succeeded_ms,
            sent: status.sent,
            failed: status.errors,
            dropped: status.dropped,
            ..ReceiverStatus::new(status.url, "alertmanager")
        }));
        all
    }

    /// Writes the metrics.
    pub fn show(&self, text: &mut MetricsText) {
        self.0.alertmanagers.show(text);
        self.0.silences.show(text);
        let JournalFigures { bytes, segments, open, unwritten, .. } = self.0.journal.figures();
        let figures = self.0.journal.figures();
        let name = |of: &str| format!("tidepool_alert_journal_{of}");
        for (of, help, value) in [
            ("bytes", "Size of the journal of alerts.", bytes),
            ("segments", "Files of the journal of alerts.", segments),
            ("open_alerts", "Alerts that began to fire and did not end.", open),
            (
                "unwritten_events",
                "Events that are in memory only, because the disk takes none.",
                unwritten,
            ),
        ] {
            text.gauge(&name(of), help, value);
        }
        for (of, help, value) in [
            (
                "failed_writes_total",
                "Writes of the journal that failed.",
                figures.failed_writes_total,
            ),
            ("damaged_total", "Places of damage that were found.", figures.damaged_total),
            ("dropped_events_total", "Events that the limits dropped.", figures.dropped_total),
            ("lost_events_total", "Events that were never written.", figures.lost_total),
        ] {
            text.counter(&name(of), help, value);
        }
        let receivers = self.0.receivers.states();
        let receivers: Vec<ReceiverStatus> =
            receivers.into_iter().map(|(name, kind, state)| receiver(name, kind, &state)).collect();
        if !receivers.is_empty() {
            show_receivers(text, &receivers);
        }
    }
}

fn show_receivers(text: &mut MetricsText, receivers: &[ReceiverStatus]) {
    let labels: Vec<String> = receivers
        .iter()
        .map(|receiver| format!("receiver=\"{}\"", escaped(&receiver.name)))
        .collect();
    let values = |of: &dyn Fn(&ReceiverStatus) -> f64| -> Vec<(&str, f64)> {
        labels.iter().map(String::as_str).zip(receivers.iter().map(of)).collect()
    };
    let seconds = |time_ms: Option<i64>| time_ms.map_or(0.0, |time_ms| time_ms as f64 / 1000.0);
    text.gauges(
        "tidepool_notify_undelivered_events",
        "Events that should be delivered by now, by receiver.",
        &values(&|receiver| receiver.undelivered as f64),
    );
    text.gauges(
        "tidepool_notify_oldest_undelivered_timestamp_seconds",
        "Time of the oldest undelivered event; 0 if there is none.",
        &values(&|receiver| seconds(receiver.undelivered_since_ms)),
    );
    text.gauges(
        "tidepool_notify_waiting_events",
        "Events that wait for the interval of their group.",
        &values(&|receiver| receiver.waiting as f64),
    );
    text.gauges(
        "tidepool_notify_muted_alerts",
        "Alerts that fire and were due while a silence matched.",
        &values(&|receiver| receiver.muted as f64),
    );
    text.gauges(
        "tidepool_notify_position_unwritten",
        "Whether the position cannot be written, so that a restart would deliver again.",
        &values(&|receiver| f64::from(u8::from(receiver.is_position_unwritten))),
    );
    text.gauges(
        "tidepool_notify_last_success_timestamp_seconds",
        "Time at which the receiver last accepted; 0 if it has not since the start.",
        &values(&|receiver| seconds(receiver.succeeded_ms)),
    );
    text.counters(
        "tidepool_notify_sent_total",
        "Notifications that the receiver accepted.",
        &values(&|receiver| receiver.sent as f64),
    );
    text.counters(
        "tidepool_notify_failed_total",
        "Attempts that failed or were refused.",
        &values(&|receiver| receiver.failed as f64),
    );
    text.counters(
        "tidepool_notify_dropped_events_total",
        "Events that the limits of the journal dropped before they were delivered.",
        &values(&|receiver| receiver.dropped as f64),
    );
    text.counters(
        "tidepool_notify_silenced_events_total",
        "Events that a silence kept from the receiver.",
        &values(&|receiver| receiver.silenced as f64),
    );
    text.counters(
        "tidepool_notify_skipped_heartbeats_total",
        "Heartbeats that were not sent, because the node was not well.",
        &values(&|receiver| receiver.skipped as f64),
    );
    text.counters(
        "tidepool_notify_damaged_positions_total",
        "Damaged positions: delivery started at the newest event, with the alerts that fired.",
        &values(&|receiver| receiver.damaged_positions as f64),
    );
}

fn receiver(name: String, kind: &'static str, state: &State) -> ReceiverStatus {
    match state {
        State::Pump(status) => ReceiverStatus {
            undelivered: status.undelivered,
            undelivered_since_ms: status.oldest_undelivered_ms,
            waiting: status.waiting,
            muted: status.muted,
            failing_since_ms: status.failing.as_ref().map(|failing| failing.since_ms),
            last_error: status.failing.as_ref().map(|failing| failing.error.clone()),
            succeeded_ms: status.succeeded_ms,
            sent: status.totals.sent,
            failed: status.totals.failed,
            dropped: status.totals.dropped,
            silenced: status.totals.silenced,
            is_position_unwritten: status.is_position_unwritten,
            damaged_positions: status.damaged_positions_total,
            ..ReceiverStatus::new(name, kind)
        },
        State::Heartbeat(figures) => {
            let (succeeded_ms, trouble) =
                (figures.succeeded_at_ms.load(Relaxed), figures.trouble());
            ReceiverStatus {
                failing_since_ms: trouble.as_ref().map(|trouble| trouble.since_ms),
                last_error: trouble.map(|trouble| trouble.reason),
                succeeded_ms: (succeeded_ms > 0).then_some(succeeded_ms),
                sent: figures.sent_total.load(Relaxed),
                failed: figures.failed_total.load(Relaxed),
                skipped: figures.skipped_total.load(Relaxed),
                ..ReceiverStatus::new(name, kind)
            }
        }
    }
}
