//! The HTTP client of all outgoing requests: scrapes, HTTP service discovery, remote write,
//! uploads, notifications of plugins. Configured as Prometheus configures its HTTP clients.
//!
//! ```text
//! Client::send ─▶ token ─▶ request: headers, credentials ─▶ pool (hyper-util) ─▶ connector ─▶ socket
//!       ▲                                                                       proxy, TLS
//!       └── redirect? ◀── Answer: status, headers, a bounded stream of bytes ◀────┘
//! ```
//!
//! Begin with [`HttpClientConfig`], then [`Client`] and [`Answer`]. `exchange` sends a request, and
//! `redirect` decides on the next URL; `connect` makes connections, by `proxy` and `tls`; `trust`
//! verifies certificates; `credentials` identify the sender, and `oauth2` obtains tokens by
//! exchanges of its own.
//!
//! Invariants: no error shows a secret; secrets are sent to no other host than the configured one;
//! everything that takes time ends by the request's deadline, the body of its answer included.
//!
//! Source: prometheus/common, `config/http_config.go`, and Go's `net/http` below that.

#![deny(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod answer;
mod ask;
mod certificate;
mod client;
pub mod config;
mod connect;
mod credentials;
mod error;
mod exchange;
mod files;
mod oauth2;
mod proxy;
mod redirect;
mod stream;
mod tls;
pub mod trust;
mod upload;
mod zone;

/// Parts for clients that make connections of their own.
pub mod parts {
    pub use crate::certificate::Certificate;
    pub use crate::credentials::{add_headers, authorization};
    pub use crate::proxy::{percent_decoded, url_credentials};
    pub use crate::redirect::{Redirect, is_trusted, method, redirect, without_secrets};
    pub use crate::tls::{LazyTls, system_config};
}

pub use answer::Answer;
pub use ask::Ask;
pub use client::Client;
pub use config::HttpClientConfig;
pub use connect::ConnectLimits;
pub use error::ClientError;
pub use upload::{AnswerBody, StreamedBody};
