//! The error type of the engine, into which the narrower error types of the modules convert.

use crate::block::BlockError;
use crate::chunk::ChunkError;
use crate::head::{NotNow, SavedHeadError};
use crate::index::IndexError;
use crate::model::MatcherError;
use crate::storage::StorageError;
use crate::wire::WireError;

/// Error that a call of the engine returns.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The store is not open yet, or was closed.
    #[error("the store is not open")]
    NotOpen,
    /// The instance's role does not include the call.
    #[error("{call} is not part of this instance's role")]
    WrongRole {
        /// Name of the refused call.
        call: &'static str,
    },
    /// A mistake of the caller, such as an argument out of range.
    #[error("{0}")]
    Invalid(String),
    /// A matcher with an invalid name or regular expression.
    #[error(transparent)]
    Matcher(#[from] MatcherError),
    /// A message that does not decode.
    #[error(transparent)]
    Malformed(#[from] WireError),
    /// A damaged block, or storage that failed beneath it.
    #[error(transparent)]
    Block(#[from] BlockError),
    /// A damaged chunk, in memory or in a block.
    #[error("a chunk of series {series} is damaged: {source}")]
    Chunk {
        /// The series' labels, formatted as Prometheus prints them.
        series: String,
        /// The fault that the decoder found.
        source: ChunkError,
    },
    /// A head snapshot that cannot be loaded.
    #[error(transparent)]
    SavedHead(#[from] SavedHeadError),
    /// A limit that the caller stated is reached.
    #[error("{what}: the limit of {max} is reached")]
    LimitExceeded {
        /// Name of the limit, for messages.
        what: &'static str,
        /// The bound, in the unit of the limit.
        max: u64,
    },
    /// The head is short of memory; the next cut of a block will free some.
    #[error("memory is short ({max} bytes for the head); a block is being cut to free some")]
    ShortOfMemory {
        /// Bytes of memory that the head may use.
        max: u64,
    },
    /// Open reads need data that the call would drop.
    #[error("reads are still open; try again when they have ended")]
    Busy,
    /// Series were dropped from the head while a cardinality count still needed them.
    #[error("series of the head were dropped while they were counted; ask again")]
    SeriesDropped,
    /// A truncation was refused, because the samples are not known to be in a block.
    #[error(
        "no cut is planned that ends before {before_ms} ms (was the head restarted meanwhile?): \
         the head keeps its samples for the next cut"
    )]
    NotPlanned {
        /// End of the truncation in milliseconds, exclusive.
        before_ms: i64,
    },
    /// A failure of the storage imports or traits.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// An error that another instance returned through an import.
    #[error(transparent)]
    Remote(#[from] RemoteError),
}

/// Error that the head's instance returned. Errors such as [`Error::Busy`] need no wrapping.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// The role of the head's instance does not include the call.
    #[error("{0} is not part of the role of the head's instance")]
    WrongRole(String),
    /// A limit that the head's instance stated is reached.
    #[error("{what}: the limit of {max} is reached")]
    Limit {
        /// Name of the limit, for messages.
        what: String,
        /// The bound, in the unit of the limit.
        max: u64,
    },
    /// Data of the head's instance does not decode.
    #[error("{place} is damaged at byte {offset}: {reason}")]
    Damaged {
        /// Name of the damaged data, such as a file.
        place: String,
        /// Offset of the damage in bytes, as near as it is known.
        offset: u64,
        /// Description of the damage, for messages.
        reason: String,
    },
    /// The head's instance does not answer.
    #[error(transparent)]
    Lost(#[from] HeadLost),
}

/// Reason why the instance that owns the head does not answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeadLost {
    /// The head was restarted or ran short of memory, and closed all cursors.
    #[error("the head was restarted, or ran short of memory, while it was being read; read again")]
    Restarted,
    /// The head is not open yet.
    #[error("the head is starting")]
    NotReady,
    /// The head was closed by a stop.
    #[error("the head has stopped")]
    Stopped,
    /// The head's instance trapped; holds the message of the trap.
    #[error("the head crashed: {0}")]
    Crashed(String),
    /// A call of the head took longer than its deadline.
    #[error("the head passed its deadline")]
    Deadline,
    /// The head's instance reached its memory limit.
    #[error("the head ran out of memory")]
    OutOfMemory,
}

impl From<NotNow> for Error {
    // Only calls with a bound on their work return `NotNow`, and callers that convert set no bound.
    fn from(_: NotNow) -> Error {
        Error::Busy
    }
}

impl From<IndexError> for Error {
    // Indexes are read and written as part of blocks only, so they need no variant of their own.
    fn from(error: IndexError) -> Error {
        Error::Block(error.into())
    }
}

/// Result type of most engine calls.
pub type Result<T> = std::result::Result<T, Error>;
