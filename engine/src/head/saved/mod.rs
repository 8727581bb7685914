//! The head as bytes: everything that a replay of the log would have to build again.
//!
//! [`HeadSaver`] splits a head into pieces, and [`HeadLoader`] builds a head from them. The layout
//! is in `engine/docs/format/head.md`. The caller ensures that the pieces are complete and match
//! the log. Contradictory pieces return an error, and nothing is loaded. Loading needs no more
//! memory than a small multiple of the pieces.
//!
//! Chunks are copied as they are; the chunk being filled is saved with its appender's state. Labels
//! are saved as numbers of (name, value) pairs, so that postings are filled without a search.

mod bytes;
mod load;
mod save;

pub use bytes::Bytes;
pub use load::HeadLoader;
pub use save::HeadSaver;

/// Reason why a head cannot be built from pieces.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SavedHeadError {
    /// A piece ends too early.
    #[error("a piece of the saved head is cut short")]
    CutShort,
    /// The pieces contradict each other or themselves.
    #[error("the saved head is damaged: {what}")]
    Damaged {
        /// The contradiction that was found.
        what: &'static str,
    },
    /// The snapshot has an unknown version.
    #[error("the saved head has the unknown version {version}")]
    Version {
        /// Version number of the snapshot.
        version: u32,
    },
    /// A replay of the log would now build a different head.
    #[error("the saved head no longer fits: {what}")]
    Outdated {
        /// The change since the snapshot was made.
        what: &'static str,
    },
}

/// Kinds of pieces, in the order in which they come.
mod kind {
    pub const FIRST: u8 = TIMES;
    pub const TIMES: u8 = 1;
    pub const SYMBOLS: u8 = 2;
    pub const PAIRS: u8 = 3;
    pub const NAME_LISTS: u8 = 4;
    pub const SERIES: u8 = 5;
    pub const METADATA: u8 = 6;
    pub const EXEMPLAR_SERIES: u8 = 7;
    pub const EXEMPLARS: u8 = 8;
    pub const END: u8 = 9;
}

fn put_u32(out: &mut Vec<u8>, number: usize) {
    out.extend_from_slice(&(number as u32).to_le_bytes());
}

fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    put_u32(out, text.len());
    out.extend_from_slice(text);
}

/// Returns the error for contradictory bytes.
pub fn damaged(what: &'static str) -> SavedHeadError {
    SavedHeadError::Damaged { what }
}
