//! Divides long work into short steps, so that no thread that many share is held for long. A node
//! with two cores has one thread for all connections, targets and timers: what holds it for a
//! second holds all of them.
//!
//! - [`Pace`] gives others their turn every few milliseconds, [`ReadTurns`] where bytes are read.
//! - [`Gunzip`] uncompresses step by step, each of them short, whatever the bytes say.
//! - [`Idle`] keeps what is costly to make for the next who needs it.
//!
//! It knows neither bodies nor targets: requests that come and scrapes both use it.

#![deny(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod gzip;
mod idle;
mod pace;
mod reads;

pub use gzip::{Gunzip, GunzipError, PIECE_BYTES};
pub use idle::Idle;
pub use pace::{Pace, STEP_BYTES};
pub use reads::ReadTurns;
