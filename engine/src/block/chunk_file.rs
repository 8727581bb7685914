//! The files `chunks/000001`, `chunks/000002`, …: all chunks of a block, in the index's order.
//!
//! ```text
//! ┌────────────┬───┬───────┐ ┌─────────────┬─────────────┬──────┬───────┐
//! │ 0x85BD40DD │ 1 │ 0 0 0 │ │ len uvarint │ encoding u8 │ data │ CRC32 │  × chunks
//! └────────────┴───┴───────┘ └─────────────┴─────────────┴──────┴───────┘
//! ```
//!
//! `len` is the length of `data`; the checksum (big-endian, Castagnoli) covers encoding and data.
//! Source: Prometheus' `tsdb/docs/format/chunks.md`.

use super::BlockError;
use crate::chunk::{Chunk, ChunkError, Encoding};
use crate::codec::{crc32c, put_uvarint};
use crate::index::{ChunkMeta, ChunkRef, FileSink, NamedFile, ReadAhead};
use crate::storage::{BlockWriter, Blocks, StorageError, StorageResult};
use std::cell::RefCell;
use std::rc::Rc;
use tidepool_remote_write::{
    BadChunk, CHUNK_HEAD_BYTES_MAX, checked_chunk, chunk_extent, known_chunk,
};

/// Largest size of a chunk file in bytes; a chunk beyond it begins the next file.
pub const CHUNK_FILE_BYTES_MAX: u64 = 512 * 1024 * 1024;

/// Largest chunk data, in bytes, that is written, or accepted when read.
pub use tidepool_remote_write::CHUNK_BYTES_MAX;

/// Largest read-ahead of chunks over all files of a block, in bytes.
const AHEAD_BYTES_MAX: usize = 256 * 1024;

/// Least read-ahead of one file in bytes, however many files the block has.
const AHEAD_BYTES_MIN: usize = 8 * 1024;

pub(crate) const MAGIC: u32 = 0x85bd_40dd;
pub(crate) const VERSION: u8 = 1;

/// Magic number, version and three bytes of padding.
pub(crate) const HEADER_BYTES: u64 = 8;

/// Bytes of a chunk besides its data, at most: its length, encoding and checksum.
const CHUNK_OVERHEAD_BYTES_MAX: u64 = 5 + 1 + 4;

/// Returns the name of a chunk file in its block; `number` counts from 0, the name from 1.
pub fn chunk_file_name(number: u32) -> String {
    format!("chunks/{:06}", u64::from(number) + 1)
}

pub(super) struct ChunkFileWriter {
    sink: FileSink,
    number: u32,
    file_bytes_max: u64,
}

impl ChunkFileWriter {
    /// Begins the file of this number; only tests change [`CHUNK_FILE_BYTES_MAX`].
    pub(super) fn new(number: u32, file_bytes_max: u64) -> ChunkFileWriter {
        ChunkFileWriter { sink: begin_file(number), number, file_bytes_max }
    }

    pub(super) fn put(
        &mut self,
        chunk: &Chunk,
        out: &mut dyn BlockWriter,
    ) -> StorageResult<ChunkRef> {
        let bytes = chunk.data.len() as u64 + CHUNK_OVERHEAD_BYTES_MAX;
        // A chunk longer than a whole file still gets a file of its own.
        let has_chunks = self.sink.position() > HEADER_BYTES;
        if has_chunks && self.sink.position() + bytes > self.file_bytes_max {
            self.sink.flush(out)?;
            self.number += 1;
            self.sink = begin_file(self.number);
        }
        // The offset fits: a file ends at `file_bytes_max`, far below 4 GiB.
        let chunk_ref = ChunkRef::new(self.number, self.sink.position() as u32);
        let buffer = self.sink.buffer();
        put_uvarint(buffer, chunk.data.len() as u64);
        let start = buffer.len();
        buffer.push(chunk.encoding as u8);
        buffer.extend_from_slice(&chunk.data);
        let crc = crc32c(buffer.get(start..).unwrap_or_default());
        self.sink.put_u32(crc);
        self.sink.flush_full(out)?;
        Ok(chunk_ref)
    }

    /// Writes the last file; an empty file is written only if the block has no other.
    pub(super) fn finish(mut self, out: &mut dyn BlockWriter) -> StorageResult<()> {
        match self.number == 0 || self.sink.position() > HEADER_BYTES {
            true => self.sink.flush(out),
            false => Ok(()),
        }
    }
}

fn begin_file(number: u32) -> FileSink {
    let mut sink = FileSink::new(chunk_file_name(number));
    sink.put_u32(MAGIC);
    sink.put(&[VERSION, 0, 0, 0]);
    sink
}

const FILE_BYTES: usize = 100;

/// Reads the chunks of a block. All files are open, so a deleted block stays readable.
pub(super) struct ChunkFileReader {
    block: Box<str>,
    files: Vec<NamedFile>,
    /// Read-ahead by file number, because the chunks of a merged series are in several files.
    windows: RefCell<Vec<Option<ReadAhead>>>,
}

impl ChunkFileReader {
    pub(super) fn open(blocks: &dyn Blocks, block: &str) -> Result<ChunkFileReader, BlockError> {
        let mut files = Vec::new();
        loop {
            let name = chunk_file_name(files.len() as u32);
            let file = match blocks.open(block, &name) {
                Ok(file) => NamedFile::new(file, block, &name),
                // Numbers have no gaps, so the first missing file ends the list.
                Err(StorageError::NotFound { .. }) if !files.is_empty() => break,
                Err(error) => return Err(error.into()),
            };
            // Checked here, so that `check_ends` finds a foreign file without reading chunks.
            let header = file.read(0, HEADER_BYTES as usize)?.unwrap_or_default();
            let version = match header.split_first_chunk::<4>() {
                Some((magic, [version, ..])) if *magic == MAGIC.to_be_bytes() => *version,
                _ => return Err(file.damage(0, "this is not a file of chunks").into()),
            };
            if version != VERSION {
                let (block, version) = (block.to_owned(), u64::from(version));
                return Err(BlockError::UnsupportedVersion { block, file: name, version });
            }
            files.push(file);
        }
        Ok(ChunkFileReader { block: block.into(), files, windows: RefCell::new(Vec::new()) })
    }

    /// Drops the bytes that were read ahead.
    pub(super) fn rest(&self) {
        self.windows.replace(Vec::new());
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let windows = self.windows.borrow();
        let windows: usize = windows.iter().flatten().map(ReadAhead::memory_bytes).sum();
        windows + self.files.len() * FILE_BYTES
    }

    pub(super) fn file_count(&self) -> usize {
        self.files.len()
    }

    /// Returns a file by its number; a damaged index may name a file that does not exist.
    fn file(&self, number: u32) -> Result<&NamedFile, BlockError> {
        let missing = || StorageError::NotFound { what: self.full_name(number) };
        Ok(self.files.get(number as usize).ok_or_else(missing)?)
    }

    /// Checks that a chunk's position lies in a file, without reading the chunk.
    pub(super) fn check_place(&self, meta: &ChunkMeta) -> Result<(), BlockError> {
        let (file, offset) =
            (self.file(meta.chunk_ref.file())?, u64::from(meta.chunk_ref.offset()));
        match offset >= HEADER_BYTES && offset < file.size() {
            true => Ok(()),
            false => Err(file.damage(offset, "no chunk begins here").into()),
        }
    }

    pub(super) fn full_name(&self, number: u32) -> String {
        format!("{}/{}", self.block, chunk_file_name(number))
    }

    /// Reads the chunk that an index entry describes, and checks its checksum.
    pub(super) fn chunk(&self, meta: &ChunkMeta) -> Result<Chunk, BlockError> {
        let (number, offset) = (meta.chunk_ref.file(), u64::from(meta.chunk_ref.offset()));
        let file = self.file(number)?;
        let damage = |bad| {
            let what = match bad {
                BadChunk::NoLength => "no chunk begins here",
                BadChunk::TooLong => "the chunk is longer than any chunk may be",
                BadChunk::CutShort => "the file ends within this chunk",
                BadChunk::Checksum => "the chunk's checksum does not match",
            };
            BlockError::from(file.damage(offset, what))
        };
        let mut windows = self.windows.borrow_mut();
        // Made on first use: a reader of labels alone takes no memory for windows.
        if windows.is_empty() {
            windows.resize_with(self.files.len(), || None);
        }
        // Files share the budget, so a merged block of many files takes no more memory than one.
        let ahead_bytes = (AHEAD_BYTES_MAX / self.files.len().max(1)).max(AHEAD_BYTES_MIN);
        let window = windows.get_mut(number as usize).filter(|_| offset >= HEADER_BYTES);
        let window = window.ok_or_else(|| damage(BadChunk::NoLength))?;
        let window = window.get_or_insert_with(|| ReadAhead::of_chunks(file.clone(), ahead_bytes));
        let extent =
            chunk_extent(window.at_least(offset, CHUNK_HEAD_BYTES_MAX)?).map_err(damage)?;
        window.at_least(offset, extent.end)?;
        // Some storage checks chunks as it reads them, which saves a second checksum here.
        let is_checked = window.is_checked(offset, extent.end);
        let bytes = window.get(offset, extent.end)?.and_then(|bytes| bytes.get(extent));
        let content = bytes.ok_or_else(|| damage(BadChunk::CutShort))?;
        let read = if is_checked { known_chunk(content) } else { checked_chunk(content, crc32c) };
        let (number, data) = read.map_err(damage)?;
        // Judged after the checksum: a flipped bit is damage, not an unknown encoding.
        let encoding = Encoding::try_from_u8(number)
            .ok_or_else(|| self.undecodable(meta, ChunkError::UnknownEncoding { number }))?;
        let ChunkMeta { min_time_ms, max_time_ms, .. } = *meta;
        Ok(Chunk { encoding, min_time_ms, max_time_ms, data: data.into() })
    }

    /// Error for a chunk whose checksum matches but whose content does not decode.
    pub(super) fn undecodable(&self, meta: &ChunkMeta, source: ChunkError) -> BlockError {
        BlockError::Chunk {
            block: Rc::from(&*self.block),
            file: chunk_file_name(meta.chunk_ref.file()),
            offset: u64::from(meta.chunk_ref.offset()),
            source,
        }
    }
}
