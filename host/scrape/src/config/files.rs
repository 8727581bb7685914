//! The files of `scrape_config_files`: each has `scrape_configs` and nothing else.

use super::glob::{Pattern, matching};
use super::{GlobalConfig, ScrapeConfig, job};
use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use tidepool_settings::yaml::{self, Data};
use tidepool_settings::{FileError, read_file};

const KEY: &str = "scrape_config_files";

/// The only key of a further file.
const JOBS: &str = "scrape_configs";

/// Maximum number of further files.
pub(super) const FILES_MAX: usize = 10_000;

/// Fault in the configuration, with its file and position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigError {
    /// Fault in the configuration file itself.
    Main(yaml::Error),
    /// Fault in one of the further files.
    Further {
        path: PathBuf,
        /// Fault with its line and column.
        source: yaml::Error,
    },
    /// A further file cannot be read.
    File(FileError),
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigError::Main(error) => error.fmt(f),
            ConfigError::Further { path, source } => write!(f, "{}:{source}", path.display()),
            ConfigError::File(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ConfigError {}

impl From<yaml::Error> for ConfigError {
    fn from(error: yaml::Error) -> ConfigError {
        ConfigError::Main(error)
    }
}

/// Reads the patterns of the section.
pub(super) fn patterns(node: &yaml::Node, directory: &Path) -> Result<Vec<Pattern>, yaml::Error> {
    let texts: Vec<String> = yaml::read(KEY, node)?;
    let pattern = |text: String| {
        let mut pattern = Pattern::parse(&text).ok_or_else(|| {
            let what = format!("invalid scrape config file path {text:?}");
            yaml::Error::new(node.place, KEY, what)
        })?;
        pattern.set_directory(directory);
        Ok(pattern)
    };
    texts.into_iter().map(pattern).collect()
}

/// Adds the jobs of all files that the patterns match. `place` is the position of the section.
pub(super) fn read_all(
    patterns: &[Pattern],
    place: yaml::Position,
    global: &GlobalConfig,
    jobs: &mut Vec<ScrapeConfig>,
) -> Result<(), ConfigError> {
    let mut first_found: HashMap<String, String> =
        jobs.iter().map(|job| (job.job.name.clone(), "main config file".to_owned())).collect();
    let mut file_count = 0;
    for pattern in patterns {
        let wrong = |what: String| yaml::Error::new(place, KEY, what);
        let found = matching(pattern).map_err(|error| wrong(format!("{pattern}: {error}")))?;
        for path in found {
            if file_count == FILES_MAX {
                return Err(wrong(format!("more than {FILES_MAX} files")).into());
            }
            let folder = path.parent().unwrap_or(Path::new(""));
            for (mut job, place) in read(&path, global)? {
                let name = &job.job.name;
                if let Some(first) = first_found.get(name) {
                    let what = format!(
                        "found multiple scrape configs with job name {name:?}, first found in \
                         {first}"
                    );
                    let source = yaml::Error::new(place, JOBS, what);
                    return Err(ConfigError::Further { path, source });
                }
                first_found.insert(name.clone(), format!("{:?}", path.display().to_string()));
                // As upstream, relative paths are resolved against the directory of their own file.
                job.set_directory(folder);
                jobs.push(job);
            }
            file_count += 1;
        }
    }
    Ok(())
}

/// Reads the jobs of a file, with the position of its section `scrape_configs`.
fn read(
    path: &Path,
    global: &GlobalConfig,
) -> Result<Vec<(ScrapeConfig, yaml::Position)>, ConfigError> {
    let content = read_file(KEY, path).map_err(ConfigError::File)?;
    let further = |source| ConfigError::Further { path: path.to_owned(), source };
    let start = yaml::Position { line: 1, column: 1 };
    let text = String::from_utf8(content)
        .map_err(|_| further(yaml::Error::new(start, "", "it is not text")))?;
    let node = yaml::load(&text).map_err(further)?;
    let entries = match &node.data {
        Data::Nothing => return Ok(Vec::new()),
        Data::Map(entries) => entries,
        _ => {
            let what = "expected lines of the form `key: value`";
            return Err(further(yaml::Error::new(node.place, "", what)));
        }
    };
    let mut jobs = Vec::new();
    for entry in entries {
        if entry.key != JOBS {
            let what = format!("there is no such key; there is {JOBS}");
            return Err(further(yaml::Error::new(entry.place, entry.key.clone(), what)));
        }
        let read = job::read_all(&entry.value, global).map_err(further)?;
        jobs.extend(read.into_iter().map(|job| (job, entry.value.place)));
    }
    Ok(jobs)
}
