//! Rules that engine, query language and host share: matcher operators, the marker of stale series,
//! [`buckets`] of native histograms, [`number`]s as text, and one [`sort`] for all types.
//!
//! Invariant: no type here holds samples. Labels, samples and histograms have a type in each crate
//! that works on them: packed in the engine's head, shared in PromQL, borrowed from a request in
//! the wire formats. A common type would cost copies of every sample.

#![warn(missing_docs)]
#![deny(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

pub mod buckets;
mod match_op;
pub mod number;
pub mod sort;
mod stale;

pub use match_op::MatchOp;
pub use stale::{STALE_NAN, STALE_NAN_BITS, is_stale_nan};
