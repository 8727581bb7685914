//! The process and the operating system: signals, start, reload and stop, clock, priority of
//! threads, processors, limits of files and memory, and systemd's notifications.
//!
//! Invariant: this crate does not know metrics. Functions that depend on the store accept a trait
//! ([`supervisor::Service`]) or a function instead.
//!
//! Begin with [`shutdown`] and [`reload`].

#![deny(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

pub mod boxed;
pub mod clock;
pub mod open_files;
pub mod priority;
pub mod processors;
pub mod reload;
pub mod resident;
pub mod shutdown;
pub mod supervisor;
