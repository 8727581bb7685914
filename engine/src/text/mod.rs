//! Samples as lines of text, as upstream's command line prints them.
//!
//! ```text
//! dump         {__name__="up", job="node"} 1 1700000000000
//! OpenMetrics  up{job="node"} 1 1700000000.000
//! ```
//!
//! Numbers (`tidepool_model::number`) and quoted strings (`quote.rs`) are formatted as in Go.
//! Native histograms are in dumps only: `histogram.rs`. Source: `promtool tsdb dump` and
//! `dump-openmetrics`.

mod histogram;
mod lines;
mod quote;

pub use lines::{LineWriter, TextFormat};
