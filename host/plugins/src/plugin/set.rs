//! The set of loaded plugins at one moment, and its chain of transforms.

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

/// What holds at one moment.
#[derive(Default)]
pub struct Set {
    /// By name.
    pub entries: BTreeMap<String, Entry>,
    /// What requests go through.
    pub transforms: Transforms,
}

/// A plugin that should be, and what there is of it.
#[derive(Clone)]
pub struct Entry {
    /// What should be.
    pub wanted: Wanted,
    /// How far that is.
    pub progress: Progress,
    /// Why it was not loaded the last time it was tried.
    pub failure: Option<Failure>,
    /// What works, perhaps of an earlier file or with earlier settings.
    pub loaded: Option<Loaded>,
    /// Where machine code of what should be is kept, if that is known.
    pub code: Option<PathBuf>,
    /// Whether writes wait for it if it may be a transform: of those that are there at the start.
    pub is_awaited: bool,
}

/// How far the loading of a plugin is.
#[derive(Clone)]
pub enum Progress {
    /// The file has just come or changed, and may be written to.
    Settling,
    /// It is to be loaded.
    Due,
    /// It is being loaded.
    Running(Cancel),
    /// It is loaded.
    Done,
    /// It could not be loaded.
    Failed,
}

/// Why a plugin is not loaded, and when it is tried again.
#[derive(Clone)]
pub struct Failure {
    /// Why.
    pub why: Arc<str>,
    /// When it is tried again by itself; never if it would fail in the same way.
    pub next: Option<Instant>,
    /// How long that was put off.
    pub pause: Duration,
}

/// What works.
#[derive(Clone)]
pub struct Loaded {
    /// Its instances.
    pub plugin: Arc<Plugin>,
    /// The way to it, of an observer.
    pub observer: Option<Arc<Observer>>,
    /// Runs as long as it is held.
    pub _job: Option<Arc<Job>>,
    /// Where its machine code is kept.
    pub code: PathBuf,
}

impl Set {
    /// What the entries make.
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

    /// All that work.
    pub fn loaded(&self) -> impl Iterator<Item = &Arc<Plugin>> {
        self.entries.values().filter_map(|entry| Some(&entry.loaded.as_ref()?.plugin))
    }

    /// The one of a name, if it works.
    pub fn plugin(&self, name: &str) -> Option<&Arc<Plugin>> {
        self.entries.get(name)?.loaded.as_ref().map(|loaded| &loaded.plugin)
    }

    /// Those that see what was stored.
    pub fn observers(&self) -> impl Iterator<Item = &Arc<Observer>> {
        self.entries.values().filter_map(|entry| entry.loaded.as_ref()?.observer.as_ref())
    }
}

impl Entry {
    /// Whether it may be of this world, as far as is known.
    pub fn may_be(&self, world: World) -> bool {
        match (&self.loaded, &self.wanted.settings) {
            (Some(loaded), _) => loaded.plugin.world == world,
            (None, PluginSettings { world: Some(said), .. }) => *said == world,
            (None, PluginSettings { paths, .. }) => world == World::Decoder || paths.is_empty(),
        }
    }

    /// Whether it is neither loaded nor known to fail.
    pub fn is_undecided(&self) -> bool {
        !matches!(self.progress, Progress::Done) && self.failure.is_none()
    }

    /// Its place among the transforms. While one is loaded that was there at the start, writes wait
    /// for it: for some time, or as long as it takes if nothing may be stored without it.
    fn link(&self) -> Option<Link> {
        if !self.may_be(World::Transform) {
            return None;
        }
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
