//! Uploads finished blocks to object storage, in the layout that Thanos expects.
//!
//! ```text
//! data directory ── plan: what is due ──▶ upload: chunks, index, meta.json last ──▶ bucket
//!        ▲                                                │
//!        └──────── thanos.shipper.json ◀── state ─────────┘
//! ```
//!
//! Reading order: [`block_info`] (a block), [`plan`] (the blocks to ship), [`state`] (the list of
//! shipped blocks), [`meta`] (the bucket's `meta.json`), [`upload`] (one block), [`worker`] (the
//! thread). [`bucket`] is the object storage, `client` its HTTP client, [`pace`] the bandwidth
//! limit. Without the feature `cloud`, there is no client, and only directories are supported.
//!
//! Invariants: a block's `meta.json` is uploaded after all its other files; an object of a block is
//! never replaced by another block's; a block is listed as shipped only after its `meta.json` is
//! uploaded. This crate depends neither on the store nor on the HTTP server. The order of uploads,
//! the section in `meta.json` and the list of shipped blocks are those of Thanos' sidecar
//! (`pkg/shipper` and `pkg/block` in thanos-io/thanos).

#![deny(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

pub mod block_info;
pub mod bucket;
#[cfg(feature = "cloud")]
pub mod client;
pub mod error;
mod figures;
pub mod flags;
pub mod meta;
pub mod pace;
pub mod plan;
pub mod state;
pub mod upload;
pub mod worker;

pub use error::ShipError;
pub use figures::ShipFigures;
pub use worker::{CleanTombstones, ShipThread, Shipper};

/// Settings of shipping, as set by flags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShipConfig {
    /// URL of the bucket, optionally with a path in it.
    pub url: String,
    /// Maximum upload rate in bytes per second; 0 means no limit.
    pub bytes_per_second_max: u64,
    /// Whether merged blocks are shipped as well, if no part of them was shipped.
    pub with_compacted: bool,
}
