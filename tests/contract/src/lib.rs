//! Checks a host's storage from where the engine stands: a component that imports `wal` and
//! `blocks`, and says what of `wit/storage.wit` they do not keep. Any host can run it on its own
//! storage: `write` on an empty one, then, in another instance, `read-back`. As a command it takes
//! these two as its argument. Built for anything but WebAssembly, this crate runs that component
//! for hosts in Rust: [`Checks`].
//!
//! What cannot be seen from inside: whether bytes survive a power cut, and what happens when the
//! disk is full or fails. That is for tests of the host's own.

#[cfg(target_arch = "wasm32")]
mod component;
#[cfg(not(target_arch = "wasm32"))]
mod runner;

#[cfg(not(target_arch = "wasm32"))]
pub use runner::{Checks, Phase, target_dir};
