//! Uploads finished blocks to object storage, in the form that Thanos needs.
//!
//! ```text
//! data directory ── plan: what is due ──▶ upload: chunks, index, meta.json last ──▶ bucket
//!        ▲                                                │
//!        └──────── thanos.shipper.json ◀── state ─────────┘
//! ```
//!
//! Reading order: [`block_info`] (a block), [`plan`] (which are due), [`state`] (which have been
//! shipped), [`meta`] (what the bucket's `meta.json` says beyond the node's), [`upload`] (one
//! block), [`worker`] (the thread that does it). [`bucket`] is the object storage, `client` its
//! HTTP client, [`pace`] the bound on bytes a second. Without the feature `cloud` there is no
//! client, and directories only.
//!
//! Invariants: a block's `meta.json` is in the bucket only when all its other files are; what the
//! bucket holds under a block's name is never replaced by something else; a block is written down
//! as shipped only after its `meta.json` is there. Neither the store nor HTTP is known here. The
//! order of uploads, the section in `meta.json` and the file of what was shipped are those of
//! Thanos' sidecar (`pkg/shipper` and `pkg/block` in thanos-io/thanos).

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

/// What the log says about shipping when a node starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShipConfig {
    /// The bucket, and where in it.
    pub url: String,
    /// Bytes a second that may be uploaded; 0 is no limit.
    pub bytes_per_second_max: u64,
    /// Whether merged blocks are shipped of which no part has been.
    pub with_compacted: bool,
}
