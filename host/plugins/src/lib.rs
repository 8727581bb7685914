//! WebAssembly plugins, each in a sandbox next to the store. Every write passes this crate on its
//! way to the store.
//!
//! Invariant: a plugin that fails, hangs or exceeds a limit harms only itself; the store knows
//! nothing of plugins. Without the feature `plugins`, [`Plugins`] is a type without values, so that
//! callers need no `cfg`.

#![deny(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

pub mod flags;
pub mod intake;
#[cfg_attr(not(feature = "plugins"), path = "plugin/absent.rs")]
mod plugin;

pub use plugin::*;
