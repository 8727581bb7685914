//! Reloads when the configuration file changes, or a file that it includes.
//!
//! Contents are compared, not times: mounted directories swap symbolic links, and an editor may
//! write what was there before.

use crate::config::ConfigSource;
use std::hash::{DefaultHasher, Hasher as _};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tidepool_lifecycle::reload::ReloadHandle;
use tidepool_lifecycle::shutdown::Shutdown;
use tidepool_scrape::config::ScrapeSettings;
use tokio::time::{MissedTickBehavior, interval};

/// The files of the configuration, as they were when it was read; clones share it.
#[derive(Clone)]
pub struct ConfigFiles(Arc<Mutex<Files>>);

struct Files {
    main: Option<PathBuf>,
    /// Says which files the main one includes.
    scrape: ScrapeSettings,
    read: u64,
}

impl ConfigFiles {
    /// Those of a configuration that has just been read.
    pub fn new(source: &ConfigSource, scrape: &ScrapeSettings) -> ConfigFiles {
        let mut files = Files { main: source.file(), scrape: scrape.clone(), read: 0 };
        files.read = files.hash();
        ConfigFiles(Arc::new(Mutex::new(files)))
    }

    /// Notes that they are about to be read. What changes from here on is seen as a change.
    pub(super) fn begin_reading(&self) {
        let mut files = self.lock();
        files.read = files.hash();
    }

    /// Notes which files are included now.
    pub(super) fn include(&self, scrape: &ScrapeSettings) {
        let mut files = self.lock();
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
    /// A number that changes with the content of any file. What cannot be read counts as empty: the
    /// reload says what is wrong with it.
    fn hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        for path in self.main.iter().chain(&self.scrape.further_files()) {
            let content = tidepool_settings::read_file("config", path).unwrap_or_default();
            hasher.write(path.as_os_str().as_encoded_bytes());
            hasher.write_usize(content.len());
            hasher.write(&content);
        }
        hasher.finish()
    }
}

impl ConfigFiles {
    /// Reloads when they change, until the stop signal.
    pub fn watch(self, reload: ReloadHandle, every: Duration, mut shutdown: Shutdown) {
        tokio::spawn(async move {
            let mut ticks = interval(every);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                tokio::select! {
                    () = shutdown.wait() => return,
                    _ = ticks.tick() => {}
                }
                let read = self.clone();
                let changed = tokio::task::spawn_blocking(move || read.have_changed()).await;
                if changed.unwrap_or(false) {
                    tracing::info!("the configuration file has changed");
                    // It has logged what there is to say.
                    let _ = reload.reload().await;
                }
            }
        });
    }
}
