//! The HTTP server: listeners, access control, routes and endpoints.
//!
//! ```text
//! http::connection ─▶ http::routes ─▶ access ─▶ an endpoint ─▶ tidepool-protocol ─▶ tidepool-store
//! ```
//!
//! Invariant: network threads never run long work, and no body is read before there is memory for
//! it. Settings of requests ([`http::Live`]) are replaced as a whole by one configuration, which
//! [`flags`] builds from the command line.

#![deny(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

pub mod access;
pub mod flags;
pub mod http;
