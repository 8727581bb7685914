//! The HTTP client of all outgoing requests: scrapes, HTTP service discovery, remote write,
//! uploads, requests of plugins to webhooks. Configured as Prometheus configures its HTTP clients.
//!
//! ```text
//! Client::send ─▶ token ─▶ request: headers, credentials ─▶ pool (hyper-util) ─▶ connector ─▶ socket
//!       ▲                                                                       proxy, TLS
//!       └── redirect? ◀── Answer: status, headers, a bounded stream of bytes ◀────┘
//! ```
//!
//! Begin with [`HttpClientConfig`], then [`Client`] and [`Answer`]. `exchange` sends a request, and
//! `redirect` determines the next URL; `connect` establishes connections, with `proxy` and `tls`;
//! `trust` verifies certificates; `credentials` makes the headers that identify the sender, and
//! `oauth2` obtains tokens.
//!
//! Invariants: no error shows a secret; secrets are sent to the configured host only; every wait,
//! including that for the body of a response, ends at the request's deadline.
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
mod retry_after;
mod stream;
mod tls;
pub mod trust;
mod upload;
mod zone;

/// Parts for clients that establish their own connections.
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
pub use retry_after::{RETRY_AFTER_MAX, retry_after};
pub use upload::{AnswerBody, StreamedBody};
