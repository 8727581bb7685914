//! Errors of the store.

use super::shortage::Shortage;
use tidepool_disk::DiskError;
use tidepool_protocol::prom::selection::SelectionError;
use tidepool_runtime::{
    CallError, Error, HeadLost, MemoryBound, MemoryPool, ParseError, QueryError, in_words,
};

/// Everything that can keep the store from answering.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The log is still being replayed.
    #[error("the store is starting: its log is being replayed")]
    NotReady,
    /// The log could not be replayed for want of memory, and nothing may change before it is.
    #[error("{0}. Until then blocks are served alone, and nothing is stored or deleted")]
    NotReplayed(Shortage),
    /// Too many request bodies are in memory.
    #[error("too many requests are in progress (--max-inflight-bytes); retry later")]
    Overloaded,
    /// The disk has less free space than it must keep.
    #[error(
        "the disk is nearly full: {free_bytes} bytes are free, less than --disk-reserve \
         ({reserve_bytes} bytes). Reads continue, and writes are accepted again once enough space \
         is free. Free space, or lower --retention-time or --retention-size"
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
    /// An expression is not valid, or asks for what has no meaning.
    #[error("{0}")]
    Expression(String),
    /// An expression has no answer on this data, or needs more than it may.
    #[error("{0}")]
    Evaluation(String),
    /// A request selects by too much.
    #[error(transparent)]
    TooMuchSelected(#[from] SelectionError),
    /// The engine instance that worked on this crashed.
    #[error("the engine stopped while working on this: {0}")]
    Crashed(String),
    /// Memory is short; it will not be for long.
    #[error("memory is short: {0}; retry later")]
    ShortOfMemory(String),
    /// The head dropped the data that was being read.
    #[error("the head was restarted, or ran short of memory, while it was being read; read again")]
    HeadRestarted,
    /// The head crashed while another instance read it.
    #[error("the head stopped while it was read: {0}; read again")]
    HeadCrashed(String),
    /// Series were dropped, or the head restarted, since their numbers were given.
    #[error("series were dropped since their numbers were given; ask for them again")]
    SeriesGone,
    /// A read found samples once, and not any more.
    #[error("samples were deleted while they were read; read again")]
    DeletedWhileRead,
    /// A read passed its deadline.
    #[error("the read exceeded its timeout (--read-timeout)")]
    Deadline,
    /// A query passed its deadline. The text is upstream's.
    #[error("query timed out in {0}")]
    QueryTimeout(&'static str),
    /// Too many queries wait for their turn.
    #[error("{waiting_max} queries wait already (--query-max-concurrency); retry later")]
    TooManyQueries {
        /// How many may.
        waiting_max: usize,
    },
    /// The client of a query or read disconnected; it does not get this error. Prometheus' text.
    #[error("query was canceled in query execution")]
    Cancelled,
    /// A call of the head passed its deadline.
    #[error("a call of the head exceeded its timeout (--head-timeout); the head is restarted")]
    HeadDeadline,
    /// A read needed more memory than one may have.
    #[error("the read exceeded its memory limit (--query-memory-limit)")]
    NeedsTooMuchMemory,
    /// A compaction needed more memory than one may have.
    #[error(
        "the compaction exceeded its memory limit of {limit_bytes} bytes; raise \
         --compactor-memory-limit or --memory-limit"
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
    #[error("the plugin {plugin} is being loaded, and nothing is stored before that; retry later")]
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

    /// The same of a call of the head, whose limits are not those of a read. It restarts, and may
    /// then have room for the same call.
    pub(super) fn of_head(self) -> StoreError {
        match self {
            StoreError::NeedsTooMuchMemory => {
                StoreError::ShortOfMemory("the head has no more (--head-memory-limit)".into())
            }
            StoreError::Deadline => StoreError::HeadDeadline,
            other => other,
        }
    }

    /// The error for a read that needs memory that other reads have.
    pub(super) fn short_of_reads_memory(pool: &MemoryPool) -> StoreError {
        let bytes_max = pool.bytes_max();
        StoreError::ShortOfMemory(format!("all reads together may take {bytes_max} bytes"))
    }
}

impl From<CallError> for StoreError {
    fn from(error: CallError) -> StoreError {
        match error {
            CallError::Refused(error) => error.into(),
            CallError::Trap(trap) => StoreError::Crashed(format!("{trap:#}")),
            CallError::Head(lost) => lost.into(),
            CallError::Deadline => StoreError::Deadline,
            CallError::Cancelled => StoreError::Cancelled,
            CallError::Memory(MemoryBound::Own) => StoreError::NeedsTooMuchMemory,
            CallError::Memory(MemoryBound::Shared) => {
                StoreError::ShortOfMemory("all that there is for reads is taken".into())
            }
        }
    }
}

impl From<HeadLost> for StoreError {
    fn from(lost: HeadLost) -> StoreError {
        match lost {
            HeadLost::Restarted => StoreError::HeadRestarted,
            HeadLost::NotReady => StoreError::NotReady,
            HeadLost::Stopped => StoreError::Stopped,
            HeadLost::Crashed(why) => StoreError::HeadCrashed(why),
            HeadLost::Deadline => StoreError::HeadDeadline,
            HeadLost::OutOfMemory => StoreError::NeedsTooMuchMemory.of_head(),
        }
    }
}

impl From<Error> for StoreError {
    fn from(error: Error) -> StoreError {
        match error {
            Error::HeadLost(lost) => lost.into(),
            error => StoreError::Refused(error),
        }
    }
}

impl From<ParseError> for StoreError {
    fn from(error: ParseError) -> StoreError {
        StoreError::Expression(error.text)
    }
}

impl From<QueryError> for StoreError {
    fn from(error: QueryError) -> StoreError {
        match error {
            QueryError::Parse(error) => error.into(),
            QueryError::Invalid(text) => StoreError::Expression(text),
            QueryError::Execution(text) => StoreError::Evaluation(text),
            QueryError::Limit(limit) => StoreError::Evaluation(limit.text),
            QueryError::Store(error) => error.into(),
        }
    }
}

/// What a stop could not keep.
#[derive(Debug, thiserror::Error)]
pub enum StopError {
    /// The last records are not known to be on the device.
    #[error("the WAL could not be synced at the stop, and a power cut may lose its end: {0}")]
    Unsynced(DiskError),
    /// Records that `--wal-sync=batch` gathered could not be written.
    #[error(
        "{unwritten_bytes} bytes of acknowledged records are lost: the WAL could not be written at \
         the stop: {}",
        cause(.error)
    )]
    Unwritten {
        /// Bytes of these records.
        unwritten_bytes: u64,
        /// What kept them from being written.
        error: DiskError,
    },
}

/// What the operating system said, if it was that.
fn cause(error: &DiskError) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Only the error of a read names the limits of reads.
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
            (HeadLost::OutOfMemory.into(), "--head-memory-limit"),
            (HeadLost::Deadline.into(), "--head-timeout"),
        ] {
            let text = error.to_string();
            assert!(text.contains(flag), "{text}");
            assert!(!text.contains("--query") || flag.contains("query"), "{text}");
            assert!(!text.contains("--read") || flag.contains("read"), "{text}");
        }
    }
}
