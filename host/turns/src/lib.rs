//! Divides long work into short steps, so that it does not block a thread that many tasks share. A
//! node with two cores has one thread for all connections, targets and timers: work that blocks it
//! for a second delays all of them.
//!
//! - [`Pace`] lets other tasks run every few milliseconds; [`ReadTurns`] does so for reads.
//! - [`Gunzip`] uncompresses in short steps, even if a few bytes expand to many.
//! - [`Idle`] keeps values that are costly to create, for reuse by the next task.
//!
//! This crate knows neither requests nor targets: the HTTP server and scrapes both use it.

#![deny(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod gzip;
mod idle;
mod pace;
mod reads;

pub use gzip::{Gunzip, GunzipError, PIECE_BYTES};
pub use idle::Idle;
pub use pace::{Pace, STEP_BYTES};
pub use reads::ReadTurns;
