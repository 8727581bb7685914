//! Counters of the server, and their metrics.

use super::reply::Reply;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tidepool_store::BodyBudget;
use tidepool_telemetry::MetricsText;
use tokio::sync::Semaphore;

/// Maximum number of bodies that are translated concurrently.
const TRANSLATORS_MAX: usize = 4;

#[derive(Default)]
pub struct HttpCounters {
    pub write_requests: AtomicU64,
    pub write_requests_failed: AtomicU64,
    pub read_requests: AtomicU64,
    pub read_requests_failed: AtomicU64,
    pub connections_open: AtomicU64,
    pub connections_idle: AtomicU64,
    pub connections_crowded_out: AtomicU64,
    pub connections_slow_head: AtomicU64,
    pub connections_slow_body: AtomicU64,
    pub connections_slow_reader: AtomicU64,
    pub connections_malformed: AtomicU64,
    pub connections_insecure: AtomicU64,
    pub refused_unauthorized: AtomicU64,
    pub refused_foreign: AtomicU64,
    pub refused_slow: AtomicU64,
    pub refused_too_large: AtomicU64,
    pub refused_type: AtomicU64,
    pub refused_unavailable: AtomicU64,
}

/// Permits for translating bodies, and counters by endpoint.
pub struct Translation {
    pub turns: Arc<Semaphore>,
    pub otlp: HandlerCounters,
    /// Bodies in Prometheus' text format, OpenMetrics or protobuf.
    pub import: HandlerCounters,
    /// Bodies that are translated by decoder plugins.
    pub push: HandlerCounters,
}

#[derive(Default)]
pub struct HandlerCounters {
    pub requests: AtomicU64,
    pub failed: AtomicU64,
    /// Rows stored from these requests.
    pub rows: AtomicU64,
    /// Data points or lines that could not be translated, and rows that the store refused.
    pub rejected: AtomicU64,
}

impl HttpCounters {
    /// Writes the metrics of connections and requests.
    pub fn show(&self, text: &mut MetricsText, translation: &Translation, bodies: &BodyBudget) {
        let requests = [
            ("write", &self.write_requests),
            ("read", &self.read_requests),
            ("otlp", &translation.otlp.requests),
            ("import", &translation.import.requests),
            ("push", &translation.push.requests),
        ];
        let failed = [
            ("write", &self.write_requests_failed),
            ("read", &self.read_requests_failed),
            ("otlp", &translation.otlp.failed),
            ("import", &translation.import.failed),
            ("push", &translation.push.failed),
        ];
        for (name, help, values) in [
            ("tidepool_http_requests_total", "Requests, by endpoint.", requests),
            (
                "tidepool_http_requests_failed_total",
                "Requests not answered 2xx, by endpoint.",
                failed,
            ),
        ] {
            let values = values.map(|(e, count)| (format!("endpoint=\"{e}\""), load(count)));
            let values: Vec<_> = values.iter().map(|(labels, n)| (labels.as_str(), *n)).collect();
            text.counters(name, help, &values);
        }
        // `push` is not included: `tidepool_plugin_rows_*` count the rows from decoders.
        for (name, help, otlp, import) in [
            (
                "tidepool_translated_samples_total",
                "Stored samples of OTLP and text requests, by endpoint.",
                &translation.otlp.rows,
                &translation.import.rows,
            ),
            (
                "tidepool_translation_rejected_total",
                "OTLP data points or lines of text that were not translated, and samples of both that \
                 the store refused, by endpoint.",
                &translation.otlp.rejected,
                &translation.import.rejected,
            ),
        ] {
            let values = [("endpoint=\"otlp\"", load(otlp)), ("endpoint=\"import\"", load(import))];
            text.counters(name, help, &values);
        }
        text.gauge("tidepool_http_connections", "Open connections.", load(&self.connections_open));
        text.counters(
            "tidepool_http_connections_closed_total",
            "Connections closed by tidepool, by reason.",
            &[
                ("reason=\"idle\"", load(&self.connections_idle)),
                ("reason=\"crowded_out\"", load(&self.connections_crowded_out)),
                ("reason=\"slow_head\"", load(&self.connections_slow_head)),
                ("reason=\"slow_body\"", load(&self.connections_slow_body)),
                ("reason=\"slow_reader\"", load(&self.connections_slow_reader)),
                ("reason=\"malformed\"", load(&self.connections_malformed)),
                ("reason=\"no_tls\"", load(&self.connections_insecure)),
            ],
        );
        text.counters(
            "tidepool_http_requests_refused_total",
            "Requests refused for reasons other than their content, by reason.",
            &[
                ("reason=\"unauthorized\"", load(&self.refused_unauthorized)),
                ("reason=\"foreign\"", load(&self.refused_foreign)),
                ("reason=\"slow\"", load(&self.refused_slow)),
                ("reason=\"too_large\"", load(&self.refused_too_large)),
                ("reason=\"unsupported_type\"", load(&self.refused_type)),
                ("reason=\"unavailable\"", load(&self.refused_unavailable)),
            ],
        );
        text.gauge(
            "tidepool_http_inflight_bytes",
            "Memory in use by request bodies.",
            bodies.bytes_taken(),
        );
    }
}

impl Default for Translation {
    fn default() -> Translation {
        Translation {
            turns: Arc::new(Semaphore::new(TRANSLATORS_MAX)),
            otlp: HandlerCounters::default(),
            import: HandlerCounters::default(),
            push: HandlerCounters::default(),
        }
    }
}

impl HandlerCounters {
    /// Counts a request by the status of its response.
    pub fn count(&self, reply: Reply) -> Reply {
        self.requests.fetch_add(1, Relaxed);
        if !reply.status().is_success() {
            self.failed.fetch_add(1, Relaxed);
        }
        reply
    }
}

fn load(counter: &AtomicU64) -> u64 {
    counter.load(Relaxed)
}
