//! A streaming parser of Prometheus' exposition formats: text 0.0.4 and 1.0.0, OpenMetrics 0.0.1
//! and 1.0.0, and protobuf. Scrapes, imports and pushed text are read with it.
//!
//! ```no_run
//! # fn store(_: tidepool_exposition::Sample<'_>) {}
//! # fn body() -> Vec<Vec<u8>> { Vec::new() }
//! use tidepool_exposition::{Format, HistogramOptions, Item, ParseError, Parser};
//!
//! # fn main() -> Result<(), ParseError> {
//! let mut parser = Parser::new(Format::Openmetrics, HistogramOptions::default());
//! for piece in body() {
//!     parser.feed(&piece);
//!     while let Some(item) = parser.next()? {
//!         if let Item::Sample(sample) = item {
//!             store(sample);
//!         }
//!     }
//! }
//! parser.end();
//! while let Some(item) = parser.next()? {
//!     # let _ = item;
//!     // …
//! }
//! # Ok(())
//! # }
//! ```
//!
//! - [`Parser`] is [`TextParser`] or [`ProtobufParser`]: `feed` takes a piece of any size, `next`
//!   returns items until it needs the next piece, `end` marks the body as complete. A parser holds
//!   one piece, and one line ([`LINE_BYTES_MAX`]) or metric family ([`FAMILY_BYTES_MAX`]).
//!   [`TextReader`] parses a [`std::io::BufRead`] the same way.
//! - [`Item`] is one line or one part of a message. A [`Sample`] borrows from the parser, and its
//!   labels are not parsed yet: [`Series::text`] is a key for caches, [`Series::labels`] parses the
//!   text. The protobuf parser writes such texts, too.
//! - [`ParseError`] names line and column, or family and metric. After [`ParseError::is_line`] the
//!   next line can be read, as import does; a scrape ends at the first error.
//! - The values of `le` and `quantile` are normalised ([`Series::labels`]).
//! - [`ClassicToNative`] converts classic histograms in the items of a text to native ones;
//!   [`HistogramOptions`] does so for the protobuf format. [`NativeHistogram::validate`] checks a
//!   histogram before it is stored.
//! - [`NameValidation`] and [`NameEscaping`] are the schemes for names of metrics and labels.
//! - [`mod@lint`] checks metrics against Prometheus' conventions.
//!
//! The crate uses no network, no clock and no storage.

#![deny(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod error;
mod histogram;
mod item;
mod limits;
pub mod lint;
mod metric;
mod names;
mod nhcb;
mod number;
mod parser;
pub mod protobuf;
mod quote;
mod scanner;
mod series;
mod text;

pub use error::{FamilyError, LabelError, ParseError, ReadError, TextPosition};
pub use histogram::{
    CUSTOM_BUCKETS_SCHEMA, ClassicError, Counts, EXPONENTIAL_SCHEMAS, HistogramError,
    NativeHistogram, Span,
};
pub use item::{Exemplar, HistogramSample, Item, Sample};
pub use limits::{CLASSIC_BUCKETS_MAX, FAMILY_BYTES_MAX, LINE_BYTES_MAX, METRIC_BYTES_MAX};
pub use metric::{LabelPairs, METRIC_NAME, MetricType};
pub use names::{NameEscaping, NameValidation};
pub use nhcb::{ClassicHistogram, ClassicToNative, Converted, OwnedExemplar, Step};
pub use number::float_text;
pub use parser::{Format, Parser};
pub use protobuf::{HistogramOptions, ProtobufParser};
pub use quote::quoted;
pub use scanner::TextFormat;
pub use series::{Series, SeriesForm, series_text};
pub use text::{TextParser, TextReader};
