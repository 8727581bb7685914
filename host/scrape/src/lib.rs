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
//! Begin with [`append::Appender`], which turns one scrape into one batch, and [`cache::Cache`],
//! which makes that cheap. A [`cycle`] repeats the scrape of a target, a [`pool`] has a cycle for
//! each target of a [`job::Job`], and the [`manager`] has all pools. [`check`] checks the files of
//! a configuration, [`trial`] makes one scrape for display, [`target`] makes targets of discovered
//! labels. The host implements [`store::Store`], [`clock::Clock`] and [`source::Builtin`].
//!
//! Invariants:
//! - A scrape is stored as a whole or not at all; the report of each scrape is always stored.
//! - Each iteration of a cache (one scrape) ends once, whatever the outcome of the scrape.
//! - A sample of an unchanged series allocates nothing, and its labels are not processed.
//! - After a shutdown nothing is written, not even staleness markers.
//!
//! Differences from Prometheus 3.15: after a clock is set back, a new schedule starts, instead of
//! many scrapes with one time; `body_size_limit` has a default for all jobs; reading a body ends at
//! a parser error, so `scrape_body_size_bytes` has the bytes up to the error; series of a failed
//! scrape are not created; if a limit of the store refuses a series, only that series is missing,
//! and the scrape is good.
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
