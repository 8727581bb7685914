//! Checks a host's storage as the engine sees it: a component that imports `wal` and `blocks`, and
//! reports which promises of `wit/storage.wit` they break. Any host can run it on its own storage:
//! `write` on an empty one, then, in another instance, `read-back`. As a command it takes one of
//! the two as its argument. Built for other targets, this crate runs that component for hosts in
//! Rust: [`Checks`].
//!
//! The checks cannot see whether bytes survive a power cut, and what happens when the disk is full
//! or fails. Hosts need tests of their own for these.

#[cfg(target_arch = "wasm32")]
mod component;
#[cfg(not(target_arch = "wasm32"))]
mod runner;

#[cfg(not(target_arch = "wasm32"))]
pub use runner::{Checks, Phase, target_dir};
