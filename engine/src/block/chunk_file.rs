//! The files `chunks/000001`, `chunks/000002`, …: all chunks of a block, each file's in the index's
//! order.
//!
//! ```text
//! ┌────────────┬───┬───────┐ ┌─────────────┬─────────────┬──────┬───────┐
//! │ 0x85BD40DD │ 1 │ 0 0 0 │ │ len uvarint │ encoding u8 │ data │ CRC32 │  × chunks
//! └────────────┴───┴───────┘ └─────────────┴─────────────┴──────┴───────┘
//! ```
//!
//! `len` counts `data` alone; the checksum (big-endian, Castagnoli) covers encoding and data.
//! Source: upstream's `tsdb/docs/format/chunks.md`.

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

/// Longest file; the next chunk goes to the next file.
pub const CHUNK_FILE_BYTES_MAX: u64 = 512 * 1024 * 1024;

/// Longest chunk data that is written, or believed when read.
pub use tidepool_remote_write::CHUNK_BYTES_MAX;

/// How much is read ahead of chunks, of all files of a block together.
const AHEAD_BYTES_MAX: usize = 256 * 1024;

/// The least that is read ahead of a file, however many there are.
const AHEAD_BYTES_MIN: usize = 8 * 1024;

pub(crate) const MAGIC: u32 = 0x85bd_40dd;
pub(crate) const VERSION: u8 = 1;

/// Magic, version and padding.
pub(crate) const HEADER_BYTES: u64 = 8;

/// Longest encoding of a chunk's length, the encoding's number, and the checksum.
const CHUNK_OVERHEAD_BYTES_MAX: u64 = 5 + 1 + 4;

/// Name of a file of chunks inside a block; counted from 0.
pub fn chunk_file_name(number: u32) -> String {
    format!("chunks/{:06}", u64::from(number) + 1)
}

/// Writes chunks, one after the other.
pub(super) struct ChunkFileWriter {
    sink: FileSink,
    number: u32,
    file_bytes_max: u64,
}

impl ChunkFileWriter {
    /// Begins with the file of this number, behind those that are linked; `file_bytes_max` is
    /// [`CHUNK_FILE_BYTES_MAX`] but in tests.
    pub(super) fn new(number: u32, file_bytes_max: u64) -> ChunkFileWriter {
        ChunkFileWriter { sink: begin_file(number), number, file_bytes_max }
    }

    pub(super) fn put(
        &mut self,
        chunk: &Chunk,
        out: &mut dyn BlockWriter,
    ) -> StorageResult<ChunkRef> {
        let bytes = chunk.data.len() as u64 + CHUNK_OVERHEAD_BYTES_MAX;
        let has_chunks = self.sink.position() > HEADER_BYTES;
        if has_chunks && self.sink.position() + bytes > self.file_bytes_max {
            self.sink.flush(out)?;
            self.number += 1;
            self.sink = begin_file(self.number);
        }
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

    /// A block has one file at least; one without chunks is not written behind others.
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

/// What an open file takes in memory, about.
const FILE_BYTES: usize = 100;

/// Reads the chunks of a block. All files are opened at once, so that a block that is deleted
/// meanwhile stays readable.
pub(super) struct ChunkFileReader {
    block: Box<str>,
    files: Vec<NamedFile>,
    /// The pieces that are in memory, by the file's number. A series of a block that was merged has
    /// chunks in several files, and each of them is read from front to back.
    windows: RefCell<Vec<Option<ReadAhead>>>,
}

impl ChunkFileReader {
    pub(super) fn open(blocks: &dyn Blocks, block: &str) -> Result<ChunkFileReader, BlockError> {
        let mut files = Vec::new();
        loop {
            let name = chunk_file_name(files.len() as u32);
            let file = match blocks.open(block, &name) {
                Ok(file) => NamedFile::new(file, block, &name),
                Err(StorageError::NotFound { .. }) if !files.is_empty() => break,
                Err(error) => return Err(error.into()),
            };
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

    /// Drops what was read ahead.
    pub(super) fn rest(&self) {
        self.windows.replace(Vec::new());
    }

    /// Memory that it takes now, about.
    pub(super) fn memory_bytes(&self) -> usize {
        let windows = self.windows.borrow();
        let windows: usize = windows.iter().flatten().map(ReadAhead::memory_bytes).sum();
        windows + self.files.len() * FILE_BYTES
    }

    /// How many files there are.
    pub(super) fn file_count(&self) -> usize {
        self.files.len()
    }

    /// The file that an index says a chunk is in.
    fn file(&self, number: u32) -> Result<&NamedFile, BlockError> {
        let missing = || StorageError::NotFound { what: self.full_name(number) };
        Ok(self.files.get(number as usize).ok_or_else(missing)?)
    }

    /// Checks that a chunk that an index describes can be where it says, without reading it.
    pub(super) fn check_place(&self, meta: &ChunkMeta) -> Result<(), BlockError> {
        let (file, offset) =
            (self.file(meta.chunk_ref.file())?, u64::from(meta.chunk_ref.offset()));
        match offset >= HEADER_BYTES && offset < file.size() {
            true => Ok(()),
            false => Err(file.damage(offset, "no chunk begins here").into()),
        }
    }

    /// Block and name of a file.
    pub(super) fn full_name(&self, number: u32) -> String {
        format!("{}/{}", self.block, chunk_file_name(number))
    }

    /// The chunk that an index describes.
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
        if windows.is_empty() {
            windows.resize_with(self.files.len(), || None);
        }
        let ahead_bytes = (AHEAD_BYTES_MAX / self.files.len().max(1)).max(AHEAD_BYTES_MIN);
        let window = windows.get_mut(number as usize).filter(|_| offset >= HEADER_BYTES);
        let window = window.ok_or_else(|| damage(BadChunk::NoLength))?;
        let window = window.get_or_insert_with(|| ReadAhead::of_chunks(file.clone(), ahead_bytes));
        let extent =
            chunk_extent(window.at_least(offset, CHUNK_HEAD_BYTES_MAX)?).map_err(damage)?;
        window.at_least(offset, extent.end)?;
        let is_checked = window.is_checked(offset, extent.end);
        let bytes = window.get(offset, extent.end)?.and_then(|bytes| bytes.get(extent));
        let content = bytes.ok_or_else(|| damage(BadChunk::CutShort))?;
        let read = if is_checked { known_chunk(content) } else { checked_chunk(content, crc32c) };
        let (number, data) = read.map_err(damage)?;
        let encoding = Encoding::try_from_u8(number)
            .ok_or_else(|| self.undecodable(meta, ChunkError::UnknownEncoding { number }))?;
        let ChunkMeta { min_time_ms, max_time_ms, .. } = *meta;
        Ok(Chunk { encoding, min_time_ms, max_time_ms, data: data.into() })
    }

    /// What is wrong with the content of a chunk whose bytes are as they were written.
    pub(super) fn undecodable(&self, meta: &ChunkMeta, source: ChunkError) -> BlockError {
        BlockError::Chunk {
            block: Rc::from(&*self.block),
            file: chunk_file_name(meta.chunk_ref.file()),
            offset: u64::from(meta.chunk_ref.offset()),
            source,
        }
    }
}
