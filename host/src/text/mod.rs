//! Samples as text: OpenMetrics, and Prometheus' classic exposition format.
//!
//! ```text
//! # TYPE http_requests counter
//! http_requests_total{path="/"} 1027 1700000000.123 # {trace_id="ab"} 0.5 1700000000
//! {"name.in.quotes","label.too"="x"} 1 1700000000
//! # EOF
//! ```
//!
//! [`TextReader`] gives one event a line, whatever the length of the text. Neither disk nor engine
//! is known here. The grammar is that of upstream's parsers (`model/textparse` in
//! prometheus/prometheus): OpenMetrics is strict about spaces and its end, the classic format is
//! not; times are seconds in the one and milliseconds in the other.

mod import;
mod line;
mod number;
mod reader;
mod series;

#[cfg(test)]
mod tests;

pub use import::{ImportOptions, Imported, import};
pub use line::parse_line;
pub use reader::{LINE_BYTES_MAX, ReadError, TextReader};
pub use series::LabelPairs;

/// Which of the two formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum TextFormat {
    /// OpenMetrics; times in seconds
    Openmetrics,
    /// Prometheus' classic text format; times in milliseconds
    Prometheus,
}

/// What a line says.
#[derive(Clone, Debug, PartialEq)]
pub enum Event<'a> {
    /// A sample.
    Sample(SampleLine<'a>),
    /// The type of a metric family.
    Type {
        /// The family.
        family: String,
        /// As the format spells it, such as `counter`.
        kind: &'a str,
    },
    /// What a metric family means.
    Help {
        /// The family.
        family: String,
        /// The text, without escapes.
        help: String,
    },
    /// The unit of a metric family.
    Unit {
        /// The family.
        family: String,
        /// The unit.
        unit: &'a str,
    },
    /// Nothing: an empty line or a remark, in the classic format.
    Comment,
    /// The end of an OpenMetrics text.
    End,
}

/// A sample.
#[derive(Clone, Debug, PartialEq)]
pub struct SampleLine<'a> {
    /// The series as it is written. The same text is the same series, but one series can be
    /// written in many ways; [`SampleLine::labels`] tells.
    pub series: &'a str,
    /// The value.
    pub value: f64,
    /// When, if the line says so.
    pub timestamp_ms: Option<i64>,
    /// An example of what was counted.
    pub exemplar: Option<Exemplar>,
    format: TextFormat,
}

/// An exemplar.
#[derive(Clone, Debug, PartialEq)]
pub struct Exemplar {
    /// Its labels.
    pub labels: LabelPairs,
    /// Its value.
    pub value: f64,
    /// When, if it says so.
    pub timestamp_ms: Option<i64>,
}

/// What is wrong with a line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} at byte {offset}")]
pub struct LineError {
    /// What is wrong.
    pub what: &'static str,
    /// Where in the line, from 0.
    pub offset: usize,
}

impl SampleLine<'_> {
    /// The labels, the metric's name (`__name__`) among them, by ascending name; none is empty.
    pub fn labels(&self) -> Result<LabelPairs, LineError> {
        series::parse_series(self.series, self.format)
    }
}
