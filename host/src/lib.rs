//! The program as a library: the configuration ([`config`]), the commands without a server
//! ([`cli`]), the start of a server ([`program`]), and [`reload`]. The crates below own the flags,
//! the configuration sections and the metrics of their features; this crate composes and wires
//! them.
//!
//! ```text
//! tidepool-server ─▶ scraping ─▶ plugins ─▶ query ─▶ store ─▶ ship, runtime, protocol ─▶ disk
//!        └─────────▶ forward ──────────────────────────┘           lifecycle, telemetry
//! ```
//!
//! Invariant: no crate below reads flags or configuration files, except the sections that it owns;
//! only this crate starts one feature because of another.

#![deny(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

pub mod cli;
pub mod config;
pub mod program;
pub mod reload;
