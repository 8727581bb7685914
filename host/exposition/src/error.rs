//! Errors in bodies, with their positions.

use crate::histogram::HistogramError;
use crate::limits::{FAMILY_BYTES_MAX, LINE_BYTES_MAX, METRIC_BYTES_MAX, METRIC_FIELDS_MAX};
use std::io;

/// Position of a byte in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextPosition {
    /// Number of the line, from 1.
    pub line: u64,
    /// Position of the byte in its line, from 1.
    pub column: usize,
}

/// Error in a body. After some errors, parsing can continue ([`ParseError::is_line`]).
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ParseError {
    #[error("line {}: {what} at column {}: {}", place.line, place.column, shown(text))]
    Line {
        place: TextPosition,
        what: &'static str,
        /// The line; truncated if it is long, because errors are stored and shown.
        text: String,
    },
    #[error("line {line}: longer than {LINE_BYTES_MAX} bytes")]
    TooLong {
        /// Number of the line, from 1.
        line: u64,
    },
    #[error("it ends after line {lines} without `# EOF`: it is not complete, or not OpenMetrics")]
    NoEnd {
        /// Number of lines that were read.
        lines: u64,
    },
    #[error("line {line}: nothing may follow `# EOF`")]
    AfterEnd {
        /// Number of the line, from 1.
        line: u64,
    },
    #[error("metric family {family}: {bytes} bytes; at most {FAMILY_BYTES_MAX} are read")]
    FamilyTooLarge {
        /// Number of the message, from 1.
        family: u64,
        bytes: u64,
    },
    #[error("it ends within metric family {family}: {missing} bytes are missing")]
    FamilyCutOff {
        /// Number of the message, from 1.
        family: u64,
        /// Minimum number of missing bytes.
        missing: u64,
    },
    /// A family message, or one of its metrics, is not valid.
    #[error("metric family {family} {}, metric {metric}: {what}", shown(name))]
    Family {
        /// Number of the message, from 1.
        family: u64,
        /// Name of the family, truncated if long; empty if it is not known yet.
        name: String,
        /// Number of the metric in the family, from 1; 0 for the family itself.
        metric: usize,
        what: FamilyError,
    },
}

/// Faults of a message of the protobuf format.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum FamilyError {
    /// The bytes are not a message of the expected type.
    #[error("{0}")]
    Decode(#[from] prost::DecodeError),
    #[error("its length is not a varint of 32 bits")]
    Length,
    #[error("field {field} is cut off or of another type")]
    Field {
        /// Field number in the schema; 0 if the tag itself cannot be read.
        field: u64,
    },
    /// A name, help text or unit is not UTF-8.
    #[error("field {field} is not UTF-8")]
    NotUtf8 {
        /// Field number in the schema's `MetricFamily`.
        field: u64,
    },
    #[error("it has no name")]
    NoName,
    #[error("a label has no name")]
    NoLabelName,
    #[error("there is no type {0}")]
    Type(i64),
    #[error("it has {bytes} bytes; at most {METRIC_BYTES_MAX} are read")]
    MetricTooLarge {
        /// Size of the encoded metric message.
        bytes: usize,
    },
    /// A metric has too many labels, buckets or quantiles.
    #[error("it has more than {METRIC_FIELDS_MAX} fields")]
    TooManyFields,
    #[error("{0}")]
    Histogram(#[from] HistogramError),
}

/// Error of a reader over an input stream.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("could not be read: {0}")]
    Input(#[from] io::Error),
    #[error(transparent)]
    Parse(#[from] ParseError),
}

impl ParseError {
    /// Returns whether parsing can continue with the next line.
    pub fn is_line(&self) -> bool {
        matches!(self, ParseError::Line { .. })
    }
}

/// Fault in the labels of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}{}", at(place))]
pub struct LabelError {
    pub what: &'static str,
    /// Position in the text; `None` in the protobuf format.
    pub place: Option<TextPosition>,
}

fn at(place: &Option<TextPosition>) -> String {
    match place {
        Some(TextPosition { line, column }) => format!(" at line {line}, column {column}"),
        None => String::new(),
    }
}

/// Number of characters of a text that a message shows.
const SHOWN_CHARS: usize = 200;

/// Number of characters that an error keeps. One more than is shown, to reveal a truncation.
pub(crate) const KEPT_CHARS: usize = SHOWN_CHARS + 1;

/// Returns the part of a text that an error keeps.
pub(crate) fn beginning(text: &str) -> String {
    text.chars().take(KEPT_CHARS).collect()
}

/// Quotes a text; truncates it after [`SHOWN_CHARS`] characters.
fn shown(line: &str) -> String {
    match line.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{:?} …", line.get(..end).unwrap_or_default()),
        None => format!("{line:?}"),
    }
}
