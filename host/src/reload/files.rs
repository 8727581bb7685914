//! Reloads the configuration when its file, or a file that it includes, changes.
//!
//! Contents are compared instead of times: mounted directories may exchange symbolic links, and an
//! editor may write the same content again.

use crate::config::ConfigSource;
use std::hash::{DefaultHasher, Hasher as _};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tidepool_evaluation::{RuleSection, RulesConfig};
use tidepool_lifecycle::reload::ReloadHandle;
use tidepool_lifecycle::shutdown::Shutdown;
use tidepool_rules::file::FILE_BYTES_MAX as RULE_FILE_BYTES_MAX;
use tidepool_scrape::config::ScrapeSettings;
use tidepool_settings::file::read_regular;
use tokio::time::{MissedTickBehavior, interval};

/// The files of the configuration, and a hash of their last content. Clones share the state.
#[derive(Clone)]
pub struct ConfigFiles(Arc<Mutex<Files>>);

struct Files {
    main: Option<PathBuf>,
    /// Settings that name the included files.
    scrape: ScrapeSettings,
    rules: RuleSection,
    read: u64,
}

impl ConfigFiles {
    /// Creates the state for a configuration that has just been read.
    pub fn new(source: &ConfigSource, scrape: &ScrapeSettings, rules: &RulesConfig) -> ConfigFiles {
        let (scrape, rules) = (scrape.clone(), rules.section.clone());
        let mut files = Files { main: source.file(), scrape, rules, read: 0 };
        files.read = files.hash();
        ConfigFiles(Arc::new(Mutex::new(files)))
    }

    /// Records the current content before it is read. Later changes cause another reload.
    pub(super) fn begin_reading(&self) {
        // Done before reading, so that a write during the read causes another reload.
        let mut files = self.lock();
        files.read = files.hash();
    }

    /// Records which files are included now.
    pub(super) fn include(&self, scrape: &ScrapeSettings, rules: &RulesConfig) {
        let mut files = self.lock();
        // If the content has changed since it was read, the change must still be detected.
        let is_as_read = files.hash() == files.read;
        files.scrape = scrape.clone();
        files.rules = rules.section.clone();
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
    /// Returns a hash over all files. An unreadable file is hashed as empty; the reload reports it.
    fn hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        let further = (self.scrape.further_files(), self.rules.paths());
        for path in self.main.iter().chain(&further.0).chain(&further.1) {
            let content = read_regular(path, RULE_FILE_BYTES_MAX).unwrap_or_default();
            // Includes path and length, so that moving content between files changes the hash.
            hasher.write(path.as_os_str().as_encoded_bytes());
            hasher.write_usize(content.len());
            hasher.write(&content);
        }
        hasher.finish()
    }
}

impl ConfigFiles {
    /// Checks the files for changes until the stop signal, and reloads after a change.
    pub fn watch(self, reload: ReloadHandle, every: Duration, mut shutdown: Shutdown) {
        tokio::spawn(async move {
            let mut ticks = interval(every);
            // After a suspended machine resumes, one check is enough.
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                tokio::select! {
                    () = shutdown.wait() => return,
                    _ = ticks.tick() => {}
                }
                // On a blocking thread, because reading may block, such as on a dead mount.
                let read = self.clone();
                let changed = tokio::task::spawn_blocking(move || read.have_changed()).await;
                if changed.unwrap_or(false) {
                    tracing::info!("the configuration file has changed");
                    // The result is ignored, because the reload has logged it.
                    let _ = reload.reload().await;
                }
            }
        });
    }
}
