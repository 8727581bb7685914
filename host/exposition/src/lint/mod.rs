//! Lints metrics that can be scraped but break Prometheus' conventions: the rules of
//! client_golang's `promlint`, and the number of series of each metric, as `promtool check metrics`
//! shows both.
//!
//! ```text
//! text ─▶ reader ─▶ Families ─┬▶ rules ─▶ Problem: metric and what is wrong
//!                             └▶ Cardinality: series of each metric
//! ```
//!
//! Begin with [`Families::read`]. The text is in the classic format and is parsed as promtool does
//! (`expfmt.TextParser` of prometheus/common), which is stricter than a scrape: a family has one
//! `TYPE` line, before its samples, each line ends with a line break, and all buckets of a
//! histogram count as one series. Only the hash of a series' labels is kept: memory holds the names
//! of families, and 8 to 16 bytes per series.
//!
//! Differences from upstream: a sample without a name is always an error, where upstream may treat
//! it as a part of the previous sample; labels before the name (`{a="b","name"}`) mean the same as
//! labels after it; a line has at most [`LINE_BYTES_MAX`](crate::LINE_BYTES_MAX) bytes and a text
//! [`TEXT_BYTES_MAX`].
//!
//! Sources: `prometheus/testutil/promlint` in prometheus/client_golang 1.24, `expfmt/text_parse.go`
//! in prometheus/common 0.71, `cmd/promtool/main.go` in prometheus/prometheus 3.15.

mod cardinality;
mod families;
mod reader;
mod rules;
mod scanner;
mod units;

pub use cardinality::Cardinality;
pub use families::Families;
pub use reader::TEXT_BYTES_MAX;
pub use rules::Problem;

use std::io;

/// Error that prevents the linting of a text.
#[derive(Debug, thiserror::Error)]
pub enum LintError {
    #[error("{0}")]
    Input(#[from] io::Error),
    /// A line is not valid; `what` is in upstream's words.
    #[error("text format parsing error in line {line}: {what}")]
    Line {
        /// Number of the line, from 1.
        line: u64,
        what: String,
    },
    #[error("the text has more than {TEXT_BYTES_MAX} bytes")]
    TooLong,
}

#[cfg(test)]
mod tests;
