//! Why the store did not do what it was asked.

use crate::disk::DiskError;
use crate::wasm::{CallError, Error, MemoryBound, in_words};

/// Everything that can keep the store from answering.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The log is still being replayed.
    #[error("the store is starting: its log is being replayed")]
    NotReady,
    /// Too many request bodies are in memory.
    #[error("too many requests are under way (--max-inflight-bytes); come back later")]
    Overloaded,
    /// The disk has less free space than it must keep.
    #[error(
        "the disk is nearly full: {free_bytes} bytes are free and --disk-reserve keeps \
         {reserve_bytes}; writes are taken again by themselves when there is space, reads go on; \
         free space, or keep less by --retention-time or --retention-size"
    )]
    DiskFull {
        /// Bytes that are free.
        free_bytes: u64,
        /// Bytes that must be.
        reserve_bytes: u64,
    },
    /// The store is shutting down.
    #[error("the store is shutting down")]
    Stopped,
    /// The engine says no.
    #[error("{}", in_words(.0))]
    Refused(Error),
    /// The engine instance that worked on this crashed.
    #[error("the engine stopped while working on this: {0}")]
    Crashed(String),
    /// Memory is short; it will not be for long.
    #[error("memory is short: {0}; come back later")]
    ShortOfMemory(String),
    /// A read passed its deadline.
    #[error("this took longer than a read may (--read-timeout) and was ended")]
    Deadline,
    /// A read needed more memory than one may have.
    #[error("this needed more memory than a read may (--query-memory-limit) and was ended")]
    NeedsTooMuchMemory,
    /// The log took the batch but could not make it durable.
    #[error("the write-ahead log could not be synced: {0}")]
    NotDurable(String),
    /// The data directory cannot be used.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// Two limits that cannot stand beside each other.
    #[error("{0}")]
    Limits(String),
    /// A transform failed without which nothing may be stored.
    #[error(
        "the plugin {plugin} failed, and nothing is stored without it (on-fault: reject): {why}"
    )]
    Plugin {
        /// Its name.
        plugin: String,
        /// What happened.
        why: String,
    },
    /// A transform is being loaded, and nothing is stored before that.
    #[error(
        "the plugin {plugin} is being loaded, and nothing is stored before that; come back later"
    )]
    PluginLoading {
        /// Its name.
        plugin: String,
    },
    /// The WebAssembly runtime or a thread could not be started.
    #[error("{0}")]
    Runtime(String),
}

impl StoreError {
    /// What a sender is told of a head that ran out of memory: it starts anew, and may then have
    /// room for the same request.
    pub(super) fn of_write(self) -> StoreError {
        match self {
            StoreError::NeedsTooMuchMemory => {
                StoreError::ShortOfMemory("the head has no more (--head-memory-limit)".into())
            }
            other => other,
        }
    }
}

impl From<CallError> for StoreError {
    fn from(error: CallError) -> StoreError {
        match error {
            CallError::Refused(error) => StoreError::Refused(error),
            CallError::Trap(trap) => StoreError::Crashed(format!("{trap:#}")),
            CallError::Deadline => StoreError::Deadline,
            CallError::Memory(MemoryBound::Own) => StoreError::NeedsTooMuchMemory,
            CallError::Memory(MemoryBound::Shared) => {
                StoreError::ShortOfMemory("all that there is for reads is taken".into())
            }
        }
    }
}
