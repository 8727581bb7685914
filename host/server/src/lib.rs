//! The HTTP server: listeners, access control, routes and endpoints.
//!
//! ```text
//! http::connection ─▶ http::routes ─▶ access ─▶ an endpoint ─▶ tidepool-protocol ─▶ tidepool-store
//! ```
//!
//! Invariant: nothing heavy runs on the threads of the network, and no body is read before there is
//! room for it. What holds for requests ([`http::Live`]) comes from one configuration as a whole;
//! [`flags`] makes one of the command line.

#![deny(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

pub mod access;
pub mod flags;
pub mod http;
