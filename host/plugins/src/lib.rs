//! WebAssembly plugins, each in its own sandbox next to the store. Every write passes through this
//! crate on its way to the store.
//!
//! Invariant: a plugin that fails, hangs or exceeds a limit harms only itself. The store does not
//! depend on plugins. Without the feature `plugins`, [`Plugins`] is a type without values, so that
//! callers need no `cfg`.

#![deny(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

pub mod flags;
pub mod intake;
#[cfg_attr(not(feature = "plugins"), path = "plugin/absent.rs")]
mod plugin;

pub use plugin::*;
