//! The program, above the crates that it is made of: what can be set ([`config`]), the commands
//! without a server ([`cli`]), the wiring of a server ([`program`]), and reading the configuration
//! again ([`reload`]).
//!
//! ```text
//! tidepool-server ─▶ scraping ─▶ plugins ─▶ query ─▶ store ─▶ ship, runtime, protocol ─▶ disk
//!        └─────────▶ forward ──────────────────────────┘           lifecycle, telemetry
//! ```
//!
//! Invariant: nothing below knows of flags and of files of configuration, but for the sections that
//! it owns; nothing but this crate starts one thing because of another.

#![deny(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

pub mod cli;
pub mod config;
pub mod program;
pub mod reload;
