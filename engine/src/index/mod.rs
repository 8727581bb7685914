//! The `index` file of a block: series, their labels and the positions of their chunks. No samples.
//!
//! ```text
//! ┌────────────┬───┬─────────┬────────┬─────────────────┬───────────────────────┬─────┐
//! │ 0xBAAAD700 │ 2 │ symbols │ series │ postings, lists │ postings offset table │ TOC │
//! └────────────┴───┴─────────┴────────┴─────────────────┴───────────────────────┴─────┘
//! ```
//!
//! `engine/docs/format/block.md` describes every field; Prometheus' `tsdb/docs/format/index.md` is
//! the source. Numbers of fixed width are big-endian. The layout of each section is at the top of a
//! file: `symbol_table.rs`, `series.rs`, `postings_builder.rs`, `postings_table.rs`, `toc.rs`.
//!
//! [`IndexWriter`] writes a new index as a stream; [`IndexReader`] reads an index. Its memory does
//! not grow with the number of series, except that it keeps one string in 32.
//!
//! Invariants: symbols ascend; series ascend by labels, so ascending [`SeriesRef`]s mean label
//! order; lists of postings ascend; lists of chunks ascend in time, and within each file in offset.

mod error;
mod label_samples;
mod lookup;
mod named_file;
mod postings;
mod postings_builder;
mod postings_table;
mod reader;
mod select;
mod series;
mod sink;
mod summary;
mod symbol_table;
mod symbols;
mod toc;
mod writer;

pub use error::{Damage, IndexError};
pub use postings::{difference, intersection, intersects};
pub use reader::IndexReader;
pub use select::{LabelIndex, select, select_any};
pub use symbols::{SymbolCollector, SymbolList};
pub use writer::IndexWriter;

pub(crate) use named_file::{NamedFile, ReadAhead};
pub(crate) use postings_table::{Entry, split_entry};
pub(crate) use select::VALUES_PER_SERIES;
pub(crate) use series::{LabelNumbers, SERIES_ENTRY_BYTES_MAX, decode_chunks, decode_labels};
pub(crate) use sink::FileSink;
pub(crate) use symbol_table::SymbolTable;
pub(crate) use toc::{TOC_BYTES, read_offsets};

/// Name of the file inside a block.
pub const INDEX_FILE: &str = "index";

/// First four bytes of the file.
pub(crate) const MAGIC: u32 = 0xbaaa_d700;

/// The version that is written.
pub(crate) const VERSION: u8 = 2;

/// The version of Prometheus 2.0, which is only read: series are not aligned; series and symbols
/// are referred to by byte offset; the postings offset table need not ascend.
pub(crate) const VERSION_1: u8 = 1;

pub(crate) const HEADER_BYTES: u64 = 5;

/// Series entries begin at multiples of this, which lets a 32-bit reference span 64 GiB.
pub(crate) const SERIES_ALIGN_BYTES: u64 = 16;

/// A reader keeps in memory one of this many symbols, and one of this many values of each label.
const SAMPLING: usize = 32;

/// Position of a series in the index: its byte offset divided by 16 (in version 1, the byte offset
/// itself). Ascends in label order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SeriesRef(pub u32);

/// Position of a chunk: number of its file (from 0) in the high 32 bits, byte offset in the low.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChunkRef(pub u64);

/// A chunk's entry in the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkMeta {
    /// Time of its first sample.
    pub min_time_ms: i64,
    /// Time of its last sample.
    pub max_time_ms: i64,
    /// File and byte offset of the chunk.
    pub chunk_ref: ChunkRef,
}

impl ChunkRef {
    /// The chunk at a byte offset of a file, both counted from 0.
    pub fn new(file: u32, offset: u32) -> ChunkRef {
        ChunkRef(u64::from(file) << 32 | u64::from(offset))
    }

    /// Number of the file, from 0: `chunks/000001` is file 0.
    pub fn file(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// Byte offset in that file.
    pub fn offset(self) -> u32 {
        self.0 as u32
    }
}
