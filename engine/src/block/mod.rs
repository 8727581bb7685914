//! Blocks: immutable directories of series over a time range, in Prometheus' format.
//!
//! ```text
//! 01M7YFGMMBDYF668YRHWQK6XAK/
//! ├── meta.json        what the block is            meta.rs
//! ├── index            which series, which chunks   crate::index
//! ├── chunks/000001…   the chunks                   chunk_file.rs
//! └── tombstones       what was deleted since       tombstones.rs
//! ```
//!
//! `engine/docs/format/block.md` gives every field. [`BlockBuilder`] writes a block in one pass,
//! [`BlockReader`] reads a block; their memory does not grow with the samples.

mod chunk_file;
mod error;
mod meta;
mod reader;
mod tombstones;
mod writer;

#[cfg(test)]
pub(crate) mod tests;

pub use chunk_file::{CHUNK_BYTES_MAX, CHUNK_FILE_BYTES_MAX, chunk_file_name};
pub(crate) use chunk_file::{
    HEADER_BYTES as CHUNK_HEADER_BYTES, MAGIC as CHUNK_MAGIC, VERSION as CHUNK_VERSION,
};
pub use error::BlockError;
pub use meta::{
    BlockDesc, BlockMeta, BlockStats, CompactionMeta, META_FILE, are_deletions_in_log,
    meta_with_tombstones, read_meta,
};
pub use reader::BlockReader;
pub use tombstones::{TOMBSTONES_BYTES_MAX, TOMBSTONES_FILE, Tombstones};
pub use writer::{BlockBuilder, BlockMetaParams, LinkedChunks, SealedBlock};

pub use crate::index::{ChunkMeta, ChunkRef, SeriesRef, SymbolCollector, SymbolList};
