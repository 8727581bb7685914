//! Parses samples as text: OpenMetrics, and Prometheus' classic exposition format.
//!
//! ```text
//! # TYPE http_requests counter
//! http_requests_total{path="/"} 1027 1700000000.123 # {trace_id="ab"} 0.5 1700000000
//! {"name.in.quotes","label.too"="x"} 1 1700000000
//! # EOF
//! ```
//!
//! The grammar is that of upstream's parsers (`model/textparse` in prometheus/prometheus):
//! OpenMetrics is strict about spaces and about its end, the classic format is not; timestamps are
//! seconds in OpenMetrics and milliseconds in the classic format.
//!
//! Differences, each with a case in `tests/cases`:
//!
//! | input | upstream | here | why |
//! | --- | --- | --- | --- |
//! | blanks before a name, classic | part of the name | not part of it | the format allows blanks |
//! | a NUL where a line begins, classic | ends the body | is refused | nothing is lost unseen |
//! | a NUL in quotes, OpenMetrics | refused in names and exemplars | taken | a byte like others |
//! | escapes in a family's name | stay | are replaced | as in names of series |
//! | escapes in labels of exemplars | stay | are replaced | as in labels of series |
//! | a name that is not UTF-8 | is refused where it is stored | is refused here | items are text |
//! | line break in a family's name | taken | refused | metadata is one line |
//! | line break in a name, OpenMetrics | taken | refused | the specification has none |
//! | `le` with hexadecimal digits or `_` | read as a number | stays | no exposer writes it |
//! | times in OpenMetrics | through a float | exact | no millisecond is lost |
//! | times beyond 64 bits | the smallest | the nearest end | refused by age as well |
//! | garbage after a value, OpenMetrics | refused with the next line | with its own | place of the error |
//! | last line without its end, OpenMetrics | refused | then `# EOF` is missing | same for a scrape |
//!
//! [`crate::Series::labels`], not the parser, finds errors within braces, so that a reader that
//! caches the texts of series checks each text once.

mod line;
mod parser;
mod reader;

#[cfg(test)]
mod tests;

pub use parser::TextParser;
pub use reader::TextReader;
