//! Watches the directory and the configuration, and updates the set of plugins accordingly.
//!
//! ```text
//!  files, settings ── each second ──▶ entries ── due ──▶ a thread loads it ──▶ entries ──▶ the set
//!                                        ▲                                        │
//!                                        └── failed: again after 1 s … 5 min ◀────┘
//! ```
//!
//! One thread owns the entries and does nothing that takes long. A loaded version replaces the
//! previous version completely. A failed load changes nothing, unless the file no longer exists.

use super::code::Cancel;
use super::config::{OnFault, PluginsConfig, World};
use super::folder::{Wanted, configured, wanted};
use super::loading::{LoadError, Loader, Outcome};
use super::set::{Entry, Failure, Loaded, Progress, Set};
use super::text::bounded;
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, PoisonError, RwLock, Weak};
use std::time::{Duration, Instant};
use tidepool_lifecycle::priority::lower_priority;

/// Interval at which files are checked.
const LOOK: Duration = Duration::from_secs(1);

/// Pause after a load that failed for a temporary reason. It doubles up to `PAUSE_MAX`.
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(300);

/// Maximum time for which writes wait at the start for transforms that are not required. Senders
/// retry, but a series stored before its transform is loaded keeps its old labels.
const START_WAIT: Duration = Duration::from_secs(60);

pub enum Event {
    Reload(PluginsConfig),
    /// A load has ended, with or without success.
    Loaded(Box<Outcome>),
}

/// The current set of plugins, which requests read.
pub type LiveSet = RwLock<Arc<Set>>;

/// Owns the list of plugins that should be loaded, and their states.
pub struct Watcher {
    config: PluginsConfig,
    loader: Arc<Loader>,
    entries: BTreeMap<String, Entry>,
    events: (Sender<Event>, Receiver<Event>),
    /// The last problem with the directory, kept so that a lasting problem is logged once.
    directory_problem: Option<String>,
    /// Number of running loads, including loads whose result is no longer wanted.
    running: usize,
    /// Whether the cache may contain machine code that is no longer needed.
    is_cluttered: bool,
    /// Time until which writes wait for transforms that were present at the start.
    awaits_until: Option<Instant>,
    /// Whether there are changes that are not published to requests yet.
    has_changed: bool,
}

impl Watcher {
    /// Checks the files for the first time. All plugins found will be loaded.
    pub fn new(config: PluginsConfig, loader: Arc<Loader>) -> Watcher {
        let mut watcher = Watcher {
            config,
            loader,
            entries: BTreeMap::new(),
            events: channel(),
            directory_problem: None,
            running: 0,
            is_cluttered: true,
            awaits_until: Some(Instant::now() + START_WAIT),
            has_changed: false,
        };
        watcher.look();
        for entry in watcher.entries.values_mut() {
            entry.is_awaited = true;
            // At the start, files are assumed to be complete.
            if matches!(entry.progress, Progress::Settling) {
                entry.progress = Progress::Due;
            }
        }
        watcher
    }

    pub fn sender(&self) -> Sender<Event> {
        self.events.0.clone()
    }

    /// Returns the set before any plugin is loaded.
    pub fn first_set(&self) -> Set {
        Set::of(self.entries.clone())
    }

    /// Runs until the set is no longer in use.
    pub fn run(mut self, live: &Weak<LiveSet>) {
        // Low priority, like that of reads: loading must not delay writes.
        lower_priority();
        self.start_due();
        loop {
            match self.events.1.recv_timeout(LOOK) {
                Ok(Event::Reload(config)) => {
                    self.config.plugins = config.plugins;
                    self.try_again();
                    self.look();
                }
                Ok(Event::Loaded(outcome)) => self.take(*outcome),
                Err(RecvTimeoutError::Timeout) => self.look(),
                Err(RecvTimeoutError::Disconnected) => return,
            }
            let Some(live) = live.upgrade() else {
                // Running compilers are stopped, because their results will not be used.
                self.entries.values().for_each(Entry::cancel);
                return;
            };
            self.end_awaiting();
            self.start_due();
            self.publish(&live);
            self.clean();
        }
    }

    /// Updates the entries from the directory and the configuration.
    fn look(&mut self) {
        let wanted = match wanted(&self.config) {
            Ok(wanted) => {
                if self.directory_problem.take().is_some() {
                    tracing::info!("the directory of plugins can be read again");
                }
                wanted
            }
            Err(error) => {
                self.tell_directory_problem(&error);
                // Loaded plugins are kept, and new settings in the configuration are applied.
                let mut wanted = configured(&self.config);
                for (name, entry) in &self.entries {
                    match wanted.get_mut(name) {
                        // The old stamp: a file that cannot be seen must not look removed.
                        Some(one) => one.stamp = entry.wanted.stamp,
                        None if !entry.wanted.is_configured => {
                            wanted.insert(name.clone(), entry.wanted.clone());
                        }
                        None => {}
                    }
                }
                wanted
            }
        };
        let gone: Vec<String> =
            self.entries.keys().filter(|name| !wanted.contains_key(*name)).cloned().collect();
        for name in gone {
            if let Some(entry) = self.entries.remove(&name) {
                entry.cancel();
                (self.is_cluttered, self.has_changed) = (true, true);
                tracing::info!(plugin = name, "a plugin was removed");
            }
        }
        for (name, wanted) in wanted {
            match self.entries.get_mut(&name) {
                // The file did not change for an interval, so a copy in progress is complete now.
                Some(entry) if entry.wanted == wanted => entry.look_again(),
                Some(entry) => {
                    entry.change(wanted);
                    self.has_changed = true;
                }
                None => {
                    self.has_changed = true;
                    self.entries.insert(name, Entry::new(wanted));
                }
            }
        }
    }

    /// Retries all failed plugins, after a reload of the configuration.
    fn try_again(&mut self) {
        for entry in self.entries.values_mut() {
            if entry.failure.take().is_some() && matches!(entry.progress, Progress::Failed) {
                entry.progress = Progress::Due;
            }
            self.has_changed = true;
        }
    }

    fn start_due(&mut self) {
        let due: Vec<(String, Wanted)> = self
            .entries
            .iter()
            .filter(|(_, entry)| matches!(entry.progress, Progress::Due))
            .map(|(name, entry)| (name.clone(), entry.wanted.clone()))
            .collect();
        for (name, wanted) in due {
            // A missing file fails without a thread.
            if wanted.stamp.is_none() {
                let error = LoadError::Missing(wanted.path.clone());
                self.fail(&name, &error);
                continue;
            }
            let cancel = Cancel::default();
            let (loader, events) = (Arc::clone(&self.loader), self.sender());
            let cancelled = cancel.clone();
            let thread = std::thread::Builder::new().name("plugin-load".into()).spawn(move || {
                lower_priority();
                let outcome = loader.load(wanted, &cancelled);
                // The receiver is dropped only when the process ends.
                let _ = events.send(Event::Loaded(Box::new(outcome)));
            });
            match thread {
                Ok(_) => {
                    self.running += 1;
                    if let Some(entry) = self.entries.get_mut(&name) {
                        entry.progress = Progress::Running(cancel);
                    }
                }
                Err(error) => self.fail(&name, &LoadError::Thread(error)),
            }
        }
    }

    /// Handles the result of a load. Ignores it if another version is wanted meanwhile.
    fn take(&mut self, outcome: Outcome) {
        self.running -= 1;
        // Even a result that is not used may have added a file to the cache.
        (self.is_cluttered, self.has_changed) = (true, true);
        let Outcome { wanted, code, result } = outcome;
        let name = wanted.settings.name.clone();
        let Some(entry) = self.entries.get_mut(&name) else { return };
        // The plugin was changed during the load, so the result is of an older version.
        if entry.wanted != wanted || !matches!(entry.progress, Progress::Running(_)) {
            return;
        }
        entry.code = code;
        match result {
            Ok(loaded) => {
                entry.loaded = Some(loaded);
                entry.progress = Progress::Done;
                entry.failure = None;
            }
            Err(error) => {
                if error.lacks_shared_memory() {
                    // Frees the memory of idle instances, which are started again when needed.
                    self.each_loaded(|loaded| loaded.plugin.drop_idle());
                }
                self.fail(&name, &error);
            }
        }
    }

    fn each_loaded(&self, act: impl Fn(&Loaded)) {
        self.entries.values().filter_map(|entry| entry.loaded.as_ref()).for_each(act);
    }

    fn fail(&mut self, name: &str, error: &LoadError) {
        self.has_changed = true;
        let Some(entry) = self.entries.get_mut(name) else { return };
        // The file was removed, so the version in use ends.
        if entry.wanted.stamp.is_none() {
            entry.loaded = None;
        }
        let settings = &entry.wanted.settings;
        let world = settings.world.or(entry.loaded.as_ref().map(|loaded| loaded.plugin.world));
        // Metrics are by world, so nothing is counted while the world is not known.
        if let Some(world) = world {
            self.loader.figures.of(name, world).load_failures.fetch_add(1, Relaxed);
        }
        let before = entry.failure.take();
        let why: Arc<str> = bounded(&error.to_string()).into();
        let pause = before.as_ref().map_or(PAUSE_MIN, |before| (before.pause * 2).min(PAUSE_MAX));
        let next = (!error.is_lasting()).then(|| Instant::now() + pause);
        // The same reason is logged once, not at each retry.
        if before.is_none_or(|before| before.why != why) {
            let then = match (&entry.loaded, settings.on_fault) {
                (Some(_), _) => "the loaded version stays in use",
                (None, OnFault::Reject) => "writes are refused until it is loaded",
                (None, OnFault::Pass) => "the plugin is not called",
            };
            let again = if next.is_some() { "; loading will be retried" } else { "" };
            tracing::error!(plugin = name, "a plugin could not be loaded: {why}; {then}{again}");
        }
        entry.progress = Progress::Failed;
        entry.failure = Some(Failure { why, next, pause });
    }

    /// Ends the waiting of writes for transforms that are not required.
    fn end_awaiting(&mut self) {
        if self.awaits_until.is_none_or(|until| Instant::now() < until) {
            return;
        }
        self.awaits_until = None;
        for (name, entry) in &mut self.entries {
            let is_optional = entry.wanted.settings.on_fault == OnFault::Pass;
            if entry.is_undecided() && is_optional && entry.may_be(World::Transform) {
                tracing::warn!(
                    plugin = name,
                    "a plugin is still being loaded; writes no longer wait for it"
                );
            }
            entry.is_awaited = false;
        }
        self.has_changed = true;
    }

    /// Makes changes visible to requests.
    fn publish(&mut self, live: &LiveSet) {
        if !std::mem::take(&mut self.has_changed) {
            return;
        }
        let set = Arc::new(Set::of(self.entries.clone()));
        // Locked only for the swap, because every request takes this lock.
        let mut held = live.write().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *held, Arc::clone(&set));
        drop(held);
        // Logged only now, when requests use the plugin.
        for plugin in set.loaded() {
            let name = plugin.settings.name.as_str();
            if !before.plugin(name).is_some_and(|old| Arc::ptr_eq(old, plugin)) {
                tracing::info!(plugin = name, world = plugin.world.name(), "a plugin was loaded");
            }
        }
    }

    /// Deletes machine code that no plugin needs any more.
    fn clean(&mut self) {
        // The file of a running load is not known to an entry yet, and would be deleted.
        if self.running > 0 || !self.is_cluttered {
            return;
        }
        self.is_cluttered = false;
        // The loaded version may be older than the wanted version; the code of both is kept.
        let files = self.entries.values().flat_map(|entry| {
            let loaded = entry.loaded.as_ref().map(|loaded| loaded.code.as_path());
            entry.code.as_deref().into_iter().chain(loaded)
        });
        self.loader.keep_only(&files.collect::<Vec<_>>());
    }

    fn tell_directory_problem(&mut self, error: &io::Error) {
        let problem = error.to_string();
        if self.directory_problem.as_ref() != Some(&problem) {
            let directory = self.config.directory.clone().unwrap_or_default();
            let directory = directory.display();
            tracing::warn!(
                %error,
                "the directory of plugins {directory} could not be read: the loaded plugins stay \
                 in use"
            );
            self.directory_problem = Some(problem);
        }
    }
}

impl Entry {
    fn new(wanted: Wanted) -> Entry {
        let mut entry = Entry {
            wanted,
            progress: Progress::Settling,
            failure: None,
            loaded: None,
            code: None,
            is_awaited: false,
        };
        entry.progress = entry.first_progress();
        entry
    }

    /// Returns the first state. An existing file may still be being written.
    fn first_progress(&self) -> Progress {
        if self.wanted.stamp.is_some() { Progress::Settling } else { Progress::Due }
    }

    /// Applies other settings or another file.
    fn change(&mut self, wanted: Wanted) {
        self.cancel();
        // If only the settings changed, the file is complete.
        let is_same_file = self.wanted.stamp == wanted.stamp && self.wanted.path == wanted.path;
        self.wanted = wanted;
        self.failure = None;
        self.progress = if is_same_file { Progress::Due } else { self.first_progress() };
    }

    /// Advances the state after a look at the files without a change.
    fn look_again(&mut self) {
        let is_due = match &self.progress {
            Progress::Settling => true,
            Progress::Failed => {
                let next = self.failure.as_ref().and_then(|failure| failure.next);
                next.is_some_and(|next| next <= Instant::now())
            }
            _ => false,
        };
        if is_due {
            self.progress = Progress::Due;
        }
    }

    fn cancel(&self) {
        if let Progress::Running(cancel) = &self.progress {
            cancel.cancel();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plugin::config::PluginSettings;
    use crate::plugin::transforms::Link;
    use std::fs;

    /// Returns the wanted state of a plugin `a` with these settings in a directory.
    fn wanted_in(directory: &std::path::Path, settings: &PluginSettings) -> io::Result<Wanted> {
        let config = PluginsConfig {
            directory: Some(directory.to_owned()),
            plugins: vec![settings.clone()],
            ..PluginsConfig::default()
        };
        let mut wanted = wanted(&config)?;
        wanted.remove(&settings.name).ok_or(io::ErrorKind::NotFound.into())
    }

    #[test]
    fn a_file_is_loaded_when_it_stays_the_same_and_anew_when_it_changes() -> io::Result<()> {
        let directory = tempfile::tempdir()?;
        let file = directory.path().join("a.wasm");
        let mut settings = PluginSettings::named("a");
        let mut entry = Entry::new(wanted_in(directory.path(), &settings)?);
        assert!(matches!(entry.progress, Progress::Due), "nothing to wait for");
        for bytes in ["some", "more bytes"] {
            fs::write(&file, bytes)?;
            entry.change(wanted_in(directory.path(), &settings)?);
            assert!(matches!(entry.progress, Progress::Settling));
        }
        entry.look_again();
        assert!(matches!(entry.progress, Progress::Due));
        // The file is replaced while it is compiled.
        let cancel = Cancel::default();
        entry.progress = Progress::Running(cancel.clone());
        entry.look_again();
        assert!(!cancel.is_cancelled());
        fs::write(&file, "even more bytes")?;
        entry.change(wanted_in(directory.path(), &settings)?);
        assert!(cancel.is_cancelled() && matches!(entry.progress, Progress::Settling));
        // New settings of an unchanged file are due at once.
        settings.order = 1;
        entry.change(wanted_in(directory.path(), &settings)?);
        assert!(matches!(entry.progress, Progress::Due));
        // A failure is retried at its time, or never without a change.
        for (next, is_due) in [(None, false), (Some(Instant::now()), true)] {
            entry.progress = Progress::Failed;
            entry.failure = Some(Failure { why: "a test".into(), next, pause: PAUSE_MIN });
            entry.look_again();
            assert_eq!(matches!(entry.progress, Progress::Due), is_due);
        }
        Ok(())
    }

    #[test]
    fn writes_wait_for_what_may_be_a_transform() -> io::Result<()> {
        let directory = tempfile::tempdir()?;
        let link = |settings: &PluginSettings, is_awaited, has_failed: bool| -> io::Result<_> {
            let mut entry = Entry::new(wanted_in(directory.path(), settings)?);
            entry.is_awaited = is_awaited;
            let why = "a test".into();
            entry.failure = has_failed.then_some(Failure { why, next: None, pause: PAUSE_MIN });
            let set = Set::of(BTreeMap::from([("a".to_owned(), entry)]));
            Ok(set.transforms.chain.into_iter().next())
        };
        let mut settings = PluginSettings::named("a");
        assert!(matches!(link(&settings, true, false)?, Some(Link::Loading(_))));
        assert!(link(&settings, false, false)?.is_none(), "added later");
        assert!(link(&settings, true, true)?.is_none(), "the plugin is not called");
        settings.on_fault = OnFault::Reject;
        assert!(matches!(link(&settings, false, false)?, Some(Link::Loading(_))));
        assert!(matches!(link(&settings, true, true)?, Some(Link::Missing(_))));
        for world in [World::Decoder, World::Job, World::Observer] {
            settings.world = Some(world);
            assert!(link(&settings, true, false)?.is_none(), "{world:?}");
        }
        Ok(())
    }
}
