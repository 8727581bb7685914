//! What a process of the host is to the system: when it starts, reloads and stops, its clock, its
//! threads' priority, its processors, files and memory, and what systemd hears of it.
//!
//! Invariant: nothing here knows of metrics. What needs the store to be known takes a trait
//! ([`supervisor::Service`]) or a function.
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
