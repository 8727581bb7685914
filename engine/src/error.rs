//! The engine's error: the rooms' errors, widened.

use crate::block::BlockError;
use crate::chunk::ChunkError;
use crate::head::{NotNow, SavedHeadError};
use crate::index::IndexError;
use crate::model::MatcherError;
use crate::storage::StorageError;
use crate::wire::WireError;

/// Why the engine did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The store is not open (or not yet, or no more).
    #[error("the store is not open")]
    NotOpen,
    /// The instance's role does not include the call.
    #[error("{call} is not part of this instance's role")]
    WrongRole {
        /// Name of the call.
        call: &'static str,
    },
    /// The caller's mistake.
    #[error("{0}")]
    Invalid(String),
    /// A matcher that cannot be used.
    #[error(transparent)]
    Matcher(#[from] MatcherError),
    /// A message that does not decode.
    #[error(transparent)]
    Malformed(#[from] WireError),
    /// A damaged block, or storage that failed beneath it.
    #[error(transparent)]
    Block(#[from] BlockError),
    /// A damaged chunk in memory or in a block.
    #[error("a chunk of series {series} is damaged: {source}")]
    Chunk {
        /// The series as Prometheus prints it.
        series: String,
        /// What is wrong.
        source: ChunkError,
    },
    /// A saved head that cannot be taken.
    #[error(transparent)]
    SavedHead(#[from] SavedHeadError),
    /// A stated limit.
    #[error("{what}: the limit of {max} is reached")]
    LimitExceeded {
        /// The name of the limit.
        what: &'static str,
        /// The bound.
        max: u64,
    },
    /// Memory is short; a cut will free some.
    #[error("memory is short ({max} bytes for the head); a block is being cut to free some")]
    ShortOfMemory {
        /// The head's memory in bytes.
        max: u64,
    },
    /// Open reads need what the call would drop.
    #[error("reads are still open; try again when they have ended")]
    Busy,
    /// Series of the head are gone that a count still needs.
    #[error("series of the head were dropped while they were counted; ask again")]
    SeriesDropped,
    /// What is to be truncated is not in a block for certain.
    #[error(
        "no cut is planned that ends before {before_ms} ms (was the head restarted meanwhile?): \
         the head keeps its samples for the next cut"
    )]
    NotPlanned {
        /// Everything before was to be truncated.
        before_ms: i64,
    },
    /// Storage failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// What another instance answered through an import.
    #[error(transparent)]
    Remote(#[from] RemoteError),
}

/// What the instance that owns the head answered to one that does not. Errors that mean the same
/// in both instances, such as [`Error::Busy`], are not among these.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// Its role does not include the call.
    #[error("{0} is not part of the role of the head's instance")]
    WrongRole(String),
    /// A limit that it stated.
    #[error("{what}: the limit of {max} is reached")]
    Limit {
        /// The name of the limit.
        what: String,
        /// The bound.
        max: u64,
    },
    /// Its data does not decode.
    #[error("{place} is damaged at byte {offset}: {reason}")]
    Damaged {
        /// The damaged data.
        place: String,
        /// Offset of the damage, as near as it is known.
        offset: u64,
        /// What is wrong.
        reason: String,
    },
    /// It does not answer.
    #[error(transparent)]
    Lost(#[from] HeadLost),
}

/// Why the instance that owns the head does not answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeadLost {
    /// It was restarted or ran short of memory, and closed what was open.
    #[error("the head was restarted, or ran short of memory, while it was being read; read again")]
    Restarted,
    /// It is not open yet.
    #[error("the head is starting")]
    NotReady,
    /// It was closed.
    #[error("the head has stopped")]
    Stopped,
    /// It crashed.
    #[error("the head crashed: {0}")]
    Crashed(String),
    /// A call took too long.
    #[error("the head passed its deadline")]
    Deadline,
    /// It ran out of memory.
    #[error("the head ran out of memory")]
    OutOfMemory,
}

impl From<NotNow> for Error {
    /// Work without a bound is never put off.
    fn from(_: NotNow) -> Error {
        Error::Busy
    }
}

impl From<IndexError> for Error {
    fn from(error: IndexError) -> Error {
        Error::Block(error.into())
    }
}

/// Result type of most engine calls.
pub type Result<T> = std::result::Result<T, Error>;
