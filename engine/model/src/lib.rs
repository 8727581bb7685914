//! What engine, query language and host agree on about samples and series: how matchers compare,
//! the marker of stale series, [`buckets`] of native histograms, and [`number`]s as text.
//!
//! Invariant: nothing here holds samples. Labels, samples and histograms have a type in each crate
//! that works on them: packed in the engine's head, shared in PromQL, borrowed from a request in
//! the formats. One type for all would cost copies on the way of every sample.

#![deny(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

pub mod buckets;
mod match_op;
pub mod number;
mod stale;

pub use match_op::MatchOp;
pub use stale::{STALE_NAN, STALE_NAN_BITS, is_stale_nan};
