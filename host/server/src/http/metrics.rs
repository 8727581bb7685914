//! `GET /metrics`: the store's own figures. Names are Prometheus' where it has the same figure.

mod configuration;

use super::context::Translation;
use super::context::{Context, HttpCounters};
use super::process;
use super::reply::{Reply, full};
use hyper::StatusCode;
use hyper::header::HeaderValue;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tidepool_disk::wal::WalStats;
use tidepool_disk::{OpenFileFigures, Wear, WrittenFor};
use tidepool_runtime::Figures;
use tidepool_scraping::Scraping;
use tidepool_ship::ShipFigures;
use tidepool_store::{Store, StoreCounters};
use tidepool_telemetry::{MetricsText, escaped};

/// Answers in the text format.
pub async fn answer(context: &Context) -> Reply {
    full(
        StatusCode::OK,
        HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8"),
        page(context).await,
    )
}

/// All metrics in the text format.
pub async fn page(context: &Context) -> String {
    let mut text = MetricsText::default();
    let version = concat!("version=\"", env!("CARGO_PKG_VERSION"), "\"");
    text.gauges("tidepool_build_info", "The running version of tidepool.", &[(version, 1)]);
    text.gauge(
        "tidepool_ready",
        "Whether the log is replayed and the store takes writes and reads.",
        u8::from(context.store.is_ready()),
    );
    if context.store.is_ready() {
        start(&mut text, &context.store);
    }
    configuration::show(&mut text, &context.reload);
    configuration::show_files(&mut text, &context.access.files());
    process::show(&mut text);
    memory(&mut text, &context.store);
    text.gauge(
        "tidepool_clock_doubted",
        "Whether this node's clock is known to be wrong, so that the senders' time counts.",
        u8::from(context.store.clock_is_doubted()),
    );
    http(&mut text, &context.counters, &context.translation);
    connections(&mut text, context);
    context.durations.show(&mut text);
    instances(&mut text, context.store.counters());
    let running_max = context.store.config().queries.running_max;
    context.store.query_figures().show(&mut text, running_max);
    context.store.show_query_cache(&mut text);
    open_files(&mut text, &context.store);
    space(&mut text, &context.store).await;
    wear(&mut text, context.store.wear());
    // While the store starts there is no head to ask.
    if let Ok(figures) = context.store.figures().await {
        head(&mut text, &figures);
        let oldest_block_ms = context.store.oldest_block_time_ms().unwrap_or(i64::MAX);
        text.gauge(
            "prometheus_tsdb_lowest_timestamp_seconds",
            "Start of the oldest block or time of the oldest sample in the head; far in the future \
             without any.",
            oldest_block_ms.min(figures.head_min_time_ms) as f64 / 1000.0,
        );
    }
    scraping(&mut text, &context.scraping);
    if let Some((stats, bytes)) = context.store.wal_figures() {
        wal(&mut text, &stats, bytes);
        replay(&mut text, &context.store);
        text.gauge(
            "tidepool_wal_replay_skipped_records",
            "Log records that the last start skipped because it does not know their type, or they \
             do not decode.",
            context.store.wal_skipped_records(),
        );
    }
    shortage(&mut text, &context.store);
    quarantine(&mut text, &context.store);
    blocks(&mut text, &context.store);
    context.forward.show(&mut text);
    if let Some(figures) = &context.ship {
        ship(&mut text, figures);
    }
    if let Some(plugins) = &context.plugins {
        plugins.write_metrics(&mut text);
    }
    text.finish()
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

/// Files of blocks, which are open while somebody reads them.
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

async fn space(text: &mut MetricsText, store: &Store) {
    let figures = store.space_figures();
    let other = store.clone();
    // All files are looked at, on a disk that may be slow.
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

fn wear(text: &mut MetricsText, wear: &Wear) {
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

fn scraping(text: &mut MetricsText, scraping: &Scraping) {
    for (name, help, value) in scraping.metrics().counters() {
        text.counter(name, help, value);
    }
    for (name, help, value) in scraping.discovery_counters() {
        text.counter(name, help, value);
    }
    let memory = scraping.memory();
    text.gauge(
        "tidepool_scrapes_memory_bytes",
        "Memory that targets and their scrapes hold.",
        memory.held_bytes(),
    );
    text.counter(
        "tidepool_scrapes_refused_for_memory_total",
        "Scrapes and targets that found no memory for what they would hold.",
        memory.refused(),
    );
    let pools = scraping.metrics().by_pool();
    let labels: Vec<String> =
        pools.iter().map(|(job, _)| format!("scrape_job=\"{}\"", escaped(job))).collect();
    let pools = labels.iter().zip(&pools).map(|(labels, (_, pool))| (labels.as_str(), pool));
    let targets: Vec<_> = pools.clone().map(|(labels, pool)| (labels, pool.targets)).collect();
    text.gauges(
        "prometheus_target_scrape_pool_targets",
        "Number of targets of a job that are scraped.",
        &targets,
    );
    let refused: Vec<(String, u64)> = pools
        .clone()
        .flat_map(|(labels, pool)| {
            pool.refused.each().map(move |(reason, count)| {
                (format!("{labels},reason=\"{}\"", reason.as_str()), count)
            })
        })
        .collect();
    let refused: Vec<_> = refused.iter().map(|(labels, count)| (labels.as_str(), *count)).collect();
    text.counters(
        "tidepool_target_samples_refused_total",
        "Samples of scrapes that the store refused, by job and reason.",
        &refused,
    );
    let failed: Vec<_> = pools.map(|(labels, pool)| (labels, pool.sync_failed)).collect();
    text.counters(
        "prometheus_target_sync_failed_total",
        "Targets of a job that could not be made.",
        &failed,
    );
}

fn ship(text: &mut MetricsText, figures: &ShipFigures) {
    for (name, help, count) in [
        (
            "tidepool_ship_rounds_total",
            "Rounds of shipping that ended without a failure.",
            &figures.rounds,
        ),
        ("tidepool_ship_uploads_total", "Blocks uploaded to object storage.", &figures.uploads),
        (
            "tidepool_ship_upload_failures_total",
            "Failed attempts to upload blocks; they are retried.",
            &figures.upload_failures,
        ),
        (
            "tidepool_ship_uploaded_bytes_total",
            "Bytes of blocks' files uploaded to object storage.",
            &figures.uploaded_bytes,
        ),
        (
            "tidepool_ship_already_there_total",
            "Blocks that were already in object storage.",
            &figures.already_there,
        ),
        (
            "tidepool_ship_conflicts_total",
            "Blocks not uploaded because another one has their name in object storage.",
            &figures.conflicts,
        ),
    ] {
        text.counter(name, help, load(count));
    }
    text.gauge(
        "tidepool_ship_blocks_waiting",
        "Blocks that wait to be uploaded.",
        load(&figures.blocks_waiting),
    );
    text.gauge(
        "tidepool_ship_lag_seconds",
        "Time between the first sample of the oldest block that waits to be uploaded and the end of \
         the newest; 0 if none waits.",
        load(&figures.waiting_span_ms) as f64 / 1000.0,
    );
    text.gauge(
        "tidepool_ship_last_upload_timestamp_seconds",
        "Time of the last upload of a block since the start; 0 if there was none.",
        load(&figures.last_upload_ms) as f64 / 1000.0,
    );
}

fn http(text: &mut MetricsText, counters: &HttpCounters, translation: &Translation) {
    let requests = [
        ("write", &counters.write_requests),
        ("read", &counters.read_requests),
        ("otlp", &translation.otlp.requests),
        ("import", &translation.import.requests),
        ("push", &translation.push.requests),
    ];
    let failed = [
        ("write", &counters.write_requests_failed),
        ("read", &counters.read_requests_failed),
        ("otlp", &translation.otlp.failed),
        ("import", &translation.import.failed),
        ("push", &translation.push.failed),
    ];
    for (name, help, values) in [
        ("tidepool_http_requests_total", "Requests, by endpoint.", requests),
        ("tidepool_http_requests_failed_total", "Requests not answered 2xx, by endpoint.", failed),
    ] {
        let values = values.map(|(e, count)| (format!("endpoint=\"{e}\""), load(count)));
        let values: Vec<_> = values.iter().map(|(labels, n)| (labels.as_str(), *n)).collect();
        text.counters(name, help, &values);
    }
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
}

fn memory(text: &mut MetricsText, store: &Store) {
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
        store.running_reads_bytes(),
    );
}

fn connections(text: &mut MetricsText, context: &Context) {
    let c = &context.counters;
    text.gauge("tidepool_http_connections", "Open connections.", load(&c.connections_open));
    text.counters(
        "tidepool_http_connections_closed_total",
        "Connections closed by tidepool, by reason.",
        &[
            ("reason=\"idle\"", load(&c.connections_idle)),
            ("reason=\"crowded_out\"", load(&c.connections_crowded_out)),
            ("reason=\"slow_head\"", load(&c.connections_slow_head)),
            ("reason=\"slow_body\"", load(&c.connections_slow_body)),
            ("reason=\"slow_reader\"", load(&c.connections_slow_reader)),
            ("reason=\"malformed\"", load(&c.connections_malformed)),
            ("reason=\"no_tls\"", load(&c.connections_insecure)),
        ],
    );
    text.counters(
        "tidepool_http_requests_refused_total",
        "Requests refused for reasons other than their content, by reason.",
        &[
            ("reason=\"unauthorized\"", load(&c.refused_unauthorized)),
            ("reason=\"foreign\"", load(&c.refused_foreign)),
            ("reason=\"slow\"", load(&c.refused_slow)),
            ("reason=\"too_large\"", load(&c.refused_too_large)),
            ("reason=\"unsupported_type\"", load(&c.refused_type)),
            ("reason=\"unavailable\"", load(&c.refused_unavailable)),
        ],
    );
    text.gauge(
        "tidepool_http_inflight_bytes",
        "Memory in use by request bodies.",
        context.bodies.bytes_taken(),
    );
}

fn load(counter: &AtomicU64) -> u64 {
    counter.load(Relaxed)
}
