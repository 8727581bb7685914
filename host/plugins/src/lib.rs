//! WebAssembly plugins, each in a sandbox beside the store. Every write goes through here on its
//! way to the store.
//!
//! Invariant: a plugin that fails, hangs or takes too much costs itself; the store knows nothing of
//! plugins. Without the feature `plugins` there is a type [`Plugins`] without a value, so that who
//! calls it needs no `cfg`.

#![deny(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

pub mod flags;
pub mod intake;
#[cfg_attr(not(feature = "plugins"), path = "plugin/absent.rs")]
mod plugin;

pub use plugin::*;
