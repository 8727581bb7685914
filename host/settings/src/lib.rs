//! Helpers that read and show sections of the configuration file. Each section is defined in the
//! crate that it configures.
//!
//! Begin with [`yaml`]: text to nodes that know their place, and nodes to types. [`duration`] has
//! durations and sizes as Prometheus writes them; [`mod@file`] reads a file that a key names,
//! within a bound; [`secret`] is a value that is never shown; [`relabel`] is a relabel rule;
//! [`redact`] shows URLs without what may be secret in them, and [`shown`] whole sections;
//! [`flags`] says what is true of flags.
//!
//! It knows no section, no network and no flag by name.

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
