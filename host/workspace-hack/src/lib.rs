//! Nothing: only the features of this crate's dependencies count.

#![deny(clippy::expect_used, clippy::panic, clippy::unwrap_used)]
