//! Plugins: components of other people's beside the store, each in a sandbox of its own.
//!
//! Reading order: [`config`] says what can be set; `folder` which plugins there should be; `code`
//! and `runtime` make a component runnable; `instance` calls it within its limits; `pool` keeps
//! instances and `health` leaves alone what fails; `batch` turns requests into columns and back;
//! `transforms`, `observers`, `jobs` and `decoders` are the four worlds; `loading` makes a plugin
//! of a file, `watch` brings the `set` of them to what files and configuration say, and `manager`
//! hands them requests.
//!
//! The store knows nothing of plugins. A build without the feature `plugins` has the file
//! `absent.rs` in place of this one: the same interface, of which there is never a value.

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
mod words;

pub use code::{CodeError, UNCOMPILABLE, compile_file, read_plugin};
pub use manager::Plugins;
pub use push::{Decoded, PushRequest, Undecoded};
pub use record::{Kept, Post};
pub use runtime::engine;
pub use trial::{Trial, TrialError, TrialPlugin, newest_ms_of, rows};
pub use trial_store::{TrialStore, TrialStoreError};
