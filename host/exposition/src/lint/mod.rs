//! What is wrong with metrics by Prometheus' conventions, though they can be scraped: the rules of
//! client_golang's `promlint`, and the series of each metric, as `promtool check metrics` shows
//! both.
//!
//! ```text
//! text ─▶ reader ─▶ Families ─┬▶ rules ─▶ Problem: metric and what is wrong
//!                             └▶ Cardinality: series of each metric
//! ```
//!
//! Begin with [`Families::read`]. The text is the classic one, read as strictly as promtool reads
//! it (`expfmt.TextParser` of prometheus/common), which is not how a scrape does: a family has one
//! `TYPE`, in front of its samples, each line has its end, and the buckets of a histogram are one
//! series. Of a series a hash of its labels is kept, so that the memory is that of the families'
//! names and 8 to 16 bytes a series.
//!
//! Where this differs from upstream: a sample without a name is an error wherever it stands, where
//! upstream takes it for a part of the sample before it; labels before the name (`{a="b","name"}`)
//! mean what they mean behind it; a line has at most [`LINE_BYTES_MAX`](crate::LINE_BYTES_MAX)
//! bytes and a text [`TEXT_BYTES_MAX`].
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

/// Why a text cannot be judged.
#[derive(Debug, thiserror::Error)]
pub enum LintError {
    /// The input failed.
    #[error("{0}")]
    Input(#[from] io::Error),
    /// A line is wrong. The words are upstream's.
    #[error("text format parsing error in line {line}: {what}")]
    Line {
        /// Which line, from 1.
        line: u64,
        /// What is wrong.
        what: String,
    },
    /// The text is too long.
    #[error("the text has more than {TEXT_BYTES_MAX} bytes")]
    TooLong,
}

#[cfg(test)]
mod tests;
