//! The head as bytes: all that a replay of the log would have to build again.
//!
//! [`HeadSaver`] takes a head apart into pieces, [`HeadLoader`] puts one together. The layout is in
//! `engine/docs/format/head.md`. The caller keeps the pieces whole and from the same moment as the
//! log. Other bytes return an error, and nothing of them is loaded. Loading needs no more memory
//! than a small multiple of what the pieces hold.
//!
//! Chunks are copied as they are, the one being filled with its appender's state. Labels go as
//! numbers of (name, value) pairs, so that lists of series by label are filled without any search.

mod bytes;
mod load;
mod save;

pub use bytes::Bytes;
pub use load::HeadLoader;
pub use save::HeadSaver;

/// Why pieces make no head.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SavedHeadError {
    /// A piece ends too early.
    #[error("a piece of the saved head is cut short")]
    CutShort,
    /// Something contradicts itself.
    #[error("the saved head is damaged: {what}")]
    Damaged {
        /// What is wrong.
        what: &'static str,
    },
    /// Another version made it.
    #[error("the saved head has the unknown version {version}")]
    Version {
        /// Its version.
        version: u32,
    },
    /// A replay would build something else today.
    #[error("the saved head no longer fits: {what}")]
    Outdated {
        /// What has changed since.
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

/// The error for what contradicts itself.
pub fn damaged(what: &'static str) -> SavedHeadError {
    SavedHeadError::Damaged { what }
}
