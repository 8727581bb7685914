//! The files `chunks/000001`, `chunks/000002`, …: all chunks of a block, in the index's order.
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
use tidepool_remote_write::{BadChunk, CHUNK_HEAD_BYTES_MAX, checked_chunk, chunk_extent};

/// Longest file; the next chunk goes to the next file.
pub const CHUNK_FILE_BYTES_MAX: u64 = 512 * 1024 * 1024;

/// Longest chunk data that is written, or believed when read.
pub use tidepool_remote_write::CHUNK_BYTES_MAX;

/// How much is read ahead of chunks.
const AHEAD_BYTES_MAX: usize = 256 * 1024;

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
    /// Begins the first file; `file_bytes_max` is [`CHUNK_FILE_BYTES_MAX`] but in tests.
    pub(super) fn new(file_bytes_max: u64) -> ChunkFileWriter {
        ChunkFileWriter { sink: begin_file(0), number: 0, file_bytes_max }
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

    pub(super) fn finish(mut self, out: &mut dyn BlockWriter) -> StorageResult<()> {
        self.sink.flush(out)
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
    /// The piece of a file that is in memory, and the file's number.
    window: RefCell<Option<(u32, ReadAhead)>>,
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
        Ok(ChunkFileReader { block: block.into(), files, window: RefCell::new(None) })
    }

    /// Drops what was read ahead.
    pub(super) fn rest(&self) {
        self.window.replace(None);
    }

    /// Memory that it takes now, about.
    pub(super) fn memory_bytes(&self) -> usize {
        let window = self.window.borrow();
        let window = window.as_ref().map_or(0, |(_, window)| window.memory_bytes());
        window + self.files.len() * FILE_BYTES
    }

    /// How many files there are.
    pub(super) fn file_count(&self) -> usize {
        self.files.len()
    }

    /// Block and name of a file.
    pub(super) fn full_name(&self, number: u32) -> String {
        format!("{}/{}", self.block, chunk_file_name(number))
    }

    /// The chunk that an index describes.
    pub(super) fn chunk(&self, meta: &ChunkMeta) -> Result<Chunk, BlockError> {
        let (number, offset) = (meta.chunk_ref.file(), u64::from(meta.chunk_ref.offset()));
        let missing = || StorageError::NotFound { what: self.full_name(number) };
        let file = self.files.get(number as usize).ok_or_else(missing)?;
        let mut window = self.window.borrow_mut();
        let window = match &mut *window {
            Some((current, window)) if *current == number => window,
            other => {
                let ahead = ReadAhead::new(file.clone(), AHEAD_BYTES_MAX);
                &mut other.insert((number, ahead)).1
            }
        };
        let damage = |bad| {
            let what = match bad {
                BadChunk::NoLength => "no chunk begins here",
                BadChunk::TooLong => "the chunk is longer than any chunk may be",
                BadChunk::CutShort => "the file ends within this chunk",
                BadChunk::Checksum => "the chunk's checksum does not match",
            };
            BlockError::from(file.damage(offset, what))
        };
        if offset < HEADER_BYTES {
            return Err(damage(BadChunk::NoLength));
        }
        let extent =
            chunk_extent(window.at_least(offset, CHUNK_HEAD_BYTES_MAX)?).map_err(damage)?;
        let bytes = window.get(offset, extent.end)?.and_then(|bytes| bytes.get(extent));
        let content = bytes.ok_or_else(|| damage(BadChunk::CutShort))?;
        let (number, data) = checked_chunk(content, crc32c).map_err(damage)?;
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
