//! Reading: series of blocks and head, merged in label order, one at a time.
//!
//! A [`Cursor`] holds one series of each source and never more than one answer frame, however
//! large the selection is. Nothing here writes.
//!
//! Duplicates: where several sources have a sample of the same series and time, the head's counts,
//! then that of the newest block.

mod cursor;
mod merge;
mod source;

pub use cursor::{Cursor, FrameFormat, Selection};
pub use merge::{Merge, clip_chunks, merge_chunks};
pub use source::{BlockSeries, HeadSource, RemoteHeadSeries, SeriesSource};

#[cfg(test)]
mod tests;
