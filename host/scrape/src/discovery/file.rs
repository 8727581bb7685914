//! Targets that files list, as JSON or YAML.

use super::list::{List, ListError, Raw};
use super::read::{Origin, json, yaml};
use super::{DiscoveryFigures, DiscoveryOptions};
use crate::config::{FileConfig, matching};
use crate::memory::MemoryBound;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tidepool_settings::file::open_regular;

/// Label with the file that lists a target.
const FILE_LABEL: &str = "__meta_filepath";

/// Discoverer that reads files at regular intervals.
pub(super) struct FileDiscovery {
    config: FileConfig,
    figures: Arc<DiscoveryFigures>,
    memory: MemoryBound,
    /// State of the files that the last refresh found.
    files: BTreeMap<PathBuf, FileState>,
    has_looked: bool,
}

/// A file as it was last read.
#[derive(Clone, Default)]
struct FileState {
    /// Hash of the content; `None` if the file could not be read or memory was short.
    hash: Option<u64>,
    /// Last fault of the file.
    wrong: Option<ListError>,
    /// List from the last content without a fault.
    list: Option<Arc<List>>,
}

impl FileDiscovery {
    pub fn new(config: &FileConfig, options: &DiscoveryOptions) -> FileDiscovery {
        FileDiscovery {
            config: config.clone(),
            figures: Arc::clone(&options.figures),
            memory: options.memory.clone(),
            files: BTreeMap::new(),
            has_looked: false,
        }
    }

    pub fn interval(&self) -> Duration {
        self.config.refresh_interval
    }

    /// Returns whether all files that exist were read without a fault.
    pub fn has_answered(&self) -> bool {
        self.has_looked && self.files.values().all(|seen| seen.wrong.is_none())
    }

    /// Reads all files, and returns all lists if any has changed.
    pub async fn refresh(&mut self) -> Option<Vec<Arc<List>>> {
        let (config, figures) = (self.config.clone(), Arc::clone(&self.figures));
        let (memory, before) = (self.memory.clone(), self.files.clone());
        // Runs on another thread, because a file system may take long.
        let look = move || look(&config, &figures, &memory, &before);
        // If the task panics, the files keep their state.
        let after = tokio::task::spawn_blocking(look).await.ok()?;
        let is_first = !std::mem::replace(&mut self.has_looked, true);
        let (before, found) = (lists(&self.files), lists(&after));
        let is_same = before.len() == found.len()
            && before.iter().zip(&found).all(|(before, found)| Arc::ptr_eq(before, found));
        self.files = after;
        (is_first || !is_same).then_some(found)
    }
}

fn lists(files: &BTreeMap<PathBuf, FileState>) -> Vec<Arc<List>> {
    files.values().filter_map(|seen| seen.list.clone()).collect()
}

fn look(
    config: &FileConfig,
    figures: &DiscoveryFigures,
    memory: &MemoryBound,
    before: &BTreeMap<PathBuf, FileState>,
) -> BTreeMap<PathBuf, FileState> {
    let mut after = BTreeMap::new();
    for pattern in &config.files {
        match matching(pattern) {
            Ok(paths) => {
                for path in paths {
                    let seen = before.get(&path).cloned().unwrap_or_default();
                    let seen = read(&path, seen, figures, memory);
                    after.insert(path, seen);
                }
            }
            Err(error) => {
                figures.file_read_errors.fetch_add(1, Relaxed);
                tracing::warn!(?pattern, %error, "could not look for files with targets");
                // The error does not tell that files are gone, so the files of this pattern stay.
                for (path, seen) in before.iter().filter(|(path, _)| pattern.is_beside(path)) {
                    after.insert(path.clone(), seen.clone());
                }
            }
        }
    }
    after
}

/// Reads a file; keeps the state from before if the content has not changed.
fn read(
    path: &Path,
    before: FileState,
    figures: &DiscoveryFigures,
    memory: &MemoryBound,
) -> FileState {
    let raw = raw(path, memory);
    let hash = raw.as_ref().ok().map(Raw::hash);
    if hash.is_some() && hash == before.hash {
        return before;
    }
    match raw.and_then(|raw| list(path, raw)) {
        Ok(list) => {
            // An equal list keeps its `Arc`, because [`FileDiscovery::refresh`] compares pointers.
            let same = before.list.filter(|before| before.is_same(&list));
            FileState { hash, wrong: None, list: Some(same.unwrap_or_else(|| Arc::new(list))) }
        }
        Err(wrong) => {
            figures.file_read_errors.fetch_add(1, Relaxed);
            if !before.wrong.as_ref().is_some_and(|before| before.is_same(&wrong)) {
                let path = path.display();
                tracing::warn!(
                    %path,
                    error = wrong.what,
                    "a file with targets cannot be used; those that were read before stay"
                );
            }
            // Without a hash, the file is read again next time, when there may be memory.
            let hash = hash.filter(|_| !wrong.is_memory);
            FileState { hash, wrong: Some(wrong), list: before.list }
        }
    }
}

fn raw(path: &Path, memory: &MemoryBound) -> Result<Raw, ListError> {
    let mut raw = Raw::new(memory);
    raw.read(open_regular(path).map_err(ListError::wrong)?)?;
    Ok(raw)
}

/// Returns the current list of a file.
pub fn listed(path: &Path) -> Result<List, String> {
    let raw = raw(path, &MemoryBound::unbounded());
    raw.and_then(|raw| list(path, raw)).map_err(|error| error.what)
}

/// Parses the content of a file.
fn list(path: &Path, raw: Raw) -> Result<List, ListError> {
    let is_json = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
    let source = path.display().to_string();
    let label = source.clone();
    let origin = Origin { source, label: (FILE_LABEL, &label) };
    raw.into_list(|bytes, room| match is_json {
        true => json(bytes, &origin, room),
        false => yaml(bytes, &origin, room),
    })
}
