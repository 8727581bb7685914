//! A crate without code: its build script looks for the Rust target that the engine's component is
//! built for, and adds it.
//!
//! The lowest crates of the host depend on this one. Cargo builds first what most crates wait for,
//! so a missing target is found in the first seconds of a build, not after the minutes that the
//! WebAssembly compiler takes.

#![deny(clippy::expect_used, clippy::panic, clippy::unwrap_used)]
