//! The tidepool host: gives the engine component files and a network.
//!
//! Below it, each a crate: `tidepool-telemetry` writes logs and metrics, `tidepool-lifecycle` knows
//! of the process, `tidepool-disk` is the data directory, `tidepool-runtime` runs the component,
//! `tidepool-protocol` reads and writes messages, `tidepool-ship` copies finished blocks to object
//! storage, `tidepool-store` is the async handle to all of the data.
//!
//! Reading order: [`config`] says what can be set; [`access`] says who may ask; [`http`] serves;
//! [`scrape`] has targets scraped; [`forward`] sends what is stored on to other receivers; [`cli`]
//! works without a server; [`program`] wires; [`reload`] reads the configuration again.

pub mod access;
pub mod cli;
pub mod config;
pub use tidepool_disk as disk;
pub mod forward;
pub mod http;
pub mod intake;
#[cfg_attr(not(feature = "plugins"), path = "plugin/absent.rs")]
pub mod plugin;
pub mod program;
pub mod reload;
pub mod scrape;
