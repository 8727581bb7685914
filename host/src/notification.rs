//! Starts notification with what it needs of the store.

use std::path::Path;
use std::sync::Arc;
use tidepool_disk::ALERTS_DIR;
use tidepool_disk::fs::RealDisk;
use tidepool_lifecycle::clock::{since_boot, system_now_ms};
use tidepool_notify::config::NotifyConfig;
use tidepool_notify::notifier::{Notifier, NotifierError, NotifierParts, NotifierThread};
use tidepool_notify::silences::Now;
use tidepool_scrape::discovery::DiscoveryOptions;
use tidepool_store::Store;
use tokio::runtime::Handle;

/// Directory for the last lists of Alertmanagers, in that of alerts.
const ALERTMANAGERS_DIR: &str = "targets";

/// Starts notification over a data directory that the store has locked.
pub async fn start(
    mut config: NotifyConfig,
    external_url: String,
    store: &Store,
    data_dir: &Path,
) -> Result<(Notifier, NotifierThread), NotifierError> {
    config.external_url = external_url;
    let clock_store = store.clone();
    let clock = Arc::new(move || Now {
        wall_ms: system_now_ms(),
        // Before the replay has ended, the store does not know its newest sample.
        is_doubted: !clock_store.is_ready() || clock_store.clock_is_doubted(),
        monotonic: since_boot(),
    });
    let stored = store.clone();
    let parts = NotifierParts {
        disk: Arc::new(RealDisk),
        dir: data_dir.join(ALERTS_DIR),
        clock,
        newest_ms: Arc::new(move || stored.newest_written_ms()),
        discovery: DiscoveryOptions {
            saved_dir: Some(data_dir.join(ALERTS_DIR).join(ALERTMANAGERS_DIR)),
            ..DiscoveryOptions::default()
        },
        runtime: Handle::current(),
    };
    // On a blocking thread, because files are read.
    let started = tokio::task::spawn_blocking(move || Notifier::start(&config, parts)).await;
    started.unwrap_or_else(|error| Err(NotifierError::Panicked(error.to_string())))
}
