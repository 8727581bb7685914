//! What is known of one URL, whichever items of the configuration lead to it.

use super::alert::Alert;
use super::ledger::Accepted;
use super::pump::Pump;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};
use tidepool_lifecycle::clock::system_now_ms;
use tidepool_telemetry::{HistogramValue, Latencies, MetricsText, SummaryValue, escaped};

/// An Alertmanager. Its figures end when no endpoint uses it any more, as upstream's do.
pub(super) struct Peer {
    url: String,
    pub figures: Figures,
    accepted: Mutex<Accepted>,
    failure: Mutex<Option<Failure>>,
    /// Held by the endpoint that runs it; `None` without a journal.
    pub pump: Option<Arc<tokio::sync::Mutex<Pump>>>,
}

#[derive(Default)]
pub(super) struct Figures {
    pub sent: AtomicU64,
    pub errors: AtomicU64,
    pub dropped: AtomicU64,
    pub queue_length: AtomicU64,
    /// Alerts that Alertmanager heard of after their end only.
    pub not_notified: AtomicU64,
    /// Ends of alerts in the journal that it has not heard of.
    undelivered: AtomicU64,
    /// Time of the oldest of them; 0 without one.
    undelivered_since_ms: AtomicI64,
    /// When it last accepted alerts; 0 if it has not.
    succeeded_ms: AtomicI64,
    latencies: Mutex<Latencies>,
}

/// Why and since when an Alertmanager does not accept alerts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub since_ms: i64,
    pub error: String,
}

/// State of an Alertmanager, for the API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlertmanagerStatus {
    pub url: String,
    /// Alerts that wait for being sent.
    pub queue_length: u64,
    /// Ends of alerts that it has not heard of.
    pub undelivered: u64,
    /// Time of the oldest of them.
    pub undelivered_since_ms: Option<i64>,
    pub sent: u64,
    /// Alerts in requests that failed.
    pub errors: u64,
    /// Alerts that a full queue or a stop dropped.
    pub dropped: u64,
    /// When it last accepted alerts.
    pub succeeded_ms: Option<i64>,
    pub failure: Option<Failure>,
}

/// All Alertmanagers that are in use.
#[derive(Default)]
pub(super) struct Peers(Mutex<BTreeMap<String, Weak<Peer>>>);

impl Peer {
    pub fn url(&self) -> &str {
        &self.url
    }

    pub fn add_accepted(&self, alerts: &[Alert]) {
        // Without a pump, nobody asks for it.
        if self.pump.is_some() {
            locked(&self.accepted).add(alerts, tokio::time::Instant::now());
        }
    }

    pub fn report_undelivered(&self, ends: u64, oldest_ms: Option<i64>) {
        self.figures.undelivered.store(ends, Relaxed);
        self.figures.undelivered_since_ms.store(oldest_ms.unwrap_or(0), Relaxed);
    }

    pub fn with_accepted<T>(&self, read: impl FnOnce(&Accepted) -> T) -> T {
        read(&locked(&self.accepted))
    }

    /// Counts alerts that were accepted.
    pub fn report_sent(&self, alerts: usize, took: Duration) {
        self.figures.sent.fetch_add(alerts as u64, Relaxed);
        self.figures.succeeded_ms.store(system_now_ms(), Relaxed);
        locked(&self.figures.latencies).add(Instant::now(), took);
        if let Some(Failure { since_ms, .. }) = locked(&self.failure).take() {
            tracing::info!(alertmanager = self.url, since_ms, "Alertmanager accepts alerts again");
        }
    }

    /// Counts alerts that were not accepted. An error is logged when it changes.
    pub fn report_failed(&self, alerts: usize, error: String) {
        self.figures.errors.fetch_add(alerts as u64, Relaxed);
        let mut failure = locked(&self.failure);
        if failure.as_ref().is_none_or(|before| before.error != error) {
            tracing::error!(
                alertmanager = self.url,
                alerts,
                error,
                "Alertmanager did not accept alerts; those that fire are sent again"
            );
        }
        let since_ms = failure.as_ref().map_or_else(system_now_ms, |before| before.since_ms);
        *failure = Some(Failure { since_ms, error });
    }

    pub fn status(&self) -> AlertmanagerStatus {
        AlertmanagerStatus {
            url: self.url.clone(),
            queue_length: self.figures.queue_length.load(Relaxed),
            undelivered: self.figures.undelivered.load(Relaxed),
            undelivered_since_ms: Some(self.figures.undelivered_since_ms.load(Relaxed))
                .filter(|ms| *ms > 0),
            sent: self.figures.sent.load(Relaxed),
            errors: self.figures.errors.load(Relaxed),
            dropped: self.figures.dropped.load(Relaxed),
            succeeded_ms: Some(self.figures.succeeded_ms.load(Relaxed)).filter(|ms| *ms > 0),
            failure: locked(&self.failure).clone(),
        }
    }
}

impl Peers {
    /// Returns what is known of a URL. `pump` makes the pump of one that is not in use yet.
    pub fn get(&self, url: &str, pump: impl FnOnce() -> Option<Pump>) -> Arc<Peer> {
        let mut peers = locked(&self.0);
        peers.retain(|_, peer| peer.strong_count() > 0);
        if let Some(peer) = peers.get(url).and_then(Weak::upgrade) {
            return peer;
        }
        let peer = Arc::new(Peer {
            url: url.to_owned(),
            figures: Figures::default(),
            accepted: Mutex::default(),
            failure: Mutex::default(),
            pump: pump().map(|pump| Arc::new(tokio::sync::Mutex::new(pump))),
        });
        peers.insert(url.to_owned(), Arc::downgrade(&peer));
        peer
    }

    /// Returns all that are in use, by URL.
    pub fn all(&self) -> Vec<Arc<Peer>> {
        locked(&self.0).values().filter_map(Weak::upgrade).collect()
    }

    /// Writes the metrics. Names and help are those of upstream (`notifier/metric.go` in
    /// prometheus/prometheus), but for the last two.
    pub fn show(&self, text: &mut MetricsText) {
        let peers = self.all();
        if peers.is_empty() {
            return;
        }
        let labels: Vec<String> =
            peers.iter().map(|peer| format!("alertmanager=\"{}\"", escaped(&peer.url))).collect();
        let (mut summaries, mut histograms) = (Vec::new(), Vec::new());
        for (labels, peer) in labels.iter().zip(&peers) {
            // Locked once, so that summary and histogram have the same count.
            let latencies = locked(&peer.figures.latencies);
            let (count, seconds) = (latencies.count, latencies.seconds);
            // Upstream has no series before the first observation.
            if count > 0 {
                let quantiles = latencies.quantiles(Instant::now());
                let summary: SummaryValue<'_> = (labels, quantiles, count, seconds);
                summaries.push(summary);
                let histogram: HistogramValue<'_> = (labels, latencies.buckets(), count, seconds);
                histograms.push(histogram);
            }
        }
        if !summaries.is_empty() {
            text.summaries(
                "prometheus_notifications_latency_seconds",
                "Latency quantiles for sending alert notifications.",
                &summaries,
            );
            text.histograms(
                "prometheus_notifications_latency_histogram_seconds",
                "Latency histogram for sending alert notifications.",
                &histograms,
            );
        }
        let values = |of: fn(&Figures) -> &AtomicU64| -> Vec<(&str, u64)> {
            let values = labels.iter().zip(&peers);
            values.map(|(labels, peer)| (&**labels, of(&peer.figures).load(Relaxed))).collect()
        };
        text.counters(
            "prometheus_notifications_errors_total",
            "Total number of sent alerts affected by errors.",
            &values(|figures| &figures.errors),
        );
        text.counters(
            "prometheus_notifications_sent_total",
            "Total number of alerts sent.",
            &values(|figures| &figures.sent),
        );
        text.counters(
            "prometheus_notifications_dropped_total",
            "Total number of alerts dropped due to errors when sending to Alertmanager.",
            &values(|figures| &figures.dropped),
        );
        text.gauges(
            "prometheus_notifications_queue_length",
            "The number of alert notifications in the queue.",
            &values(|figures| &figures.queue_length),
        );
        text.counters(
            "tidepool_notifications_alertmanager_not_notified_total",
            "Alerts that Alertmanager heard of after their end only, so that it notifies nobody.",
            &values(|figures| &figures.not_notified),
        );
        text.gauges(
            "tidepool_notifications_alertmanager_undelivered",
            "Ends of alerts in the journal that Alertmanager has not heard of.",
            &values(|figures| &figures.undelivered),
        );
    }
}

/// Locks a value of which no state is broken by a panic.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
