//! PromQL, the query language of Prometheus: parser, planner, evaluation and encoded answers.
//!
//! ```text
//! text ─▶ syntax ─▶ plan ─▶ eval ◀── source (series in label order)
//!                            │
//!                            ├── functions, histogram
//!                            ▼
//!                          answer: labels, times, values or histograms
//! ```
//!
//! The crate knows nothing of files, threads, clocks, hosts or WIT. It reads series from a
//! [`source::Source`] and counts its memory against a limit. Times are milliseconds since the
//! epoch.
//!
//! Source: prometheus/prometheus 3.15, `promql`. Upstream's test scripts decide what is correct.

#![warn(missing_docs)]
#![deny(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

pub mod annotations;
pub mod answer;
mod binop;
pub mod date;
mod error;
pub mod eval;
pub mod functions;
pub mod histogram;
pub mod kahan;
mod limits;
mod logarithm;
pub mod model;
pub mod plan;
pub mod quantile;
pub mod source;
pub mod syntax;
