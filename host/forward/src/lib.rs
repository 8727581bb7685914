//! Store and forward: sends stored samples to other remote-write receivers. Samples for a receiver
//! that cannot be reached are kept. Owns the flags, the section `remote_write` and the metrics.
//!
//! ```text
//! wal/, wbl/ ─▶ tail ─▶┌─ the engine's destination ─┐   ┌─▶ sender ─▶ client ─▶ receiver
//!                      │ shard 0 ▒▒▒▒ shard 1 ▒▒ …   │──▶│      one request a shard at a time
//! blocks, head ─▶ backlog ─▶└───────────────────────┘   └─▶ …          │ answered
//!                      ▲ positions ◀── forward/<name>.position ◀────────┘
//! ```
//!
//! Each destination has its own thread and engine instance, independent of other destinations.
//! Reading order: [`config`], `tail` (the logs), `backlog` (rows that the logs no longer have),
//! `worker` (the thread) and `delivery` (a run until something fails, by its parts `reader`,
//! `dispatcher`, `housekeeper` and `position_writer`), `sender` (one request until it is answered),
//! `answer` (its meaning), `version` (1.0 or 2.0), `client` (the request and its answer),
//! `position` (files), `resharding` (number of shards), `needs` (kept segments), `destinations`
//! (all of them, from start to reload to end), [`figures`].
//!
//! Invariants: each row is delivered, counted as dropped, or not before the written position. A row
//! is sent twice only if its request was unanswered when the process ended. Rows move from the logs
//! to a gap (read from the store later) only without open requests. Rows of a series stay in order.

#![deny(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod answer;
mod backlog;
mod client;
pub mod config;
mod delivery;
mod destinations;
mod dispatcher;
pub mod figures;
pub mod flags;
mod housekeeper;
mod needs;
mod position;
mod position_writer;
mod progress;
mod reader;
mod resharding;
mod resources;
mod sender;
mod shared;
mod tail;
mod version;
mod worker;

pub use config::{DestinationConfig, ForwardConfig};
pub use destinations::{Destinations, Forwarding};

use std::io;
use tidepool_client::ClientError;
use tidepool_disk::DiskError;
use tidepool_runtime::CallError;
use tidepool_store::StoreError;

impl ForwardError {
    /// Replaces an out-of-memory error of an instance by one with the destination's name.
    fn of(self, name: &str) -> ForwardError {
        match self {
            ForwardError::Call(CallError::Memory(_))
            | ForwardError::Store(StoreError::NeedsTooMuchMemory) => {
                ForwardError::Memory { name: name.to_owned() }
            }
            other => other,
        }
    }
}

/// Reason why forwarding cannot start or continue.
#[derive(Debug, thiserror::Error)]
pub enum ForwardError {
    /// The engine cannot work with the destination's configuration.
    #[error("remote write to {name}: {source}")]
    Unusable {
        name: String,
        /// Error of the engine that refused, or of the instance that ended.
        source: CallError,
    },
    /// The destination's engine instance has not enough memory.
    #[error(
        "remote write to {name} needs more memory than --remote-write-memory-limit; raise it, or \
         let write_relabel_configs drop series"
    )]
    Memory {
        /// Name of the destination in the configuration.
        name: String,
    },
    /// The position files of a destination cannot be read or written.
    #[error("where delivery to {name} stands cannot be read or written: {source}")]
    Position {
        name: String,
        /// Error of a position file or its directory.
        source: io::Error,
    },
    /// Certificates or credentials cannot be used.
    #[error("remote write to {name}: {source}")]
    Client {
        name: String,
        /// Error in a certificate, a key or credentials.
        source: ClientError,
    },
    /// A thread could not be started.
    #[error("no thread could be started to forward samples: {0}")]
    Thread(io::Error),
    /// The log cannot be read.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The engine refused a call, or its instance ended.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}
