//! The HTTP server: listeners, access control, routes and endpoints.
//!
//! ```text
//! http::connection ─▶ http::routes ─▶ access ─▶ an endpoint ─▶ tidepool-protocol ─▶ tidepool-store
//! ```
//!
//! Invariants: network threads never run long work, and a body is read only after memory is
//! reserved. Settings of requests ([`http::Live`]) are always of one configuration, which [`flags`]
//! builds from the command line.

#![deny(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

pub mod access;
pub mod flags;
pub mod http;
