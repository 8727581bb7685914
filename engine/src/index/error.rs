//! Why an index cannot be written or read.

use crate::storage::StorageError;
use std::rc::Rc;

/// A place in a block where the bytes are not what they must be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file} of block {block} is damaged at byte {offset}: {what}")]
pub struct Damage {
    /// The block's ULID.
    pub block: Rc<str>,
    /// The file inside it.
    pub file: Rc<str>,
    /// Where what is wrong begins.
    pub offset: u64,
    /// What is wrong.
    pub what: &'static str,
}

/// Why an index cannot be written or read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IndexError {
    /// The storage failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The file's bytes are wrong.
    #[error(transparent)]
    Damaged(#[from] Damage),
    /// The file is of a version that is not known here.
    #[error(
        "the index of block {block} has version {version}; only versions 1 and 2 are supported"
    )]
    UnsupportedVersion {
        /// The block's ULID.
        block: Rc<str>,
        /// The version it has.
        version: u8,
    },
    /// A list of symbols does not ascend.
    #[error("symbol {symbol:?} is not after the one before it")]
    UnsortedSymbols {
        /// The symbol that is out of order.
        symbol: String,
    },
    /// A series has a label that was not announced among the symbols.
    #[error("{text:?} is not among the block's symbols")]
    UnknownSymbol {
        /// The label's name or value.
        text: String,
    },
    /// Series must come in label order, each once.
    #[error("series {labels} is not after the one before it")]
    UnsortedSeries {
        /// The series that is out of order.
        labels: String,
    },
    /// A series' chunks must ascend in time, not overlap, and ascend in place within each file.
    #[error("the chunks of series {labels} are not in time order")]
    UnsortedChunks {
        /// The series.
        labels: String,
    },
    /// A part of the index would not fit the format.
    #[error("{what} would need {bytes} bytes; the format allows {bytes_max}")]
    TooLarge {
        /// The part.
        what: &'static str,
        /// How long it would become.
        bytes: u64,
        /// The limit of the format.
        bytes_max: u64,
    },
}
