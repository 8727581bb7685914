//! Targets that files list, as JSON or YAML.

use super::{DiscoveryFigures, DiscoveryOptions, LIST_BYTES_MAX};
use crate::config::{FileConfig, Group, matching};
use crate::target::TargetGroup;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hasher as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tidepool_settings::file::read_regular;
use tidepool_settings::yaml;

/// The label that says which file lists a target.
const FILE_LABEL: &str = "__meta_filepath";

/// Looks at files.
pub(super) struct FileDiscovery {
    config: FileConfig,
    figures: Arc<DiscoveryFigures>,
    /// The files that there were, with their groups.
    files: BTreeMap<PathBuf, Seen>,
    has_looked: bool,
}

/// A file as it was last read.
#[derive(Clone, Default)]
struct Seen {
    /// Of its content; none if it could not be read.
    hash: Option<u64>,
    /// What was last wrong with it.
    wrong: Option<String>,
    /// Its groups when it was last sound.
    groups: Vec<TargetGroup>,
}

impl FileDiscovery {
    pub fn new(config: &FileConfig, options: &DiscoveryOptions) -> FileDiscovery {
        let figures = Arc::clone(&options.figures);
        FileDiscovery { config: config.clone(), figures, files: BTreeMap::new(), has_looked: false }
    }

    pub fn interval(&self) -> Duration {
        self.config.refresh_interval
    }

    /// Whether all files were read that there are.
    pub fn has_answered(&self) -> bool {
        self.has_looked && self.files.values().all(|seen| seen.wrong.is_none())
    }

    /// Looks at all files; returns all groups if any has changed.
    pub async fn refresh(&mut self) -> Option<Vec<TargetGroup>> {
        let (config, figures) = (self.config.clone(), Arc::clone(&self.figures));
        let before = std::mem::take(&mut self.files);
        // A file system may take its time.
        let look = move || {
            let after = look(&config, &figures, &before);
            (before, after)
        };
        let (before, after) = tokio::task::spawn_blocking(look).await.ok()?;
        let groups = |files: &BTreeMap<PathBuf, Seen>| -> Vec<TargetGroup> {
            files.values().flat_map(|seen| seen.groups.clone()).collect()
        };
        let is_first = !std::mem::replace(&mut self.has_looked, true);
        let found = groups(&after);
        let changes = is_first || found != groups(&before);
        self.files = after;
        changes.then_some(found)
    }
}

fn look(
    config: &FileConfig,
    figures: &DiscoveryFigures,
    before: &BTreeMap<PathBuf, Seen>,
) -> BTreeMap<PathBuf, Seen> {
    let mut after = BTreeMap::new();
    for pattern in &config.files {
        match matching(pattern) {
            Ok(paths) => {
                for path in paths {
                    let seen = before.get(&path).cloned().unwrap_or_default();
                    let seen = read(&path, seen, figures);
                    after.insert(path, seen);
                }
            }
            Err(error) => {
                figures.file_read_errors.fetch_add(1, Relaxed);
                tracing::warn!(?pattern, %error, "could not look for files with targets");
                // Nothing says that these are gone.
                for (path, seen) in before.iter().filter(|(path, _)| pattern.is_beside(path)) {
                    after.insert(path.clone(), seen.clone());
                }
            }
        }
    }
    after
}

/// Reads a file if its content is another one than before.
fn read(path: &Path, before: Seen, figures: &DiscoveryFigures) -> Seen {
    let content = content(path);
    let hash = content.as_ref().ok().map(|content| {
        let mut hasher = DefaultHasher::new();
        hasher.write(content);
        hasher.finish()
    });
    if hash.is_some() && hash == before.hash {
        return before;
    }
    match content.and_then(|content| groups(path, content)) {
        Ok(groups) => Seen { hash, wrong: None, groups },
        Err(wrong) => {
            figures.file_read_errors.fetch_add(1, Relaxed);
            if before.wrong.as_ref() != Some(&wrong) {
                let path = path.display();
                tracing::warn!(
                    %path,
                    error = wrong,
                    "a file with targets cannot be used; those that were read before stay"
                );
            }
            Seen { hash, wrong: Some(wrong), groups: before.groups }
        }
    }
}

fn content(path: &Path) -> Result<Vec<u8>, String> {
    read_regular(path, LIST_BYTES_MAX).map_err(|error| error.to_string())
}

/// The groups that a file lists now.
pub fn listed(path: &Path) -> Result<Vec<TargetGroup>, String> {
    content(path).and_then(|content| groups(path, content))
}

/// The groups that a file lists.
fn groups(path: &Path, content: Vec<u8>) -> Result<Vec<TargetGroup>, String> {
    let is_json = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
    let groups: Vec<Option<Group>> = match is_json {
        true => serde_json::from_slice(&content).map_err(|error| error.to_string())?,
        false => {
            let text = String::from_utf8(content).map_err(|_| "it is not text".to_owned())?;
            let node = yaml::load(&text).map_err(|error| error.to_string())?;
            yaml::read("", &node).map_err(|error| error.to_string())?
        }
    };
    let path = path.display().to_string();
    target_groups(groups, &path, |group| {
        group.labels.insert(FILE_LABEL.to_owned(), path.clone());
    })
}

/// Groups of a list, with sources that count them.
pub(super) fn target_groups(
    groups: Vec<Option<Group>>,
    source: &str,
    add_labels: impl Fn(&mut TargetGroup),
) -> Result<Vec<TargetGroup>, String> {
    let group = |(number, group): (usize, Option<Group>)| {
        let group = group.ok_or("nil target group item found")?;
        group.check()?;
        let mut group = group.target_group(format!("{source}:{number}"));
        add_labels(&mut group);
        Ok(group)
    };
    groups.into_iter().enumerate().map(group).collect()
}
