//! The server: the accept loop, one file per endpoint, and one table from errors to status codes.
//! Endpoints with the JSON envelope of Prometheus' API are in `api/`.

mod answered;
mod api;
mod api_v2;
mod aside;
mod auth;
mod body;
mod config;
mod connection;
mod context;
mod counters;
mod durations;
mod external;
mod federate;
mod gzip;
mod handler;
mod import;
mod listen;
mod metrics;
mod otlp;
mod pages;
mod push;
mod read;
mod reload;
mod replay;
mod reply;
mod request;
mod request_log;
mod route;
mod routes;
mod server;
mod stream;
mod target;
mod translation;
mod typed;
#[cfg_attr(not(feature = "ui"), path = "ui/absent.rs")]
mod ui;
mod write;

pub use config::{ClientLimits, HttpConfig};
pub use context::{Live, ServerConfig};
pub use external::{External, ExternalUrl, ExternalUrlError, external_url};
pub use listen::ListenAddress;
pub use server::Server;
