//! Figures of one destination and their metrics. The names are those of Prometheus'
//! `prometheus_remote_storage_*`, so that its dashboards and alerts work; a few are our own.

use super::answer::Counts;
use super::config::DestinationConfig;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tidepool_lifecycle::clock::system_now_ms;
use tidepool_telemetry::MetricsText;

/// Bucket bounds of upstream's histogram of request durations, in milliseconds.
const BUCKETS_MS: [u64; 11] = [5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000];

/// Counters of float samples, native histograms and exemplars.
#[derive(Debug, Default)]
pub struct Kinds {
    pub samples: AtomicU64,
    pub histograms: AtomicU64,
    pub exemplars: AtomicU64,
}

#[derive(Debug, Default)]
pub struct Figures {
    /// Labels of the destination's metrics.
    pub labels: String,
    /// Rows in requests that were answered with success.
    pub sent: Kinds,
    /// Rows refused by the receiver, and dropped.
    pub failed: Kinds,
    /// Rows sent again after a failed request.
    pub retried: Kinds,
    /// Time of the first failed attempt since the last request with a final answer, in
    /// milliseconds since the epoch; 0 if no attempt has failed since.
    failing_since_ms: AtomicI64,
    /// Number of rows in `failed`, by status of the answer.
    pub refused_by_status: Mutex<BTreeMap<u16, u64>>,
    pub dropped: Dropped,
    /// Exemplars dropped because their sample was no longer queued.
    pub exemplars_dropped: AtomicU64,
    /// Samples read from the logs.
    pub samples_in: AtomicU64,
    /// Number of times that a queue was full.
    pub enqueue_retries: AtomicU64,
    pub pending: AtomicU64,
    pub shards: AtomicU64,
    /// Number of shards as computed before rounding, in thousandths.
    pub shards_desired_milli: AtomicU64,
    /// Configured values: most and fewest shards, capacity, rows of a request.
    pub configured: [AtomicU64; 4],
    /// Bytes of sent requests after compression.
    pub bytes: AtomicU64,
    /// Number of requests that were answered with success.
    pub requests: AtomicU64,
    pub durations: Durations,
    /// Time of the newest sample in the store; 0 if not known.
    pub newest_ms: AtomicI64,
    /// Time of the newest delivered sample; 0 if none was delivered.
    pub newest_sent_ms: AtomicI64,
    /// Time up to which samples are delivered; 0 if not known.
    pub delivered_ms: AtomicI64,
    /// Bytes of segments that were deleted undelivered, while the engine instance could not run.
    pub log_bytes_dropped: AtomicU64,
    /// Segment of the in-order log up to which rows are delivered.
    pub segment: AtomicU64,
    /// Number of undelivered rows that must be read from blocks and head.
    pub gap_rows: AtomicU64,
    /// Estimated bytes of all undelivered rows.
    pub bytes_left: AtomicU64,
    pub metadata: AtomicU64,
    pub metadata_failed: AtomicU64,
}

/// Figures of all current destinations, in the configuration's order; clones share them.
#[derive(Clone, Debug, Default)]
pub struct ForwardFigures(Arc<All>);

#[derive(Debug, Default)]
struct All {
    destinations: Mutex<Vec<Arc<Figures>>>,
    /// Positions of destinations that were removed.
    positions_dropped: AtomicU64,
}

impl ForwardFigures {
    /// Sets the figures of the current destinations.
    pub(super) fn set(&self, all: Vec<Arc<Figures>>) {
        *self.0.destinations.lock().unwrap_or_else(PoisonError::into_inner) = all;
    }

    /// Counts the position of a removed destination.
    pub(super) fn count_dropped_position(&self) {
        self.0.positions_dropped.fetch_add(1, Relaxed);
    }

    /// Writes the metrics, unless no destination was ever configured.
    pub fn show(&self, text: &mut MetricsText) {
        // Cloned, so that the lock is not held while the text is written.
        let all = self.0.destinations.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let positions_dropped = load(&self.0.positions_dropped);
        if !all.is_empty() {
            show(text, &all);
        }
        if !all.is_empty() || positions_dropped > 0.0 {
            text.counter(
                "tidepool_remote_storage_positions_dropped_total",
                "Positions of destinations that are not configured any more.",
                positions_dropped,
            );
        }
    }
}

/// Number of samples that were not sent, by reason.
#[derive(Debug, Default)]
pub struct Dropped {
    /// Samples older than `sample_age_limit` allows.
    pub too_old: AtomicU64,
    /// Samples whose series the rules drop.
    pub dropped_series: AtomicU64,
    /// Samples of series for which the log has no series record.
    pub unknown_series: AtomicU64,
    /// Samples beyond `max_bytes` of the backlog.
    pub backlog_bytes: AtomicU64,
    /// Samples in a damaged block.
    pub damaged: AtomicU64,
    /// Samples deleted, or dropped by retention, before they were taken from the store.
    pub not_stored: AtomicU64,
    /// Out-of-order samples that did not fit into a gap, the list of ranges to read from the store.
    pub backlog_out_of_order: AtomicU64,
}

#[derive(Debug, Default)]
pub struct Durations {
    buckets: [AtomicU64; BUCKETS_MS.len()],
    count: AtomicU64,
    sum_us: AtomicU64,
}

impl Durations {
    pub fn observe(&self, took: Duration) {
        // Buckets of Prometheus' histograms are cumulative.
        for (bound, bucket) in BUCKETS_MS.iter().zip(&self.buckets) {
            if took <= Duration::from_millis(*bound) {
                bucket.fetch_add(1, Relaxed);
            }
        }
        self.count.fetch_add(1, Relaxed);
        self.sum_us.fetch_add(took.as_micros() as u64, Relaxed);
    }
}

impl Kinds {
    pub(super) fn add(&self, counts: &Counts) {
        self.samples.fetch_add(counts.samples, Relaxed);
        self.histograms.fetch_add(counts.histograms, Relaxed);
        self.exemplars.fetch_add(counts.exemplars, Relaxed);
    }
}

impl Figures {
    /// Records a failed request that will be sent again.
    pub fn request_failed(&self) {
        // 0 means that no request has failed.
        let now_ms = system_now_ms().max(1);
        // Fails if an earlier failure has set the time, which is then kept.
        let _ = self.failing_since_ms.compare_exchange(0, now_ms, Relaxed, Relaxed);
    }

    /// Records that a request has got its final answer.
    pub fn request_answered(&self) {
        self.failing_since_ms.store(0, Relaxed);
    }

    pub fn new(config: &DestinationConfig) -> Figures {
        // The exposition format escapes `\` and `"` in the value of a label.
        let url = config.url.to_string().replace('\\', "\\\\").replace('"', "\\\"");
        let queue = &config.queue;
        let configured =
            [queue.max_shards, queue.min_shards, queue.capacity, queue.max_samples_per_send];
        Figures {
            labels: format!("remote_name=\"{}\",url=\"{url}\"", config.name),
            configured: configured.map(|number| AtomicU64::new(u64::from(number))),
            ..Figures::default()
        }
    }

    /// Returns the time from the newest delivered sample to the newest stored sample, in seconds; 0
    /// until both are known.
    pub fn lag_seconds(&self) -> f64 {
        let (newest, delivered) = (self.newest_ms.load(Relaxed), self.delivered_ms.load(Relaxed));
        let is_known = newest != 0 && delivered != 0;
        // A delivered sample may be newer than the newest one at the last look at the store.
        let lag_ms = newest.saturating_sub(delivered).max(0);
        if is_known { lag_ms as f64 / 1000.0 } else { 0.0 }
    }

    /// Returns the mean request bytes per sample; a guess before the first request.
    pub fn bytes_per_sample(&self) -> f64 {
        let samples = self.sent.samples.load(Relaxed) + self.sent.histograms.load(Relaxed);
        match samples {
            0 => 8.0,
            samples => self.bytes.load(Relaxed) as f64 / samples as f64,
        }
    }

    /// Counts rows that were refused with this status.
    pub fn refused(&self, status: u16, rows: u64) {
        let mut refused = self.refused_by_status.lock().unwrap_or_else(PoisonError::into_inner);
        *refused.entry(status).or_default() += rows;
    }
}

fn load(value: &AtomicU64) -> f64 {
    value.load(Relaxed) as f64
}

fn show(text: &mut MetricsText, all: &[Arc<Figures>]) {
    type Value = (&'static str, &'static str, fn(&Figures) -> f64);
    let counters: [Value; 16] = [
        ("samples_total", "Samples sent.", |f| load(&f.sent.samples)),
        ("histograms_total", "Histograms sent.", |f| load(&f.sent.histograms)),
        ("exemplars_total", "Exemplars sent.", |f| load(&f.sent.exemplars)),
        ("metadata_total", "Requests of metadata sent.", |f| load(&f.metadata)),
        ("samples_failed_total", "Samples that the receiver refused; they are dropped.", |f| {
            load(&f.failed.samples)
        }),
        ("histograms_failed_total", "Histograms that the receiver refused.", |f| {
            load(&f.failed.histograms)
        }),
        ("exemplars_failed_total", "Exemplars that the receiver refused.", |f| {
            load(&f.failed.exemplars)
        }),
        ("metadata_failed_total", "Requests of metadata that failed.", |f| {
            load(&f.metadata_failed)
        }),
        ("samples_retried_total", "Samples sent again after a failure.", |f| {
            load(&f.retried.samples)
        }),
        ("histograms_retried_total", "Histograms sent again after a failure.", |f| {
            load(&f.retried.histograms)
        }),
        ("exemplars_retried_total", "Exemplars sent again after a failure.", |f| {
            load(&f.retried.exemplars)
        }),
        ("exemplars_dropped_total", "Exemplars without a sample to be sent along with.", |f| {
            load(&f.exemplars_dropped)
        }),
        ("samples_in_total", "Samples read from the log.", |f| load(&f.samples_in)),
        ("enqueue_retries_total", "Times that a queue was full.", |f| load(&f.enqueue_retries)),
        ("bytes_total", "Bytes of requests, compressed.", |f| load(&f.bytes)),
        ("requests_total", "Requests answered with success.", |f| load(&f.requests)),
    ];
    let gauges: [Value; 9] = [
        ("samples_pending", "Samples in queues.", |f| load(&f.pending)),
        ("shards", "Shards.", |f| load(&f.shards)),
        ("shards_desired", "Shards that the rates ask for.", |f| {
            load(&f.shards_desired_milli) / 1000.0
        }),
        ("shards_max", "Most shards.", |f| load(&f.configured[0])),
        ("shards_min", "Fewest shards.", |f| load(&f.configured[1])),
        ("shard_capacity", "Samples that a shard may hold.", |f| load(&f.configured[2])),
        ("max_samples_per_send", "Samples of a request.", |f| load(&f.configured[3])),
        ("highest_timestamp_in_seconds", "Time of the newest sample stored.", |f| {
            f.newest_ms.load(Relaxed) as f64 / 1000.0
        }),
        ("queue_highest_sent_timestamp_seconds", "Time of the newest sample delivered.", |f| {
            f.newest_sent_ms.load(Relaxed) as f64 / 1000.0
        }),
    ];
    let ours: [Value; 5] = [
        (
            "failing_since_timestamp_seconds",
            "When requests began to fail, of which none has been answered since; 0 if the last was.",
            |f| f.failing_since_ms.load(Relaxed) as f64 / 1000.0,
        ),
        (
            "lag_seconds",
            "What the newest sample delivered lies behind the newest stored; 0 if nothing waits.",
            Figures::lag_seconds,
        ),
        ("position_segment", "Log segment of the first sample that is not delivered.", |f| {
            load(&f.segment)
        }),
        ("backlog_samples", "Samples that will be taken from blocks and head.", |f| {
            load(&f.gap_rows)
        }),
        (
            "bytes_left",
            "Bytes that wait to be sent: of the log, and of requests for queues and the backlog.",
            |f| load(&f.bytes_left),
        ),
    ];
    let values = |value: fn(&Figures) -> f64| -> Vec<(&str, f64)> {
        all.iter().map(|figures| (figures.labels.as_str(), value(figures))).collect()
    };
    for (name, help, value) in counters {
        text.counters(&format!("prometheus_remote_storage_{name}"), help, &values(value));
    }
    for (name, help, value) in gauges {
        text.gauges(&format!("prometheus_remote_storage_{name}"), help, &values(value));
    }
    text.counters(
        "tidepool_remote_storage_log_bytes_dropped_total",
        "Bytes of the log that were dropped undelivered, since forwarding did not begin.",
        &values(|f| load(&f.log_bytes_dropped)),
    );
    for (name, help, value) in ours {
        text.gauges(&format!("tidepool_remote_storage_{name}"), help, &values(value));
    }
    let mut dropped = Vec::new();
    let mut refused = Vec::new();
    for figures in all {
        let Figures { labels, dropped: d, refused_by_status, .. } = &**figures;
        for (reason, count) in [
            ("too_old", &d.too_old),
            ("dropped_series", &d.dropped_series),
            ("unintentionally_dropped_series", &d.unknown_series),
            ("backlog_bytes", &d.backlog_bytes),
            ("backlog_out_of_order", &d.backlog_out_of_order),
            ("not_stored", &d.not_stored),
            ("damaged", &d.damaged),
        ] {
            dropped.push((format!("{labels},reason=\"{reason}\""), load(count)));
        }
        let by_status = refused_by_status.lock().unwrap_or_else(PoisonError::into_inner);
        let statuses = by_status.iter();
        refused.extend(statuses.map(|(s, n)| (format!("{labels},status=\"{s}\""), *n as f64)));
    }
    for (name, help, list) in [
        (
            "prometheus_remote_storage_samples_dropped_total",
            "Samples not sent, by reason.",
            dropped,
        ),
        (
            "tidepool_remote_storage_samples_refused_total",
            "Samples and histograms that the receiver refused, by status of its answer.",
            refused,
        ),
    ] {
        let list: Vec<_> = list.iter().map(|(labels, value)| (labels.as_str(), *value)).collect();
        text.counters(name, help, &list);
    }
    let name = "prometheus_remote_storage_sent_batch_duration_seconds";
    text.histograms(
        name,
        "Duration of requests.",
        &all.iter()
            .map(|figures| {
                let d = &figures.durations;
                let buckets = BUCKETS_MS.iter().zip(&d.buckets);
                let buckets = buckets.map(|(ms, count)| (*ms as f64 / 1000.0, count.load(Relaxed)));
                let sum = d.sum_us.load(Relaxed) as f64 / 1e6;
                (figures.labels.as_str(), buckets.collect(), d.count.load(Relaxed), sum)
            })
            .collect::<Vec<_>>(),
    );
}
