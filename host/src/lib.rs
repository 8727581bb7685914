//! The tidepool host: gives the engine component files and a network.
//!
//! Reading order: [`config`] says what can be set; [`store`] is the async handle to the data
//! directory (`tidepool-disk`) and the component over it (`tidepool-runtime`); `tidepool-protocol` reads
//! and writes messages; [`access`] says who may send them; [`http`] serves them; [`ship`] copies finished blocks to object storage,
//! [`forward`] sends what is stored on to other receivers; [`cli`] works without a server;
//! [`reload`] reads the configuration again. `tidepool-telemetry` writes logs and metrics,
//! `tidepool-lifecycle` knows of the process, `tidepool-settings` reads configuration for those who
//! own it.
//! Dependencies point one way: http and cli → prom, ship → disk.

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
pub mod ship;
pub mod store;
