//! Evaluates recording and alerting rules over the store.
//!
//! ```text
//! rule_files ─▶ config: files, checked ─▶ Rules ─▶ task of each group: waits for its slots
//!                                                     │ a thread for reads
//!                      tidepool_rules::group ◀────────┴──▶ engine: queries, samples
//! ```
//!
//! Invariant: an evaluation runs on a thread that no request waits for, with a deadline and a
//! memory limit for each query. What rules mean is decided in `tidepool_rules`.
//!
//! Begin with [`Rules`]. `restore` reads the alerts of the last run from the store, `checks` has
//! the engine check expressions, `figures` has the metrics. `unit_test` has the
//! stores of unit tests, and [`backtest`] evaluates rules over the past.

#![deny(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod append;
pub mod backtest;
mod checks;
mod config;
mod engine;
mod figures;
pub mod flags;
mod histogram;
mod memory_store;
mod restore;
mod rules;
mod task;
mod unit_test;

pub use checks::{ChecksError, EngineChecks};
pub use config::{BacktestSettings, FileOptions, RuleFilesError, RuleSection, RulesConfig};
pub use rules::Rules;
pub use unit_test::{InstanceLaboratory, InstanceStore};

use rules::Shared;
