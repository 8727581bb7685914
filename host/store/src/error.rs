//! Errors of the store, and errors of stopping it.

use super::shortage::Shortage;
use tidepool_disk::DiskError;
use tidepool_protocol::prom::selection::SelectionError;
use tidepool_runtime::{
    CallError, Error, HeadLost, MemoryBound, MemoryPool, ParseError, QueryError, in_words,
};

/// Reason for which the store cannot answer.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The log is still being replayed.
    #[error("the store is starting: its log is being replayed")]
    NotReady,
    /// The log was not replayed for lack of memory. Nothing may be stored or deleted until it is.
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
        /// Free bytes of the data directory's file system.
        free_bytes: u64,
        reserve_bytes: u64,
    },
    #[error("the store is shutting down")]
    Stopped,
    /// The engine refused the call.
    #[error("{}", in_words(.0))]
    Refused(Error),
    /// An expression is invalid, or requests something without a meaning.
    #[error("{0}")]
    Expression(String),
    /// An expression has no result on this data, or exceeds a limit.
    #[error("{0}")]
    Evaluation(String),
    /// The selection of a request exceeds a limit.
    #[error(transparent)]
    TooMuchSelected(#[from] SelectionError),
    /// The engine instance of this call crashed.
    #[error("the engine stopped while working on this: {0}")]
    Crashed(String),
    /// Memory is short at present; a retry may succeed.
    #[error("memory is short: {0}; retry later")]
    ShortOfMemory(String),
    /// The head dropped the data that was being read.
    #[error("the head was restarted, or ran short of memory, while it was being read; read again")]
    HeadRestarted,
    /// The head crashed while another instance read it.
    #[error("the head stopped while it was read: {0}; read again")]
    HeadCrashed(String),
    /// Series were dropped, or the head was restarted, since the caller got the series' numbers.
    #[error("series were dropped since their numbers were given; ask for them again")]
    SeriesGone,
    /// A read found samples first that were deleted before the read ended.
    #[error("samples were deleted while they were read; read again")]
    DeletedWhileRead,
    /// A read passed its deadline.
    #[error("the read exceeded its timeout (--read-timeout)")]
    Deadline,
    /// A query passed its deadline. The text is Prometheus'.
    #[error("query timed out in {0}")]
    QueryTimeout(&'static str),
    /// Too many queries wait for their turn.
    #[error("{waiting_max} queries wait already (--query-max-concurrency); retry later")]
    TooManyQueries {
        /// Maximum number of queries that may wait.
        waiting_max: usize,
    },
    /// The client of a query or read disconnected, so no one receives this error. Prometheus' text.
    #[error("query was canceled in query execution")]
    Cancelled,
    /// A call of the head passed its deadline.
    #[error("a call of the head exceeded its timeout (--head-timeout); the head is restarted")]
    HeadDeadline,
    /// A read exceeded its memory limit.
    #[error("the read exceeded its memory limit (--query-memory-limit)")]
    NeedsTooMuchMemory,
    /// A compaction exceeded its memory limit.
    #[error(
        "the compaction exceeded its memory limit of {limit_bytes} bytes; raise \
         --compactor-memory-limit or --memory-limit"
    )]
    CompactorMemory {
        /// Maximum memory of the compactor's instance.
        limit_bytes: u64,
    },
    /// The log accepted the batch but could not be synced.
    #[error("the write-ahead log could not be synced: {0}")]
    NotDurable(String),
    /// The data directory cannot be used.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// Two limits contradict each other.
    #[error("{0}")]
    Limits(String),
    /// A transform that every write must pass has failed.
    #[error(
        "the plugin {plugin} failed, and nothing is stored without it (on-fault: reject): {why}"
    )]
    Plugin {
        plugin: String,
        /// Text of the plugin's fault.
        why: String,
    },
    /// A transform that every write must pass is still being loaded.
    #[error("the plugin {plugin} is being loaded, and nothing is stored before that; retry later")]
    PluginLoading {
        /// Name of the plugin in its configuration.
        plugin: String,
    },
    /// The WebAssembly runtime or a thread could not be started.
    #[error("{0}")]
    Runtime(String),
}

impl StoreError {
    /// Names the compactor's memory limit in an error of the compactor's instance.
    pub(super) fn of_compaction(self, limit_bytes: u64) -> StoreError {
        match self {
            StoreError::NeedsTooMuchMemory => StoreError::CompactorMemory { limit_bytes },
            other => other,
        }
    }

    /// Names the head's limits in an error of its call. A retry may succeed after a restart.
    pub(super) fn of_head(self) -> StoreError {
        match self {
            StoreError::NeedsTooMuchMemory => {
                StoreError::ShortOfMemory("the head has no more (--head-memory-limit)".into())
            }
            StoreError::Deadline => StoreError::HeadDeadline,
            other => other,
        }
    }

    /// Returns the error of a read that lacks memory because other reads use all of it.
    pub(super) fn short_of_reads_memory(pool: &MemoryPool) -> StoreError {
        let bytes_max = pool.bytes_max();
        StoreError::ShortOfMemory(format!("all reads together may take {bytes_max} bytes"))
    }
}

impl From<CallError> for StoreError {
    fn from(error: CallError) -> StoreError {
        match error {
            CallError::Refused(error) => error.into(),
            // `{:#}` includes the causes of the trap, which `{}` omits.
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

/// Data that a stop could not keep.
#[derive(Debug, thiserror::Error)]
pub enum StopError {
    /// The last records may not be on the device, so a power cut may lose them.
    #[error("the WAL could not be synced at the stop, and a power cut may lose its end: {0}")]
    Unsynced(DiskError),
    /// Records that `--wal-sync=batch` has buffered could not be written.
    #[error(
        "{unwritten_bytes} bytes of acknowledged records are lost: the WAL could not be written at \
         the stop: {}",
        cause(.error)
    )]
    Unwritten {
        unwritten_bytes: u64,
        /// Error of the last attempt to write the records.
        error: DiskError,
    },
}

/// Returns the text of the operating system's error, if the error has one.
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
