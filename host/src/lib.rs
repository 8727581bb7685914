//! The program as a library: the configuration ([`config`]), the commands without a server
//! ([`cli`]), the start of a server ([`program`]), that of [`notification`], and [`reload`]. Each
//! feature is a crate below this crate, with its own flags, configuration sections and metrics.
//! This crate connects the features.
//!
//! ```text
//! tidepool-server ─▶ scraping ─▶ plugins ─▶ query ─▶ store ─▶ ship, runtime, protocol ─▶ disk
//!        └─────────▶ forward ──────────────────────────┘           lifecycle, telemetry
//! ```
//!
//! Invariants: the crates below do not read flags or configuration files, except for the sections
//! that they own; only this crate starts a feature on behalf of another feature.

#![deny(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

pub mod cli;
pub mod config;
pub mod notification;
pub mod program;
pub mod reload;
