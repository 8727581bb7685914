//! What can be wrong in a rule file.

use super::{FILE_BYTES_MAX, Position};
use std::fmt;
use std::path::PathBuf;

/// Maximum number of characters that a message quotes of a name.
const QUOTED_CHARS_MAX: usize = 100;

/// Maximum number of characters of the messages of [`Checks`](super::Checks).
const CHECK_CHARS_MAX: usize = 1000;

/// All mistakes of a rule file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct RuleFileError {
    pub path: PathBuf,
    /// The first [`MISTAKES_MAX`](super::MISTAKES_MAX), in the order of the file.
    pub mistakes: Vec<Mistake>,
    /// Number of further mistakes.
    pub more: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Mistake {
    pub place: Position,
    /// Path of keys, as in `groups[0].rules[2].expr`; empty for the whole file.
    pub key: String,
    pub cause: Cause,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Cause {
    /// The file cannot be read.
    #[error("{0}")]
    Io(String),
    #[error("this is not text in UTF-8")]
    Encoding,
    #[error("the control character {0:?} is not allowed; write it as an escape in quotes")]
    Control(char),
    /// Not YAML, or YAML that is not supported.
    #[error("{0}")]
    Yaml(String),
    #[error("expected {0}")]
    Type(&'static str),
    #[error("there is no such key; {}", meant(*nearest, known))]
    UnknownKey {
        /// The key that was probably meant.
        nearest: Option<&'static str>,
        known: &'static [&'static str],
    },
    #[error("a group needs a name")]
    GroupName,
    #[error("the group name {name} is repeated in the same file, from line {line}")]
    RepeatedGroup { name: String, line: u32 },
    #[error("only one of record and alert may be set (alert is set in line {})", alert.line)]
    TwoNames { alert: Position },
    #[error("one of record and alert must be set")]
    NoName,
    #[error("expr must be set")]
    NoExpression,
    #[error("the expression is not valid: {0}")]
    Expression(String),
    #[error("a recording rule has no {key} (line {line}); only an alerting rule has")]
    OnlyAlerting { key: &'static str, line: u32 },
    #[error("invalid name of a recording rule: {0}")]
    RecordName(String),
    #[error("braces in the name of a recording rule: {0}; do they belong into expr?")]
    Braces(String),
    #[error("invalid label name: {0}")]
    LabelName(String),
    #[error("invalid annotation name: {0}")]
    AnnotationName(String),
    #[error("the template is not valid: {0}")]
    Template(String),
    #[error("{0} is not a duration such as 30s, 5m or 1h30m")]
    Duration(String),
    #[error("a duration of more than 292 years")]
    LongDuration,
    #[error("{0} is no time in RFC 3339 or in seconds since the epoch")]
    Time(String),
    #[error("group name repeated in evaluation order: {0}")]
    OrderedTwice(String),
    /// A series or its values, in a unit test.
    #[error("{0}")]
    Series(String),
    #[error("more than {0} rules; remove some, or raise --rules-max")]
    Rules(usize),
    /// Aliases multiply texts, and each rule has the labels of its group.
    #[error("texts of more than {0} bytes; aliases and labels of groups count for each rule")]
    Texts(usize),
    #[error("reading it takes more than {0} bytes of memory")]
    Memory(usize),
    #[error("it has more than {FILE_BYTES_MAX} bytes")]
    File,
}

fn meant(nearest: Option<&str>, known: &[&str]) -> String {
    match nearest {
        Some(nearest) => format!("did you mean {nearest}?"),
        None => format!("there are {}", known.join(", ")),
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Position { line, column } = self.place;
        let colon = if self.key.is_empty() { "" } else { ": " };
        write!(f, "{line}:{column}: {}{colon}{}", self.key, self.cause)
    }
}

/// Writes a line for each mistake, which begins with the path.
impl fmt::Display for RuleFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        for (number, mistake) in self.mistakes.iter().enumerate() {
            let end = if number == 0 { "" } else { "\n" };
            match &mistake.cause {
                Cause::Io(what) => write!(f, "{end}{path}: {what}")?,
                _ => write!(f, "{end}{path}:{mistake}")?,
            }
        }
        match self.more {
            0 => Ok(()),
            more => write!(f, "\n{path}: and {more} more mistakes"),
        }
    }
}

/// Quotes a name for a message.
pub(crate) fn quoted(name: &str) -> String {
    match name.char_indices().nth(QUOTED_CHARS_MAX) {
        Some((end, _)) => format!("{:?}…", &name[..end]),
        None => format!("{name:?}"),
    }
}

/// Cuts a message of [`Checks`](super::Checks).
pub(crate) fn cut(mut message: String) -> String {
    if let Some((end, _)) = message.char_indices().nth(CHECK_CHARS_MAX) {
        message.truncate(end);
        message.push('…');
    }
    message
}
