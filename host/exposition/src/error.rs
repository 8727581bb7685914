//! What is wrong with a body, and where.

use crate::histogram::HistogramError;
use crate::limits::{FAMILY_BYTES_MAX, LINE_BYTES_MAX, METRIC_BYTES_MAX, METRIC_FIELDS_MAX};
use std::io;

/// A place in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Which line, from 1.
    pub line: u64,
    /// Which byte of the line, from 1.
    pub column: usize,
}

/// Why a body cannot be read.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ParseError {
    /// A line is wrong.
    #[error("line {}: {what} at column {}: {}", place.line, place.column, shown(text))]
    Line {
        /// Where.
        place: Place,
        /// What is wrong.
        what: &'static str,
        /// The line, or its beginning if that is long: errors are kept and shown.
        text: String,
    },
    /// A line is too long.
    #[error("line {line}: longer than {LINE_BYTES_MAX} bytes")]
    TooLong {
        /// Which line, from 1.
        line: u64,
    },
    /// An OpenMetrics text that is cut off.
    #[error("it ends after line {lines} without `# EOF`: it is not complete, or not OpenMetrics")]
    NoEnd {
        /// How many lines there are.
        lines: u64,
    },
    /// Something follows the end of an OpenMetrics text.
    #[error("line {line}: nothing may follow `# EOF`")]
    AfterEnd {
        /// Which line, from 1.
        line: u64,
    },
    /// A message of the protobuf format is larger than what is read.
    #[error("metric family {family}: {bytes} bytes; at most {FAMILY_BYTES_MAX} are read")]
    FamilyTooLarge {
        /// Which message, from 1.
        family: u64,
        /// Its size.
        bytes: u64,
    },
    /// The protobuf format is cut off within a message.
    #[error("it ends within metric family {family}: {missing} bytes are missing")]
    FamilyCutOff {
        /// Which message, from 1.
        family: u64,
        /// How much is missing at least.
        missing: u64,
    },
    /// A message of the protobuf format is wrong.
    #[error("metric family {family} {}, metric {metric}: {what}", shown(name))]
    Family {
        /// Which message, from 1.
        family: u64,
        /// Its name, as far as it is known; the beginning of a long one.
        name: String,
        /// Which metric of it, from 1; 0 for the family itself.
        metric: usize,
        /// What is wrong.
        what: FamilyError,
    },
}

/// What is wrong with a message of the protobuf format.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum FamilyError {
    /// It is no protobuf, or not of this message.
    #[error("{0}")]
    Decode(#[from] prost::DecodeError),
    /// Its length is no number.
    #[error("its length is not a varint of 32 bits")]
    Length,
    /// A field is cut off or has another type than the message says.
    #[error("field {field} is cut off or of another type")]
    Field {
        /// The field's number.
        field: u64,
    },
    /// A name or a text is not UTF-8.
    #[error("field {field} is not UTF-8")]
    NotUtf8 {
        /// The field's number.
        field: u64,
    },
    /// It has no name.
    #[error("it has no name")]
    NoName,
    /// A label has no name.
    #[error("a label has no name")]
    NoLabelName,
    /// There is no such type.
    #[error("there is no type {0}")]
    Type(i64),
    /// A metric is larger than what is decoded.
    #[error("it has {bytes} bytes; at most {METRIC_BYTES_MAX} are read")]
    MetricTooLarge {
        /// Its size.
        bytes: usize,
    },
    /// A metric has more labels, buckets and quantiles than what is decoded.
    #[error("it has more than {METRIC_FIELDS_MAX} fields")]
    TooManyFields,
    /// Its native histogram is wrong.
    #[error("{0}")]
    Histogram(#[from] HistogramError),
}

/// Why a stream cannot be read on.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The input failed.
    #[error("could not be read: {0}")]
    Input(#[from] io::Error),
    /// What came is wrong.
    #[error(transparent)]
    Parse(#[from] ParseError),
}

impl ParseError {
    /// Whether the next line can be read all the same: this one is wrong, and nothing else.
    pub fn is_line(&self) -> bool {
        matches!(self, ParseError::Line { .. })
    }
}

/// What is wrong with the labels of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}{}", at(place))]
pub struct LabelError {
    /// What is wrong.
    pub what: &'static str,
    /// Where; not known in the protobuf format.
    pub place: Option<Place>,
}

fn at(place: &Option<Place>) -> String {
    match place {
        Some(Place { line, column }) => format!(" at line {line}, column {column}"),
        None => String::new(),
    }
}

/// Characters that a message shows of a text.
const SHOWN_CHARS: usize = 200;

/// Characters that an error keeps of a text: one more shows that there are more.
pub(crate) const KEPT_CHARS: usize = SHOWN_CHARS + 1;

/// What an error keeps of a text.
pub(crate) fn beginning(text: &str) -> String {
    text.chars().take(KEPT_CHARS).collect()
}

/// As much of a line as a message has room for.
fn shown(line: &str) -> String {
    match line.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{:?} …", line.get(..end).unwrap_or_default()),
        None => format!("{line:?}"),
    }
}
