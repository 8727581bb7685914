//! Errors of writing and reading an index.

use crate::storage::StorageError;
use std::rc::Rc;

/// A position in a file of a block at which the bytes violate the format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file} of block {block} is damaged at byte {offset}: {what}")]
pub struct Damage {
    /// ULID of the block's directory.
    pub block: Rc<str>,
    /// Name of the file in the block.
    pub file: Rc<str>,
    /// Byte offset at which the fault begins.
    pub offset: u64,
    /// Description of the fault, for people.
    pub what: &'static str,
}

/// Reasons why an index cannot be written or read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IndexError {
    /// The storage failed to read or write.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The bytes of the file violate the format.
    #[error(transparent)]
    Damaged(#[from] Damage),
    /// The file has a version that is not supported.
    #[error(
        "the index of block {block} has version {version}; only versions 1 and 2 are supported"
    )]
    UnsupportedVersion {
        /// ULID of the block's directory.
        block: Rc<str>,
        /// Version in the header of the file.
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
    /// The series were not added in label order, each once.
    #[error("series {labels} is not after the one before it")]
    UnsortedSeries {
        /// The series that is out of order.
        labels: String,
    },
    /// The chunks of a series overlap, or do not ascend in time and, within a file, in offset.
    #[error("the chunks of series {labels} are not in time order")]
    UnsortedChunks {
        /// Labels of the series as text.
        labels: String,
    },
    /// A part of the index would not fit the format.
    #[error("{what} would need {bytes} bytes; the format allows {bytes_max}")]
    TooLarge {
        /// Name of the part, for people.
        what: &'static str,
        /// Number of bytes that the part would have.
        bytes: u64,
        /// The limit of the format.
        bytes_max: u64,
    },
}
