//! Reasons for a failed probe.

use std::time::Duration;
use tidepool_client::ClientError;

#[derive(Debug, thiserror::Error)]
pub(crate) enum ProbeError {
    /// The probe exceeded its timeout.
    #[error("the probe was not complete within {} s", .0.as_secs_f64())]
    Timeout(Duration),
    /// The target is not a valid address or URL.
    #[error("{target:?} is no target: {what}")]
    Target {
        /// The target as configured or discovered.
        target: String,
        what: String,
    },
    /// The host has no address of a permitted IP version, or the lookup failed.
    #[error("host {host:?}: {what}")]
    Lookup {
        host: String,
        /// Description of the failure; may be the resolver's error.
        what: String,
    },
    /// The TCP connection could not be made.
    #[error("connection to {address}: {source}")]
    Connect {
        /// Address that was tried, after resolution.
        address: std::net::SocketAddr,
        source: std::io::Error,
    },
    #[error("TLS handshake: {0}")]
    Tls(std::io::Error),
    /// The client settings cannot be used, or a redirect is invalid.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The exchange failed after the connection was made.
    #[error("HTTP: {0}")]
    Http(#[from] hyper::Error),
    /// The request could not be built from the module and the target.
    #[error("request: {0}")]
    Request(#[from] hyper::http::Error),
    /// The body exceeds the limit, which is the number of bytes.
    #[error("the body has more than {0} bytes (body_size_limit)")]
    BodySize(u64),
    /// The response violates a rule of the module, which the text describes.
    #[error("{0}")]
    Unwanted(String),
}
