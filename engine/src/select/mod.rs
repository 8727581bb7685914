//! Reading: series of blocks and head, merged in label order, one at a time.
//!
//! A [`Cursor`] has one series of each source and at most one answer frame in memory, however large
//! the selection is. The chunks of blocks are read last, when an answer needs their bytes; a plan
//! only has their files and offsets. Nothing here writes.
//!
//! Duplicates: if several sources have a sample of the same series and time, the sample of the head
//! is kept, or else that of the newest block.
//!
//! Lookups of labels work in the same way: a [`Cursor`] returns series without chunks, a
//! [`StringCursor`] label names and values, an [`ExemplarCursor`] exemplars.

mod cursor;
mod exemplars;
mod found;
mod lines;
mod merge;
mod remote;
mod samples;
mod source;
mod strings;
mod windows;

pub use cursor::{Cursor, FrameFormat, Lookup, Measured, Selection};
pub use exemplars::{EXEMPLAR_PAGE_BYTES, ExemplarCursor, ExemplarSource, RemoteExemplars};
pub use found::{AllRead, FoundChunk};
pub use lines::LineCursor;
pub use merge::{Merge, Mergeable, clip_chunks, merge_chunks};
pub use remote::{HeadDeletion, HeadPage, Opened, RemoteCursor, RemoteHead, RemoteStrings};
pub use source::{
    BlockChunks, BlockLabels, BlockSeries, Damages, HeadSource, LatestLabels, SeriesSource,
};
pub use strings::{BlockNames, BlockValues, StringCursor, StringSource, page_of_strings};
pub use windows::Windows;

#[cfg(test)]
mod tests;
