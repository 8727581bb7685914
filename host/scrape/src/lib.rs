//! Scraping as Prometheus does it, as a library: service discovery, relabelling, schedule,
//! requests, and batches of samples for a store, which is a trait.
//!
//! ```text
//! Manager ─▶ Pool (a job) ─▶ Cycle (a target) ─▶ Source: HTTP, a probe, or a part of this process
//!   jobs, target groups        schedule               │ pieces of a body, items
//!                                                     ▼
//!                              Cache ◀──────────▶ Appender ─▶ Batch ─▶ Store
//!                              text → reference     labels, limits, report
//! ```
//!
//! Begin with [`append::Appender`], which makes one batch of one scrape, and [`cache::Cache`],
//! which makes that cheap. [`cycle`] repeats it, [`pool`] has a cycle for each target of a
//! [`job::Job`], and [`manager`] has all jobs. [`check`] checks what a configuration names,
//! [`trial`] shows one scrape, [`target`] makes targets of discovered labels. The host implements
//! [`store::Store`] and [`clock::Clock`], and a [`source::Builtin`] for metrics of its own.
//!
//! Invariants:
//! - A scrape is stored as a whole or not at all; its report is always stored.
//! - Each iteration of a cache ends once, whatever the outcome of the scrape.
//! - In the steady state a sample allocates nothing and costs no label work.
//! - After a shutdown nothing is written, markers least of all.
//!
//! Differences from Prometheus 3.15: a clock that is set back begins a new schedule, instead of
//! giving all scrapes one time; a job without `body_size_limit` has the limit of all jobs; a body
//! is not read on after an error of the parser, so `scrape_body_size_bytes` counts up to the error;
//! series of a failed scrape are not created; a series that a limit of the store refuses is left
//! out, and the scrape is good.
//!
//! This crate knows no WIT, no WebAssembly and no flag.

#![deny(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

pub mod append;
pub mod cache;
pub mod check;
pub mod clock;
pub mod config;
pub mod content_type;
pub mod cycle;
pub mod discovery;
pub mod error;
pub mod failure_log;
pub mod histogram;
pub mod job;
pub mod labels;
pub mod manager;
pub mod memory;
pub mod metrics;
pub mod pool;
mod probe;
pub mod protocol;
pub mod report;
pub mod request;
pub mod series_text;
pub mod source;
pub mod store;
pub mod target;
pub mod trial;
