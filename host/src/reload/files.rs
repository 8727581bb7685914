//! Reloads when the configuration file, or a file that it includes, changes.
//!
//! Contents are compared, not times: mounted directories swap symbolic links, and an editor may
//! write the same content again.

use crate::config::ConfigSource;
use std::hash::{DefaultHasher, Hasher as _};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tidepool_lifecycle::reload::ReloadHandle;
use tidepool_lifecycle::shutdown::Shutdown;
use tidepool_scrape::config::ScrapeSettings;
use tokio::time::{MissedTickBehavior, interval};

/// The files of the configuration, and the content that was read last. Clones share the state.
#[derive(Clone)]
pub struct ConfigFiles(Arc<Mutex<Files>>);

struct Files {
    main: Option<PathBuf>,
    /// Settings that name the files which the main one includes.
    scrape: ScrapeSettings,
    read: u64,
}

impl ConfigFiles {
    /// Makes the state of a configuration that has just been read.
    pub fn new(source: &ConfigSource, scrape: &ScrapeSettings) -> ConfigFiles {
        let mut files = Files { main: source.file(), scrape: scrape.clone(), read: 0 };
        files.read = files.hash();
        ConfigFiles(Arc::new(Mutex::new(files)))
    }

    /// Records the present content before a read. Any later change counts as a change.
    pub(super) fn begin_reading(&self) {
        // Before the read: a write during it must cause another reload, not be missed.
        let mut files = self.lock();
        files.read = files.hash();
    }

    /// Records the files that are included now.
    pub(super) fn include(&self, scrape: &ScrapeSettings) {
        let mut files = self.lock();
        // A content that changed since the read must still differ afterwards.
        let is_as_read = files.hash() == files.read;
        files.scrape = scrape.clone();
        if is_as_read {
            files.read = files.hash();
        }
    }

    fn have_changed(&self) -> bool {
        let files = self.lock();
        files.hash() != files.read
    }

    fn lock(&self) -> MutexGuard<'_, Files> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Files {
    /// Returns a hash over all files. An unreadable one counts as empty; the reload reports it.
    fn hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        for path in self.main.iter().chain(&self.scrape.further_files()) {
            let content = tidepool_settings::read_file("config", path).unwrap_or_default();
            // Path and length separate the files, so that content cannot move unnoticed.
            hasher.write(path.as_os_str().as_encoded_bytes());
            hasher.write_usize(content.len());
            hasher.write(&content);
        }
        hasher.finish()
    }
}

impl ConfigFiles {
    /// Reloads when the files change, until the stop signal.
    pub fn watch(self, reload: ReloadHandle, every: Duration, mut shutdown: Shutdown) {
        tokio::spawn(async move {
            let mut ticks = interval(every);
            // After a suspended machine wakes, one look is enough.
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                tokio::select! {
                    () = shutdown.wait() => return,
                    _ = ticks.tick() => {}
                }
                // Reading may block, as on a dead mount.
                let read = self.clone();
                let changed = tokio::task::spawn_blocking(move || read.have_changed()).await;
                if changed.unwrap_or(false) {
                    tracing::info!("the configuration file has changed");
                    // The outcome was logged by the reload.
                    let _ = reload.reload().await;
                }
            }
        });
    }
}
