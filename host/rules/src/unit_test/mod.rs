//! Unit tests of rules, as `promtool test rules` runs them.
//!
//! ```text
//! test file ─▶ file: tests, each with series, alerts and expressions ─┐
//! rule files ─▶ crate::file: groups ──────────────────────────────────┤
//!                                                                     ▼
//!  Laboratory ─▶ Store ◀── samples, rules at each interval ────────── run
//!                  └─────▶ alerts, answers ─▶ compare ─▶ Suite ─▶ texts, JUnit
//! ```
//!
//! Begin with [`run_files`]. `notation` reads series and their values, `histogram` has native
//! histograms and their text, `alerts` and `samples` compare, `diff` shows differences in colours.
//!
//! Invariant: time is that of the tests. A store is what the caller hands in ([`Laboratory`]).
//!
//! Differences from upstream: mistakes of a file are reported together, with their places; groups
//! that no order names keep the order of the files; numbers of values, of evaluations and of alerts
//! are bounded; a sample that cannot be stored ends its test; a text of values that ends with a
//! line break does not drop the series behind it; start times of samples (`@st`) are refused.
//!
//! Source: `cmd/promtool/unittest.go` and `docs/configuration/unit_testing_rules.md`, Prometheus
//! 3.16.

mod alerts;
mod command;
mod diff;
mod file;
pub mod histogram;
mod junit;
pub mod notation;
mod options;
mod read;
mod run;
mod samples;
mod shown;
mod store;
mod suite;

pub use command::{Output, run_files};
pub use file::{
    AlertTest, ExpectedAlert, ExpectedSample, ExpressionTest, InputSeries, Test, TestFile,
};
pub use junit::junit;
pub use options::Options;
pub use read::{parse, read};
pub use run::EVALUATIONS_MAX;
pub use store::{Conditions, Laboratory, Store};
pub use suite::{Case, Suite};
pub use tidepool_relabel::Search;
