//! All flags with their values as text, for the server's API. A flag that Prometheus names
//! differently is listed under both names.

use super::topics::is_url;
use super::{ServeConfig, Settings};
use std::collections::BTreeMap;
use tidepool_disk::Compression;
use tidepool_settings::duration::{duration_text, size_text};
use tidepool_settings::redact::shown_text;
use tidepool_store::{DiskShare, max_block_duration};

/// Returns the flags by name, without dashes. The value is empty if there is none; the values of a
/// repeated flag are joined by commas.
pub(super) fn flags(config: &ServeConfig, settings: &Settings) -> BTreeMap<String, String> {
    let own = settings.iter().map(|(name, values)| {
        // URLs may contain credentials, which the API must not show.
        let text = match is_url(name) {
            true => values.iter().map(|value| shown_text(value)).collect::<Vec<_>>().join(","),
            false => values.join(","),
        };
        (name.to_owned(), text)
    });
    let theirs = equivalents(config);
    own.chain(theirs.map(|(name, value)| (name.to_owned(), value))).collect()
}

/// Returns the flags of Prometheus that have an equivalent setting here.
fn equivalents(config: &ServeConfig) -> impl Iterator<Item = (&'static str, String)> {
    let ServeConfig { store, queries, http, access, .. } = config;
    let web_file = access.web.as_ref().map_or_else(String::new, |file| file.display().to_string());
    let compression = match store.wal.compression {
        Compression::None => "none",
        Compression::Snappy => "snappy",
        Compression::Zstd => "zstd",
    };
    let retention_size = match store.retention_size {
        DiskShare::Bytes(bytes) => size_text(bytes),
        DiskShare::Percent(percent) => format!("{percent}%"),
    };
    let pinned_by = store.pin.as_ref();
    let delay_file = pinned_by.map_or_else(String::new, |hold| hold.file.to_string_lossy().into());
    let is = |yes: bool| if yes { "true" } else { "false" }.to_owned();
    [
        ("query.lookback-delta", duration_text(queries.lookback)),
        ("query.max-concurrency", queries.running_max.to_string()),
        ("query.max-samples", queries.samples_max.to_string()),
        ("query.timeout", duration_text(queries.timeout)),
        ("storage.remote.read-concurrent-limit", store.reads_max.to_string()),
        ("storage.remote.read-max-bytes-in-frame", http.read_frame_bytes_max.to_string()),
        ("storage.remote.read-sample-limit", http.read_samples_max.to_string()),
        ("storage.tsdb.delay-compact-file.path", delay_file),
        ("storage.tsdb.max-block-duration", duration_text(max_block_duration(store))),
        ("storage.tsdb.min-block-duration", duration_text(store.block_duration)),
        ("storage.tsdb.path", store.data_dir.to_string_lossy().into_owned()),
        ("storage.tsdb.retention.size", retention_size),
        ("storage.tsdb.retention.time", duration_text(store.retention)),
        ("storage.tsdb.samples-per-chunk", "120".to_owned()),
        ("storage.tsdb.wal-compression", is(store.wal.compression != Compression::None)),
        ("storage.tsdb.wal-compression-type", compression.to_owned()),
        ("storage.tsdb.wal-segment-size", size_text(store.wal.segment_bytes_max)),
        ("web.config.file", web_file),
        ("web.cors.origin", http.cors_origin.expression().to_owned()),
        ("web.enable-admin-api", is(http.admin_api)),
        ("web.enable-lifecycle", is(http.lifecycle)),
        ("web.enable-otlp-receiver", is(true)),
        ("web.enable-remote-write-receiver", is(true)),
        ("web.listen-address", http.listen.to_string()),
        ("web.max-connections", http.connections_max.to_string()),
        ("web.read-timeout", duration_text(http.limits.request_timeout)),
    ]
    .into_iter()
}
