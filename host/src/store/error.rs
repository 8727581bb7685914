//! Why the store did not do what it was asked.

use crate::disk::DiskError;
use crate::wasm::{CallError, Error};

/// Everything that can keep the store from answering.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The log is still being replayed.
    #[error("the store is starting: its log is being replayed")]
    NotReady,
    /// Too many writes are waiting.
    #[error("too many writes are waiting (--write-queue-bytes); come back later")]
    Overloaded,
    /// The store is shutting down.
    #[error("the store is shutting down")]
    Stopped,
    /// The engine says no.
    #[error("{0}")]
    Refused(Error),
    /// The engine instance that worked on this crashed.
    #[error("the engine stopped while working on this: {0}")]
    Crashed(String),
    /// The log took the batch but could not make it durable.
    #[error("the write-ahead log could not be synced: {0}")]
    NotDurable(String),
    /// The data directory cannot be used.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// Two limits that cannot stand beside each other.
    #[error("{0}")]
    Limits(String),
    /// The WebAssembly runtime or a thread could not be started.
    #[error("{0}")]
    Runtime(String),
}

impl From<CallError> for StoreError {
    fn from(error: CallError) -> StoreError {
        match error {
            CallError::Refused(error) => StoreError::Refused(error),
            CallError::Trap(trap) => StoreError::Crashed(format!("{trap:#}")),
        }
    }
}
