//! Rule files: groups of recording and alerting rules, read and checked as Prometheus does.
//!
//! ```text
//! rule_files ─▶ Pattern ─▶ paths ─▶ read_all ─▶ RuleFile: groups, rules ─▶ lint
//!                                      └──────▶ RuleFileError: every mistake of a file
//! ```
//!
//! Begin with [`parse()`]. `error` has what can be wrong; `reader` finds it and bounds the work;
//! `group` and `rule` read their mappings; `duration` and `nearest` help them; `pattern` finds
//! files, `lint` finds rules that occur twice.
//!
//! Expressions and templates are checked by what the caller hands in ([`Checks`]).
//!
//! Differences from upstream: mistakes of values are reported together with those of types. All
//! have a place. Tags of an application, `!!binary` and UTF-16 are refused, and so is a repeated
//! key inside of an unknown one.
//!
//! Source: `model/rulefmt/rulefmt.go` and `cmd/promtool/main.go`, Prometheus 3.16, which reads
//! with go-yaml, version 3.

pub(crate) mod document;
mod duration;
pub(crate) mod error;
mod group;
mod lint;
mod nearest;
mod parse;
mod pattern;
pub(crate) mod reader;
mod rule;

pub use error::{Cause, Mistake, RuleFileError};
pub use lint::{Duplicate, LINT_EXIT_CODE, Lint, LintOptions, exit_code, lint};
pub use parse::{parse, read, read_all};
pub use pattern::{FILES_MAX, Pattern, PatternError, PatternFault, expand};
pub use tidepool_exposition::NameValidation;
pub use tidepool_settings::yaml::Position;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// Maximum size of a rule file.
pub const FILE_BYTES_MAX: u64 = 16 << 20;

/// Maximum number of mistakes that are reported of a file; further ones are counted.
pub const MISTAKES_MAX: usize = 1000;

/// Default of [`Options::rules_max`].
pub const RULES_MAX: usize = 100_000;

/// Names and values of labels, or of annotations.
pub type Labels = BTreeMap<String, String>;

#[derive(Clone, Debug, PartialEq)]
pub struct RuleFile {
    pub path: PathBuf,
    pub groups: Vec<Group>,
    /// Where something begins after the first document, which is not read.
    pub ignored: Option<Position>,
}

/// Rules that are evaluated one after the other.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    pub position: Position,
    /// Unique in its file, not empty.
    pub name: String,
    /// `None`: the global one. Never zero.
    pub interval: Option<Duration>,
    /// `None`: the global one.
    pub query_offset: Option<Duration>,
    /// Maximum number of series or alerts that a rule may have; 0 or less: any.
    pub limit: i64,
    /// Added to the labels of each rule, which override them.
    pub labels: Labels,
    pub rules: Vec<Rule>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// Beginning of the rule; for an alias, that of its anchor.
    pub position: Position,
    pub kind: Kind,
    pub expr: String,
    /// Its own, without those of the group. Templates in an alerting rule.
    pub labels: Labels,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    Recording {
        record: String,
    },
    Alerting {
        alert: String,
        for_: Duration,
        keep_firing_for: Duration,
        /// Templates.
        annotations: Labels,
    },
}

impl Rule {
    /// Name of the series or of the alert.
    pub fn name(&self) -> &str {
        match &self.kind {
            Kind::Recording { record } => record,
            Kind::Alerting { alert, .. } => alert,
        }
    }
}

impl RuleFile {
    pub fn rule_count(&self) -> usize {
        self.groups.iter().map(|group| group.rules.len()).sum()
    }
}

/// Checks that other rooms do. Each takes time and memory that are linear in its text.
pub trait Checks {
    /// Checks an expression; an error has its place in the text.
    fn expression(&self, text: &str) -> Result<(), String>;

    /// Checks the value of a label or annotation of an alert, which is a template. The name of the
    /// alert is for messages, and may be cut.
    fn template(&self, alert: &str, text: &str) -> Result<(), String>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Whether keys that are not known are accepted.
    pub ignore_unknown_fields: bool,
    pub validation: NameValidation,
    /// Maximum number of rules: in a file for [`parse()`] and [`read`], in all for [`read_all`].
    pub rules_max: usize,
}

impl Default for Options {
    fn default() -> Options {
        let validation = NameValidation::default();
        Options { ignore_unknown_fields: false, validation, rules_max: RULES_MAX }
    }
}

#[cfg(test)]
mod tests;
