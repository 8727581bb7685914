//! Counters of shipping, and their metrics.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tidepool_telemetry::MetricsText;

/// Counters of shipping since the start.
#[derive(Debug, Default)]
pub struct ShipFigures {
    /// Number of rounds in which all blocks that were due were uploaded.
    pub rounds: AtomicU64,
    pub uploads: AtomicU64,
    pub upload_failures: AtomicU64,
    /// Bytes of the uploaded files.
    pub uploaded_bytes: AtomicU64,
    /// Number of blocks that the bucket already had.
    pub already_there: AtomicU64,
    /// Number of blocks whose name is used by a different block in the bucket.
    pub conflicts: AtomicU64,
    pub blocks_waiting: AtomicU64,
    /// Time from the first sample of the oldest waiting block to the end of the newest.
    pub waiting_span_ms: AtomicU64,
    /// Time of the last upload, in milliseconds since the epoch; 0 if there was none.
    pub last_upload_ms: AtomicU64,
}

impl ShipFigures {
    pub fn show(&self, text: &mut MetricsText) {
        for (name, help, count) in [
            (
                "tidepool_ship_rounds_total",
                "Rounds of shipping that ended without a failure.",
                &self.rounds,
            ),
            ("tidepool_ship_uploads_total", "Blocks uploaded to object storage.", &self.uploads),
            (
                "tidepool_ship_upload_failures_total",
                "Failed attempts to upload blocks; they are retried.",
                &self.upload_failures,
            ),
            (
                "tidepool_ship_uploaded_bytes_total",
                "Bytes of blocks' files uploaded to object storage.",
                &self.uploaded_bytes,
            ),
            (
                "tidepool_ship_already_there_total",
                "Blocks that were already in object storage.",
                &self.already_there,
            ),
            (
                "tidepool_ship_conflicts_total",
                "Blocks not uploaded because another one has their name in object storage.",
                &self.conflicts,
            ),
        ] {
            text.counter(name, help, load(count));
        }
        text.gauge(
            "tidepool_ship_blocks_waiting",
            "Blocks that wait to be uploaded.",
            load(&self.blocks_waiting),
        );
        text.gauge(
            "tidepool_ship_lag_seconds",
            "Time between the first sample of the oldest block that waits to be uploaded and the end of \
             the newest; 0 if none waits.",
            load(&self.waiting_span_ms) as f64 / 1000.0,
        );
        text.gauge(
            "tidepool_ship_last_upload_timestamp_seconds",
            "Time of the last upload of a block since the start; 0 if there was none.",
            load(&self.last_upload_ms) as f64 / 1000.0,
        );
    }
}

fn load(counter: &AtomicU64) -> u64 {
    counter.load(Relaxed)
}
