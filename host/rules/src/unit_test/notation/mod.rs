//! Series in the notation of Prometheus' test scripts: labels, then values of successive steps.
//!
//! ```text
//! up{job="node"} 1 0x3 _ stale {{schema:1 count:2 buckets:[1 1]}}+{{count:1 buckets:[1]}}x5
//! └── metric ──┘ └────────────────────────── values ───────────────────────────────────┘
//! ```
//!
//! Begin with [`series`]. Work is linear in the text: repeated values stay runs ([`Sequence`]),
//! and their number is bounded.
//!
//! Difference from upstream: a label that is there twice, and a line break, are refused.
//!
//! Source: `promql/parser/generated_parser.y` and `lex.go`, Prometheus 3.16.

mod cursor;
mod histogram;
mod metric;
mod number;
mod sequence;
mod values;

pub use sequence::{Cursor as SequenceCursor, Item, Run, Sequence};

use super::histogram::Histogram;
use crate::file::Labels;
use cursor::Cursor;

/// Maximum number of values of a series, of which a histogram counts with its buckets.
pub const VALUES_MAX: u64 = 10_000_000;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("1:{column}: parse error: {what}")]
pub struct NotationError {
    /// In characters, from 1.
    pub column: usize,
    pub what: String,
}

/// Parses a series with its values. Empty labels are kept where upstream keeps them.
pub fn series(text: &str) -> Result<(Labels, Sequence), NotationError> {
    let mut cursor = Cursor::new(text.trim());
    let labels = metric::read(&mut cursor)?;
    let values = values::read(&mut cursor)?;
    Ok((labels, values))
}

/// Parses the labels of a series.
pub fn metric(text: &str) -> Result<Labels, NotationError> {
    let mut cursor = Cursor::new(text);
    let labels = metric::read(&mut cursor)?;
    cursor.skip_blanks_and_comments();
    match cursor.peek() {
        None => Ok(labels),
        Some(letter) => Err(cursor.error(format!("unexpected {letter:?} after the labels"))),
    }
}

/// Parses exactly one histogram.
pub fn one_histogram(text: &str) -> Result<Histogram, HistogramError> {
    let (_, values) = series(&format!("{{}} {text}"))?;
    let mut items = values.items();
    match (values.count(), items.next()) {
        (1, Some(Item::Histogram(histogram))) => Ok(histogram),
        (1, Some(Item::Float(value))) => Err(HistogramError::Other(format!("{value:.6}"))),
        (1, _) => Err(HistogramError::Other("_".to_owned())),
        (count, _) => Err(HistogramError::Count(count)),
    }
}

/// Why a text is not exactly one histogram. Columns count three characters more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HistogramError {
    #[error(transparent)]
    Notation(#[from] NotationError),
    #[error("expected 1 value, got {0}")]
    Count(u64),
    /// The value that is none.
    #[error("expected histogram, got {0}")]
    Other(String),
}

#[cfg(test)]
mod tests;
