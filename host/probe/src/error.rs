//! Why a probe failed.

use std::time::Duration;
use tidepool_client::ClientError;

/// Why a probe failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProbeError {
    /// It took too long.
    #[error("the probe was not complete within {} s", .0.as_secs_f64())]
    Timeout(Duration),
    /// The target is none that can be probed.
    #[error("{target:?} is no target: {what}")]
    Target {
        /// As it is written.
        target: String,
        /// What is wrong.
        what: String,
    },
    /// The host has no address that may be used.
    #[error("host {host:?}: {what}")]
    Lookup {
        /// The host.
        host: String,
        /// What is wrong.
        what: String,
    },
    /// No connection.
    #[error("connection to {address}: {source}")]
    Connect {
        /// Where.
        address: std::net::SocketAddr,
        /// Why not.
        source: std::io::Error,
    },
    /// No TLS.
    #[error("TLS handshake: {0}")]
    Tls(std::io::Error),
    /// The client cannot be used as it is configured, or a redirect leads nowhere.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The exchange broke.
    #[error("HTTP: {0}")]
    Http(#[from] hyper::Error),
    /// The request cannot be made.
    #[error("request: {0}")]
    Request(#[from] hyper::http::Error),
    /// The body is longer than the limit.
    #[error("the body has more than {0} bytes (body_size_limit)")]
    BodySize(u64),
    /// The answer is not as the module wants it.
    #[error("{0}")]
    Unwanted(String),
}
