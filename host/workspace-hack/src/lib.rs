//! No code: gives the dependencies that several builds share the same features (see Cargo.toml).

#![deny(clippy::expect_used, clippy::panic, clippy::unwrap_used)]
