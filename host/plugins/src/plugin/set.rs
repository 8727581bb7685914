//! All plugins at one point in time, and the chain of transforms.

use super::code::Cancel;
use super::config::{OnFault, PluginSettings, World};
use super::folder::Wanted;
use super::jobs::Job;
use super::observers::Observer;
use super::pool::Plugin;
use super::transforms::{Link, Transforms};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// All plugins at one point in time. Requests use this value.
#[derive(Default)]
pub struct Set {
    pub entries: BTreeMap<String, Entry>,
    /// Transforms that every write passes.
    pub transforms: Transforms,
}

/// A plugin that should be loaded, and its current state.
#[derive(Clone)]
pub struct Entry {
    /// Settings and file from which the plugin should be loaded.
    pub wanted: Wanted,
    pub progress: Progress,
    /// Reason why the last attempt failed; `None` if it succeeded.
    pub failure: Option<Failure>,
    /// Version in use, which may have an older file or older settings.
    pub loaded: Option<Loaded>,
    /// File with the machine code of the wanted version, if known.
    pub code: Option<PathBuf>,
    /// Whether writes wait because this plugin, present at the start, may be a transform.
    pub is_awaited: bool,
}

#[derive(Clone)]
pub enum Progress {
    /// The file is new or has changed, and may still be written to.
    Settling,
    Due,
    Running(Cancel),
    Done,
    Failed,
}

/// A failed load, and the time of the next attempt.
#[derive(Clone)]
pub struct Failure {
    /// Reason, cut to a bounded length.
    pub why: Arc<str>,
    /// Time of the next attempt; `None` if the same file would fail in the same way.
    pub next: Option<Instant>,
    /// Pause before that attempt. The next failure doubles it.
    pub pause: Duration,
}

/// A plugin that is in use, with the threads of its world.
#[derive(Clone)]
pub struct Loaded {
    pub plugin: Arc<Plugin>,
    /// Queue of the plugin, if it is an observer.
    pub observer: Option<Arc<Observer>>,
    /// Thread of the plugin, if it is a job. It runs until this value is dropped.
    pub _job: Option<Arc<Job>>,
    /// File of its machine code in the cache.
    pub code: PathBuf,
}

impl Set {
    /// Creates a set, with the transforms in the configured order.
    pub fn of(entries: BTreeMap<String, Entry>) -> Set {
        let mut chain: Vec<(i32, &str, Link)> = Vec::new();
        for (name, entry) in &entries {
            if let Some(link) = entry.link() {
                chain.push((entry.wanted.settings.order, name, link));
            }
        }
        chain.sort_by_key(|(order, name, _)| (*order, *name));
        let chain = chain.into_iter().map(|(_, _, link)| link).collect();
        Set { transforms: Transforms { chain }, entries }
    }

    pub fn loaded(&self) -> impl Iterator<Item = &Arc<Plugin>> {
        self.entries.values().filter_map(|entry| Some(&entry.loaded.as_ref()?.plugin))
    }

    /// Returns the plugin of a name, if it is loaded.
    pub fn plugin(&self, name: &str) -> Option<&Arc<Plugin>> {
        self.entries.get(name)?.loaded.as_ref().map(|loaded| &loaded.plugin)
    }

    pub fn observers(&self) -> impl Iterator<Item = &Arc<Observer>> {
        self.entries.values().filter_map(|entry| entry.loaded.as_ref()?.observer.as_ref())
    }
}

impl Entry {
    /// Returns whether the plugin is of this world, or may be while its world is not known.
    pub fn may_be(&self, world: World) -> bool {
        match (&self.loaded, &self.wanted.settings) {
            (Some(loaded), _) => loaded.plugin.world == world,
            (None, PluginSettings { world: Some(said), .. }) => *said == world,
            // Only decoders have paths, so a plugin with paths must be a decoder.
            (None, PluginSettings { paths, .. }) => world == World::Decoder || paths.is_empty(),
        }
    }

    /// Returns whether the plugin is neither loaded nor known to fail.
    pub fn is_undecided(&self) -> bool {
        !matches!(self.progress, Progress::Done) && self.failure.is_none()
    }

    /// Returns the entry in the chain of transforms. Writes wait for a transform that was present
    /// at the start: for a limited time, or without limit if `on-fault` is `reject`.
    fn link(&self) -> Option<Link> {
        if !self.may_be(World::Transform) {
            return None;
        }
        // A loaded version is used even while its replacement is being loaded or has failed.
        if let Some(Loaded { plugin, .. }) = &self.loaded {
            return Some(Link::Loaded(Arc::clone(plugin)));
        }
        let Wanted { settings, .. } = &self.wanted;
        let name = || Arc::from(settings.name.as_str());
        let is_needed = settings.on_fault == OnFault::Reject;
        match self.is_undecided() {
            true if is_needed || self.is_awaited => Some(Link::Loading(name())),
            false if is_needed => Some(Link::Missing(name())),
            _ => None,
        }
    }
}
