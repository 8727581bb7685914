//! Converts messages of other programs to rows of the store, and answers of the store to messages:
//! remote write and read, OpenTelemetry's metrics, text.
//!
//! ```text
//! body ─▶ text, otlp ─▶ rows ─▶ pieces of remote-write requests: the store's one way in
//! ```
//!
//! Invariant: no sockets, no store and no clock. What a body makes takes time and memory in
//! proportion to its bytes, within [`prom::work`]'s limits.
//!
//! Begin with [`prom`]; [`prom::rows`] is what [`text`] and [`otlp`] write.

#![deny(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

pub mod otlp;
pub mod prom;
pub mod text;
