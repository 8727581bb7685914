//! Metrics of the store for `/metrics`. Figures that Prometheus has, too, have Prometheus' names.

use super::{Store, StoreCounters};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tidepool_disk::wal::WalStats;
use tidepool_disk::{OpenFileFigures, WriteAccounts, WrittenFor};
use tidepool_runtime::Figures;
use tidepool_telemetry::MetricsText;

impl Store {
    /// Writes the figures of the head, the blocks, both logs and the disk. Before the WAL is
    /// replayed there is no head, and none of its figures. `kept_bytes` of the memory of reads are
    /// held by caches, not by running reads.
    pub async fn show(&self, text: &mut MetricsText, kept_bytes: usize) {
        text.gauge(
            "tidepool_ready",
            "Whether the log is replayed and the store takes writes and reads.",
            u8::from(self.is_ready()),
        );
        if self.is_ready() {
            start(text, self);
        }
        memory(text, self, kept_bytes);
        text.gauge(
            "tidepool_clock_doubted",
            "Whether this node's clock is known to be wrong, so that the senders' time counts.",
            u8::from(self.clock_is_doubted()),
        );
        instances(text, &self.shared.counters);
        open_files(text, self);
        space(text, self).await;
        wear(text, &self.shared.wear);
        // A head that does not answer must not hide the other metrics.
        if let Ok(figures) = self.figures().await {
            head(text, &figures);
            let oldest_block_ms = self.oldest_block_time_ms().unwrap_or(i64::MAX);
            text.gauge(
                "prometheus_tsdb_lowest_timestamp_seconds",
                "Start of the oldest block or time of the oldest sample in the head; far in the \
                 future without any.",
                oldest_block_ms.min(figures.head_min_time_ms) as f64 / 1000.0,
            );
        }
        if let Some((stats, bytes)) = self.wal_figures() {
            wal(text, &stats, bytes);
            replay(text, self);
            text.gauge(
                "tidepool_wal_replay_skipped_records",
                "Log records that the last start skipped because it does not know their type, or \
                 they do not decode.",
                self.wal_skipped_records(),
            );
        }
        shortage(text, self);
        quarantine(text, self);
        blocks(text, self);
    }
}

fn start(text: &mut MetricsText, store: &Store) {
    let (snapshot_used, time) = store.start_figures();
    text.gauge(
        "prometheus_tsdb_data_replay_duration_seconds",
        "Time that the last start of the head took, from its log or its snapshot.",
        time.as_secs_f64(),
    );
    text.gauge(
        "tidepool_head_snapshot_used",
        "Whether the last start took the head from its snapshot instead of the log.",
        u8::from(snapshot_used),
    );
}

fn memory(text: &mut MetricsText, store: &Store, kept_bytes: usize) {
    let split = store.memory_split();
    text.gauges(
        "tidepool_memory_limit_bytes",
        "Memory limits of the process and its parts.",
        &[
            ("part=\"all\"", split.limit_bytes),
            ("part=\"network\"", split.network_bytes),
            ("part=\"scrapes\"", split.scrapes_bytes),
            ("part=\"reads\"", split.reads_bytes),
            ("part=\"head\"", split.head_bytes),
            ("part=\"compactor\"", split.compactor_bytes),
        ],
    );
    text.gauge(
        "tidepool_reads_memory_bytes",
        "Memory of reads that run, and of instances that wait for the next.",
        store.reads_bytes().saturating_sub(kept_bytes),
    );
}

fn instances(text: &mut MetricsText, counters: &StoreCounters) {
    text.counters(
        "tidepool_instance_crashes_total",
        "Engine instances that crashed or passed a limit, by role.",
        &[
            ("role=\"head\"", load(&counters.head_crashes)),
            ("role=\"query\"", load(&counters.query_crashes)),
        ],
    );
    for (name, help, counter) in [
        (
            "tidepool_failed_starts_total",
            "Starts that failed while the log was replayed, and were retried.",
            &counters.failed_starts,
        ),
        ("tidepool_blocks_cut_total", "Blocks cut from the head.", &counters.blocks_cut),
        ("tidepool_blocks_merged_total", "Blocks made by merges.", &counters.blocks_merged),
        ("tidepool_blocks_dropped_total", "Blocks dropped by retention.", &counters.blocks_dropped),
        (
            "tidepool_blocks_dropped_unshipped_total",
            "Blocks dropped by retention before they were copied to object storage.",
            &counters.blocks_dropped_uncopied,
        ),
        ("tidepool_blocks_damaged_total", "Damaged blocks found.", &counters.blocks_damaged),
        (
            "prometheus_tsdb_compactions_failed_total",
            "Failed compactions; they are retried.",
            &counters.compactions_failed,
        ),
    ] {
        text.counter(name, help, load(counter));
    }
}

/// Writes the figures of block files, which are open while somebody reads them.
fn open_files(text: &mut MetricsText, store: &Store) {
    let OpenFileFigures { open, open_max, closed } = store.open_file_figures();
    text.gauge("tidepool_block_files_open", "Open files of blocks.", open);
    let help = "Maximum number of open files of blocks (--max-open-block-files).";
    text.gauge("tidepool_block_files_open_limit", help, open_max);
    text.counter(
        "tidepool_block_files_closed_total",
        "Files of blocks that were closed to make room for others while somebody read them.",
        closed,
    );
}

async fn space(text: &mut MetricsText, store: &Store) {
    let figures = store.space_figures();
    let other = store.clone();
    // Looks at all files, on a disk that may be slow.
    let data_bytes = tokio::task::spawn_blocking(move || other.data_bytes()).await;
    text.gauge(
        "tidepool_disk_size_bytes",
        "Bytes of the file system of the data directory.",
        figures.total_bytes,
    );
    if let Ok(Some(bytes)) = data_bytes {
        text.gauge(
            "tidepool_data_directory_bytes",
            "Bytes of the data directory without snapshots, as --retention-size counts them.",
            bytes,
        );
    }
    text.gauge(
        "tidepool_disk_free_bytes",
        "Free bytes of the file system of the data directory.",
        figures.free_bytes,
    );
    text.gauge(
        "tidepool_disk_reserve_bytes",
        "Free bytes below which writes are refused.",
        figures.reserve_bytes,
    );
    text.gauge(
        "tidepool_writes_paused",
        "Whether writes are refused because the disk is nearly full.",
        u8::from(figures.is_paused),
    );
    text.gauge(
        "tidepool_wal_unwritten_bytes",
        "Bytes of log records that wait in memory to be written (--wal-sync=batch).",
        figures.unwritten_bytes,
    );
}

fn wear(text: &mut MetricsText, wear: &WriteAccounts) {
    let written = WrittenFor::ALL.map(|account| {
        let purpose = match account {
            WrittenFor::Log => "for=\"log\"",
            WrittenFor::Checkpoint => "for=\"checkpoint\"",
            WrittenFor::Cut => "for=\"cut\"",
            WrittenFor::Merge => "for=\"merge\"",
            WrittenFor::Other => "for=\"other\"",
        };
        (purpose, wear.written(account))
    });
    text.counters(
        "tidepool_disk_written_bytes_total",
        "Bytes written to the disk, by purpose.",
        &written.map(|(purpose, written)| (purpose, written.bytes)),
    );
    text.counters(
        "tidepool_disk_syncs_total",
        "Syncs of files and directories, by purpose.",
        &written.map(|(purpose, written)| (purpose, written.syncs)),
    );
}

fn head(text: &mut MetricsText, figures: &Figures) {
    let f = figures;
    text.gauge(
        "tidepool_head_memory_bytes",
        "Memory of the engine instance that holds the head.",
        f.memory_bytes,
    );
    text.gauge(
        "tidepool_head_memory_used_bytes",
        "Memory in use by the head, out of tidepool_head_memory_bytes.",
        f.memory_used_bytes,
    );
    text.gauge("prometheus_tsdb_head_series", "Series in the head.", f.head_series);
    text.gauge("prometheus_tsdb_head_chunks", "Chunks in the head.", f.head_chunks);
    text.gauge(
        "tidepool_head_symbols",
        "Distinct label names and values in the head.",
        f.head_symbols,
    );
    text.gauge(
        "prometheus_tsdb_exemplar_exemplars_in_storage",
        "Exemplars kept.",
        f.head_exemplars,
    );
    text.counter(
        "prometheus_tsdb_head_series_created_total",
        "Series created in the head.",
        f.head_series_created,
    );
    text.counter(
        "prometheus_tsdb_head_series_removed_total",
        "Series removed from the head.",
        f.head_series_removed,
    );
    // An empty head has no times: its minimum is greater than its maximum.
    if f.head_min_time_ms <= f.head_max_time_ms {
        text.gauge(
            "prometheus_tsdb_head_min_time_seconds",
            "Time of the oldest sample in the head.",
            f.head_min_time_ms as f64 / 1000.0,
        );
        text.gauge(
            "prometheus_tsdb_head_max_time_seconds",
            "Time of the newest sample in the head.",
            f.head_max_time_ms as f64 / 1000.0,
        );
    }
    text.counter(
        "prometheus_tsdb_head_samples_appended_total",
        "Samples stored.",
        f.samples_appended,
    );
    text.counter(
        "prometheus_tsdb_head_out_of_order_samples_appended_total",
        "Out-of-order samples stored.",
        f.samples_out_of_order,
    );
    text.counter(
        "tidepool_head_samples_duplicate_total",
        "Accepted samples that were already stored.",
        f.samples_duplicate,
    );
    text.counters(
        "tidepool_head_samples_refused_total",
        "Samples refused, by reason.",
        &[
            ("reason=\"duplicate\"", f.samples_refused_duplicate),
            ("reason=\"out_of_order\"", f.samples_refused_out_of_order),
            ("reason=\"too_old\"", f.samples_refused_too_old),
            ("reason=\"too_far_in_future\"", f.samples_refused_in_future),
            ("reason=\"labels\"", f.samples_refused_labels),
            ("reason=\"series_limit\"", f.samples_refused_series_limit),
            ("reason=\"memory\"", f.samples_refused_memory),
            ("reason=\"histogram\"", f.samples_refused_histogram),
        ],
    );
    text.gauge("tidepool_head_open_cursors", "Reads that are open on the head.", f.open_cursors);
}

fn wal(text: &mut MetricsText, stats: &WalStats, bytes: u64) {
    text.gauge("prometheus_tsdb_wal_storage_size_bytes", "Bytes of the log on disk.", bytes);
    text.gauge(
        "prometheus_tsdb_wal_segment_current",
        "Log segment that is being written.",
        stats.segment_current,
    );
    text.counter(
        "tidepool_wal_records_written_total",
        "Log records written.",
        stats.records_written,
    );
    text.counter("tidepool_wal_written_bytes_total", "Log bytes written.", stats.bytes_written);
    text.counter(
        "prometheus_tsdb_wal_writes_failed_total",
        "Batches that could not be written to the log.",
        stats.writes_failed,
    );
    text.counter("tidepool_wal_fsyncs_total", "Syncs of the log.", stats.fsyncs);
    text.counter(
        "tidepool_wal_fsyncs_failed_total",
        "Failed syncs of the log.",
        stats.fsyncs_failed,
    );
    text.counter(
        "tidepool_wal_fsync_seconds_total",
        "Time spent in syncs of the log.",
        stats.fsync_time.as_secs_f64(),
    );
    text.gauge(
        "tidepool_wal_last_fsync_timestamp_seconds",
        "Time of the last successful sync of the log; 0 before the first.",
        // The time of the sync is monotonic and has no date of its own.
        stats.fsynced_at.map_or(0.0, |at| {
            let now_s = tidepool_lifecycle::clock::system_now_ms() as f64 / 1000.0;
            now_s - at.elapsed().as_secs_f64()
        }),
    );
    text.counter("tidepool_wal_checkpoints_total", "Checkpoints written.", stats.checkpoints);
}

fn replay(text: &mut MetricsText, store: &Store) {
    let found = store.replay_figures().unwrap_or_default();
    text.gauge(
        "tidepool_wal_replay_damaged_bytes",
        "Log bytes that the last start skipped because they are damaged.",
        found.damaged_bytes,
    );
    text.gauge(
        "tidepool_wal_replay_torn_bytes",
        "Log bytes of an unfinished write that the last start removed.",
        found.torn_bytes,
    );
}

fn shortage(text: &mut MetricsText, store: &Store) {
    let shortage = store.shortage();
    text.gauge(
        "tidepool_wal_replay_skipped",
        "Whether the WAL was not replayed for want of memory, and writes are refused.",
        u8::from(shortage.is_some()),
    );
    text.gauge(
        "tidepool_memory_limit_needed_bytes",
        "The --memory-limit with which the WAL can be replayed, as far as known; 0 if it was.",
        shortage.map_or(0, |shortage| shortage.limit_bytes()),
    );
}

fn quarantine(text: &mut MetricsText, store: &Store) {
    let (stats, bytes) = store.quarantine_figures();
    text.counter(
        "prometheus_tsdb_wal_corruptions_total",
        "Damaged places that replays found in the logs.",
        stats.damaged_places,
    );
    text.counter(
        "tidepool_wal_damaged_bytes_total",
        "Bytes in the damaged places that replays found in the logs.",
        stats.damaged_bytes,
    );
    text.counter(
        "tidepool_wal_quarantined_total",
        "Damaged segments of the logs that were quarantined.",
        stats.segments,
    );
    text.counter(
        "tidepool_logs_quarantined_total",
        "Logs quarantined after too many consecutive starts failed to replay them.",
        stats.logs,
    );
    text.gauge("tidepool_quarantine_bytes", "Size of all quarantined files in bytes.", bytes);
}

fn blocks(text: &mut MetricsText, store: &Store) {
    let (count, bytes) = store.block_figures();
    text.gauge("prometheus_tsdb_blocks_loaded", "Blocks in storage that are served.", count);
    text.gauge("prometheus_tsdb_storage_blocks_bytes", "Bytes of all blocks.", bytes);
}

fn load(counter: &AtomicU64) -> u64 {
    counter.load(Relaxed)
}
