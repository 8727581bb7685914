//! Store and forward: sends stored samples to other receivers of remote write, and keeps them while
//! these cannot be reached. Owns the flags, the section `remote_write` and the metrics.
//!
//! ```text
//! wal/, wbl/ ─▶ tail ─▶┌─ the engine's destination ─┐   ┌─▶ sender ─▶ client ─▶ receiver
//!                      │ shard 0 ▒▒▒▒ shard 1 ▒▒ …   │──▶│      one request a shard at a time
//! blocks, head ─▶ backlog ─▶└───────────────────────┘   └─▶ …          │ answered
//!                      ▲ positions ◀── forward/<name>.position ◀────────┘
//! ```
//!
//! Each destination has a thread and an engine instance of its own, and knows nothing of others.
//! Reading order: [`config`], `tail` (the logs), `backlog` (rows that the logs no longer have),
//! `worker` (the thread) and `delivery` (a run until something fails, by its parts `reader`,
//! `dispatcher`, `housekeeper` and `position_writer`), `sender` (one request until it is answered),
//! `answer` (its meaning), `version` (1.0 or 2.0), `client` (the request and its answer),
//! `position` (files), `resharding` (number of shards), `needs` (kept segments), `destinations`
//! (all of them, from start to reload to end), [`figures`].
//!
//! Invariants: a row is delivered, counted as dropped, or at or behind the written position; a row
//! that comes twice was on its way when the process ended; rows move from the logs to a gap only
//! while no request is on its way; rows of a series keep their order.

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
    /// Names the destination's memory limit in an error of its instance.
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

/// Reason why forwarding cannot begin or go on.
#[derive(Debug, thiserror::Error)]
pub enum ForwardError {
    /// The engine cannot work with the destination's configuration.
    #[error("remote write to {name}: {source}")]
    Unusable {
        name: String,
        /// Refusal of the engine, or the instance's end.
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
    /// The files of a destination cannot be used.
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
