//! The section `rule_files`, and the files that its patterns match.

use crate::checks::{ChecksError, EngineChecks};
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tidepool_query::QueryFeatures;
use tidepool_rules::builtin;
use tidepool_rules::file::{
    Checks, NameValidation, Options, Pattern, PatternError, RuleFile, RuleFileError, expand, parse,
    read_all,
};
use tidepool_rules::group::Defaults;
use tidepool_settings::yaml;

const KEY: &str = "rule_files";

/// Begin of the names of rule files that ship with the program.
const BUILTIN: &str = "builtin:";

/// The section `rule_files` of the configuration file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RuleSection {
    /// Names of rule files that ship with the program.
    builtins: Vec<&'static str>,
    patterns: Vec<Pattern>,
    /// Directory of the configuration file, where relative patterns begin.
    directory: PathBuf,
    /// Whether the files are read; otherwise only the section is checked.
    pub reads_files: bool,
}

/// How the files of the section are read.
#[derive(Clone, Copy, Debug)]
pub struct FileOptions {
    /// Names that recorded series and labels may have: `metric_name_validation_scheme`.
    pub validation: NameValidation,
    /// Maximum number of rules in all files.
    pub rules_max: usize,
    /// Features of PromQL that expressions may use.
    pub features: QueryFeatures,
}

#[derive(Debug, thiserror::Error)]
pub enum RuleFilesError {
    #[error("rule_files: {0}")]
    Patterns(#[from] io::Error),
    /// Mistakes of all files: a line for each, with file, line, column and key.
    #[error("{0}")]
    Files(String),
    #[error("rule_files: {0}")]
    Checks(#[from] ChecksError),
}

/// Rules as a server evaluates them.
#[derive(Clone, Debug, Default)]
pub struct RulesConfig {
    pub section: RuleSection,
    /// The files of the section.
    pub files: Vec<RuleFile>,
    /// Files that ship with the program and that the section does not name. Their rules are
    /// evaluated and shown, but write no samples.
    pub defaults: Vec<RuleFile>,
    /// Default of a group's `interval`: `global.evaluation_interval`.
    pub interval: Duration,
    /// Default of a group's `query_offset`: `global.rule_query_offset`.
    pub query_offset: Duration,
    /// Maximum number of groups that are evaluated at the same time.
    pub evaluations_max: usize,
    /// Maximum duration of an outage after which the state of alerts is restored.
    pub outage_tolerance: Duration,
    /// Minimum time for which a restored alert is pending.
    pub grace_period: Duration,
    /// Interval at which firing alerts are sent to Alertmanagers again.
    pub resend_delay: Duration,
    /// Maximum number of alerts of a rule, and of all rules.
    pub alerts_max: usize,
    /// Labels for templates.
    pub external_labels: Vec<(String, String)>,
    /// URL for templates.
    pub external_url: String,
    /// Features of PromQL that expressions may use.
    pub features: QueryFeatures,
    pub rules_max: usize,
}

/// What backtests take from the configuration.
#[derive(Clone)]
pub struct BacktestSettings {
    pub defaults: Defaults,
    pub features: QueryFeatures,
    pub rules_max: usize,
    /// Maximum number of alerts of a rule.
    pub alerts_max: usize,
}

impl From<&RulesConfig> for Defaults {
    fn from(config: &RulesConfig) -> Defaults {
        Defaults {
            interval: config.interval,
            query_offset: config.query_offset,
            external_labels: Arc::new(config.external_labels.iter().cloned().collect()),
            external_url: config.external_url.as_str().into(),
        }
    }
}

impl From<&RulesConfig> for BacktestSettings {
    fn from(config: &RulesConfig) -> BacktestSettings {
        let &RulesConfig { features, rules_max, alerts_max, .. } = config;
        BacktestSettings { defaults: config.into(), features, rules_max, alerts_max }
    }
}

impl RuleSection {
    /// Reads the section. `directory` contains the configuration file.
    pub fn read(node: &yaml::Node, directory: &Path) -> Result<RuleSection, yaml::Error> {
        let texts: Vec<String> = yaml::read(KEY, node)?;
        let wrong = |what: String| yaml::Error::new(node.place, KEY, what);
        let directory = directory.to_owned();
        let mut section = RuleSection { directory, reads_files: true, ..RuleSection::default() };
        for text in &texts {
            if !text.starts_with(BUILTIN) {
                let pattern =
                    text.parse().map_err(|error: PatternError| wrong(error.to_string()))?;
                section.patterns.push(pattern);
                continue;
            }
            let names = builtin::files().map(|(name, _)| name);
            let Some(name) = names.iter().find(|name| **name == text) else {
                return Err(wrong(format!("there is no {text}; there are {}", names.join(", "))));
            };
            if !section.builtins.contains(name) {
                section.builtins.push(name);
            }
        }
        Ok(section)
    }

    /// Returns the files that exist now. A directory that cannot be listed counts as empty.
    pub fn paths(&self) -> Vec<PathBuf> {
        expand(&self.patterns, &self.directory).unwrap_or_default()
    }

    /// Returns the path of the first pattern without `*` that matches no file, which a server
    /// ignores.
    pub fn missing(&self) -> Option<PathBuf> {
        let named = self.patterns.iter().filter(|pattern| !pattern.to_string().contains('*'));
        let is_missing = |pattern: &&Pattern| {
            expand(std::slice::from_ref(*pattern), &self.directory)
                .is_ok_and(|paths| paths.is_empty())
        };
        named.into_iter().find(is_missing).map(|pattern| self.directory.join(pattern.to_string()))
    }

    /// Reads and checks all files. The error has the mistakes of all of them.
    pub fn load(&self, options: FileOptions) -> Result<Vec<RuleFile>, RuleFilesError> {
        let paths = match self.reads_files {
            true => expand(&self.patterns, &self.directory)?,
            false => Vec::new(),
        };
        if paths.is_empty() && self.builtins.is_empty() {
            return Ok(Vec::new());
        }
        let FileOptions { validation, rules_max, features } = options;
        let checks = EngineChecks::new(features)?;
        let options = Options { ignore_unknown_fields: false, validation, rules_max };
        let shipped = shipped(&options, &checks, |name| self.builtins.contains(&name));
        without_mistakes(shipped.chain(read_all(&paths, &options, &checks)))
    }

    /// Reads the files that ship with the program and that the section does not name. Each has one
    /// group: a node wakes up seldom then, and evaluates many rules with warm caches.
    pub fn load_defaults(&self) -> Result<Vec<RuleFile>, RuleFilesError> {
        let options = Options::default();
        let files = shipped(&options, &Tested, |name| !self.builtins.contains(&name));
        let mut files = without_mistakes(files)?;
        for file in &mut files {
            let mut groups = std::mem::take(&mut file.groups).into_iter();
            let Some(mut all) = groups.next() else { continue };
            all.rules.extend(groups.flat_map(|group| group.rules));
            all.name = file.path.to_string_lossy().trim_start_matches(BUILTIN).to_owned();
            file.groups.push(all);
        }
        Ok(files)
    }
}

/// Reads the files that ship with the program and whose names are taken.
fn shipped<'a>(
    options: &'a Options,
    checks: &'a impl Checks,
    is_taken: impl Fn(&'static str) -> bool + 'a,
) -> impl Iterator<Item = Result<RuleFile, RuleFileError>> + 'a {
    let files = builtin::files().into_iter().filter(move |(name, _)| is_taken(name));
    files.map(|(name, text)| parse(Path::new(name), text.as_bytes(), options, checks))
}

/// Returns all files, or the mistakes of all of them.
fn without_mistakes(
    all: impl Iterator<Item = Result<RuleFile, RuleFileError>>,
) -> Result<Vec<RuleFile>, RuleFilesError> {
    let (mut files, mut mistakes) = (Vec::new(), String::new());
    for read in all {
        match read {
            Ok(file) => files.push(file),
            Err(error) => {
                let end = if mistakes.is_empty() { "" } else { "\n" };
                // Writing to a string cannot fail.
                let _ = write!(mistakes, "{end}{error}");
            }
        }
    }
    if mistakes.is_empty() { Ok(files) } else { Err(RuleFilesError::Files(mistakes)) }
}

/// Accepts expressions and templates that the tests of the program have checked: an instance of the
/// engine for that would make each start slower.
struct Tested;

impl Checks for Tested {
    fn expression(&self, _text: &str) -> Result<(), String> {
        Ok(())
    }

    fn template(&self, _alert: &str, _text: &str) -> Result<(), String> {
        Ok(())
    }
}
