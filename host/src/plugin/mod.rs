//! Plugins: components of other people's beside the store, each in a sandbox of its own.
//!
//! Reading order: [`config`] says what can be set; `folder` which plugins there should be; `code` and
//! `runtime` make a component runnable; `instance` calls it within its limits; `pool` keeps instances
//! and `health` leaves alone what fails; `batch` turns requests into columns and back; `transforms`,
//! `observers`, `jobs` and `decoders` are the four worlds; `loading` makes a plugin of a file, `watch`
//! brings the `set` of them to what files and configuration say, and `manager` hands them requests.
//!
//! The store knows nothing of plugins. A build without the feature `plugins` has the same interface,
//! of which there is never a value.

pub mod config;
mod push;

pub use push::{Decoded, PushRequest, Undecoded};

#[cfg(feature = "plugins")]
mod batch;
#[cfg(feature = "plugins")]
#[allow(missing_docs)]
mod bindings;
#[cfg(feature = "plugins")]
mod code;
#[cfg(feature = "plugins")]
mod decoders;
#[cfg(feature = "plugins")]
mod fault;
#[cfg(feature = "plugins")]
mod figures;
#[cfg(feature = "plugins")]
mod folder;
#[cfg(feature = "plugins")]
mod health;
#[cfg(feature = "plugins")]
mod instance;
#[cfg(feature = "plugins")]
mod intake;
#[cfg(feature = "plugins")]
mod jobs;
#[cfg(feature = "plugins")]
mod limiter;
#[cfg(feature = "plugins")]
mod loading;
#[cfg(feature = "plugins")]
mod manager;
#[cfg(feature = "plugins")]
mod observers;
#[cfg(feature = "plugins")]
mod poison;
#[cfg(feature = "plugins")]
mod pool;
#[cfg(feature = "plugins")]
mod record;
#[cfg(feature = "plugins")]
mod report;
#[cfg(feature = "plugins")]
mod runtime;
#[cfg(feature = "plugins")]
mod set;
#[cfg(feature = "plugins")]
mod state;
#[cfg(feature = "plugins")]
mod store_import;
#[cfg(feature = "plugins")]
mod text;
#[cfg(feature = "plugins")]
mod transforms;
#[cfg(feature = "plugins")]
mod trial;
#[cfg(feature = "plugins")]
mod trial_store;
#[cfg(feature = "plugins")]
mod watch;
#[cfg(feature = "plugins")]
mod webhook_import;
#[cfg(feature = "plugins")]
mod words;

#[cfg(feature = "plugins")]
pub use code::{CodeError, UNCOMPILABLE, compile_file, read_plugin};
#[cfg(feature = "plugins")]
pub use manager::Plugins;
#[cfg(feature = "plugins")]
pub use record::{Kept, Post};
#[cfg(feature = "plugins")]
pub use runtime::engine;
#[cfg(feature = "plugins")]
pub use trial::{Trial, TrialError, TrialPlugin, newest_ms_of, rows};
#[cfg(feature = "plugins")]
pub use trial_store::{TrialStore, TrialStoreError};

#[cfg(not(feature = "plugins"))]
mod absent;
#[cfg(not(feature = "plugins"))]
pub use absent::Plugins;
