//! The program as a library: what can be set ([`config`]), the commands without a server ([`cli`]),
//! the start of a server ([`program`]), and [`reload`]. A crate below owns the flags, the sections
//! of the configuration file and the metrics of its subject; this one collects and wires them.
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
