//! Why the store did not do what it was asked.

use crate::disk::DiskError;
use crate::prom::selection::SelectionError;
use crate::wasm::{CallError, Error, MemoryBound, MemoryPool, in_words};

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
    /// A request selects by too much.
    #[error(transparent)]
    TooMuchSelected(#[from] SelectionError),
    /// The engine instance that worked on this crashed.
    #[error("the engine stopped while working on this: {0}")]
    Crashed(String),
    /// Memory is short; it will not be for long.
    #[error("memory is short: {0}; come back later")]
    ShortOfMemory(String),
    /// A read passed its deadline.
    #[error("this took longer than a read may (--read-timeout) and was ended")]
    Deadline,
    /// A call of the head passed its deadline.
    #[error("the head took longer than one call may (--head-timeout) and is started again")]
    HeadDeadline,
    /// A read needed more memory than one may have.
    #[error("this needed more memory than a read may (--query-memory-limit) and was ended")]
    NeedsTooMuchMemory,
    /// A compaction needed more memory than one may have.
    #[error(
        "this needed more memory than the compactor may have (--compactor-memory-limit, \
         {limit_bytes} bytes) and was ended; raise it, or --memory-limit"
    )]
    CompactorMemory {
        /// Bytes that it may have.
        limit_bytes: u64,
    },
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
    /// What is said of work of the compactor, whose instance may have so much memory.
    pub(super) fn of_compaction(self, limit_bytes: u64) -> StoreError {
        match self {
            StoreError::NeedsTooMuchMemory => StoreError::CompactorMemory { limit_bytes },
            other => other,
        }
    }

    /// The same of a call of the head, whose limits are not those of a read. It starts anew, and
    /// may then have room for the same call.
    pub(super) fn of_head(self) -> StoreError {
        match self {
            StoreError::NeedsTooMuchMemory => {
                StoreError::ShortOfMemory("the head has no more (--head-memory-limit)".into())
            }
            StoreError::Deadline => StoreError::HeadDeadline,
            other => other,
        }
    }

    /// What is told to whoever needs memory that other reads have.
    pub(super) fn short_of_reads_memory(pool: &MemoryPool) -> StoreError {
        let bytes_max = pool.bytes_max();
        StoreError::ShortOfMemory(format!("all reads together may take {bytes_max} bytes"))
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Only a read is told of the limits of reads.
    #[test]
    fn the_flag_is_named_that_would_help() {
        let memory = || StoreError::from(CallError::Memory(MemoryBound::Own));
        let deadline = || StoreError::from(CallError::Deadline);
        for (error, flag) in [
            (memory(), "--query-memory-limit"),
            (memory().of_head(), "--head-memory-limit"),
            (memory().of_compaction(1), "--compactor-memory-limit"),
            (deadline(), "--read-timeout"),
            (deadline().of_head(), "--head-timeout"),
        ] {
            let text = error.to_string();
            assert!(text.contains(flag), "{text}");
            assert!(!text.contains("--query") || flag.contains("query"), "{text}");
            assert!(!text.contains("--read") || flag.contains("read"), "{text}");
        }
    }
}
