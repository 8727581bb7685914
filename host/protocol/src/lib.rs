//! Converts messages of other programs to rows of the store, and answers of the store to messages:
//! remote write, remote read, OpenTelemetry's metrics, text formats.
//!
//! ```text
//! body ─▶ text, otlp ─▶ rows ─▶ pieces of remote-write requests: the store's one way in
//! ```
//!
//! Invariant: no sockets, no store and no clock. Time and memory for a body are proportional to its
//! bytes, within the limits of [`prom::work`].
//!
//! Begin with [`prom`]; [`text`] and [`otlp`] write [`prom::rows`].

#![deny(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

pub mod otlp;
pub mod prom;
pub mod text;
