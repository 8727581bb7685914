//! Plugins: third-party components next to the store, each in its own sandbox.
//!
//! Reading order: [`config`] has the settings; `folder` lists the plugins that should be loaded;
//! `code` and `runtime` make a component runnable; `instance` makes calls within the limits; `pool`
//! keeps instances and `health` disables a plugin that fails; `batch` converts requests to columns
//! and back; `transforms`, `observers`, `jobs` and `decoders` are the four worlds; `loading` makes
//! a plugin from a file, `watch` updates the `set` of plugins when files or settings change, and
//! `manager` passes requests to plugins.
//!
//! The store does not depend on plugins. A build without the feature `plugins` compiles `absent.rs`
//! in place of this file: the same interface on a type without values.

mod batch;
#[allow(missing_docs)]
mod bindings;
mod code;
pub mod config;
mod decoders;
mod fault;
mod figures;
mod folder;
mod health;
mod instance;
mod intake;
mod jobs;
mod limiter;
mod loading;
mod manager;
mod observers;
mod output;
mod poison;
mod pool;
mod push;
mod record;
mod report;
mod runtime;
mod set;
mod state;
mod store_import;
mod text;
mod transforms;
mod trial;
mod trial_store;
mod watch;
mod webhook_import;

pub use code::{CodeError, UNCOMPILABLE, compile_file, read_plugin};
pub use manager::Plugins;
pub use push::{Decoded, PushRequest, Undecoded};
pub use record::{Post, RecordedOutput};
pub use runtime::engine;
pub use trial::{Trial, TrialError, TrialPlugin, newest_ms_of, rows};
pub use trial_store::{TrialStore, TrialStoreError};
