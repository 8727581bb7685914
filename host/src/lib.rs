//! The tidepool host: gives the engine component files and a network.
//!
//! Below it, each a crate: `tidepool-telemetry` writes logs and metrics, `tidepool-lifecycle` knows
//! of the process, `tidepool-disk` is the data directory, `tidepool-runtime` runs the component,
//! `tidepool-protocol` reads and writes messages, `tidepool-ship` copies finished blocks to object
//! storage, `tidepool-store` is the async handle to all of the data, `tidepool-plugins` is code
//! beside it, `tidepool-forward` sends what is stored on.
//!
//! Reading order: [`config`] says what can be set; [`access`] says who may ask; [`http`] serves;
//! [`scrape`] has targets scraped; [`cli`]
//! works without a server; [`program`] wires; [`reload`] reads the configuration again.

pub mod access;
pub mod cli;
pub mod config;
pub use tidepool_disk as disk;
pub mod http;
pub mod program;
pub mod reload;
pub mod scrape;
