//! Helpers that read and show sections of the configuration file. Each section is defined in the
//! crate that it configures.
//!
//! Begin with [`yaml`], which parses text into nodes with positions, and deserializes nodes into
//! types. [`duration`] parses and prints durations and sizes as Prometheus does; [`mod@file`] reads
//! a file named by a key, up to a limit; [`secret`] is a value that is never shown; [`relabel`] is
//! a relabel rule; [`redact`] shows URLs without secrets, and [`shown`] whole sections; [`flags`]
//! describes properties of flags.
//!
//! This crate does not know any section, the network, or the name of any flag.

#![deny(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

pub mod duration;
pub mod file;
pub mod flags;
pub mod redact;
pub mod relabel;
pub mod secret;
pub mod shown;
pub mod yaml;

pub use file::{FileError, read_file};
pub use relabel::RelabelConfig;
pub use secret::Secret;
