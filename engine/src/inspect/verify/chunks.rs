//! Checks the chunk files: the chunks of all series, and the bytes between chunks.
//!
//! Chunks are in the order of their series, so each file is read from front to back once. Bytes
//! that no series refers to are still read as chunks, so that damage there is found.

use super::series::SeriesEntry;
use super::{BlockCounts, Report, chunk_file};
use crate::block::{CHUNK_BYTES_MAX, CHUNK_HEADER_BYTES, CHUNK_MAGIC, CHUNK_VERSION};
use crate::chunk::{Chunk, ChunkError, Encoding, sample_count, values};
use crate::codec::{crc32c, split_uvarint};
use crate::index::{ChunkMeta, INDEX_FILE, NamedFile, ReadAhead};
use crate::model::TimeRange;
use crate::storage::{Blocks, StorageError, StorageResult};

const AHEAD_BYTES_MAX: usize = 64 * 1024;

/// Largest number of bytes of a chunk's length and encoding.
const CHUNK_HEAD_BYTES_MAX: usize = 6;

#[derive(Default)]
pub struct ChunkWalk {
    files: Vec<WalkedFile>,
}

type RawChunk = (u8, Box<[u8]>, u64);

struct WalkedFile {
    name: String,
    size: u64,
    window: ReadAhead,
    /// Start of the next chunk; `None` after damage, when it is unknown.
    next: Option<u64>,
    read_to: u64,
}

impl ChunkWalk {
    pub fn open(blocks: &dyn Blocks, block: &str, report: &mut Report) -> StorageResult<ChunkWalk> {
        let mut files = Vec::new();
        loop {
            let name = chunk_file(files.len());
            let file = match blocks.open(block, &name) {
                Ok(file) => NamedFile::new(file, block, &name),
                // Files are numbered without gaps, so the first missing file ends the list.
                Err(StorageError::NotFound { .. }) => break,
                Err(error) => return Err(error),
            };
            let mut expected = CHUNK_MAGIC.to_be_bytes().to_vec();
            expected.extend([CHUNK_VERSION, 0, 0, 0]);
            if file.read(0, CHUNK_HEADER_BYTES as usize)?.unwrap_or_default() != expected {
                report.error(&name, 0, "this is not a file of chunks of version 1");
            }
            let (size, window) = (file.size(), ReadAhead::new(file, AHEAD_BYTES_MAX));
            let start = CHUNK_HEADER_BYTES;
            files.push(WalkedFile { name, size, window, next: Some(start), read_to: start });
        }
        if files.is_empty() {
            report.error(&chunk_file(0), 0, "the file is missing");
        }
        Ok(ChunkWalk { files })
    }

    pub fn bytes_total(&self) -> u64 {
        self.files.iter().map(|file| file.size).sum()
    }

    pub fn bytes_done(&self) -> u64 {
        self.files.iter().map(|file| file.read_to).sum()
    }

    pub fn check_series(
        &mut self,
        entry: &SeriesEntry,
        range: Option<TimeRange>,
        found: &mut BlockCounts,
        report: &mut Report,
    ) -> StorageResult<()> {
        let mut last_ms = None;
        if entry.chunks.is_empty() {
            report.error(INDEX_FILE, entry.offset, "the series has no chunk");
        }
        for meta in &entry.chunks {
            let mut wrong = |what: &str| report.error(INDEX_FILE, entry.offset, what);
            if last_ms.is_some_and(|last_ms| meta.min_time_ms <= last_ms) {
                wrong("a chunk of the series begins before the one before it ends");
            }
            last_ms = Some(meta.max_time_ms);
            let span = TimeRange { start_ms: meta.min_time_ms, end_ms: meta.max_time_ms };
            if range.is_some_and(|range| !range.covers(&span)) {
                wrong("a chunk of the series extends beyond the block's time range");
            }
            let number = meta.chunk_ref.file() as usize;
            let Some(file) = self.files.get_mut(number) else {
                wrong(&format!(
                    "a chunk of the series is in {}, which is missing",
                    chunk_file(number)
                ));
                continue;
            };
            let offset = u64::from(meta.chunk_ref.offset());
            file.read_up_to(offset, report)?;
            match file.read(offset)? {
                Err(what) => {
                    report.error(&file.name, offset, what);
                    // The end is unknown, so the next chunk is found through its series.
                    file.next = None;
                }
                Ok((encoding, data, end)) => {
                    (file.next, file.read_to) = (Some(end), end);
                    match check_chunk(encoding, data, meta) {
                        Err(what) => report.error(&file.name, offset, what),
                        Ok((samples, is_float)) => {
                            found.chunks += 1;
                            found.samples += samples;
                            found.float_samples += if is_float { samples } else { 0 };
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Reads the chunks after the last chunk of any series.
    pub fn check_rest(&mut self, report: &mut Report) -> StorageResult<()> {
        for file in &mut self.files {
            file.read_up_to(file.size, report)?;
        }
        Ok(())
    }
}

impl WalkedFile {
    /// Reads the chunks before an offset; no series refers to them.
    fn read_up_to(&mut self, offset: u64, report: &mut Report) -> StorageResult<()> {
        let Some(start) = self.next.filter(|start| *start != offset) else { return Ok(()) };
        if start > offset {
            report.error(&self.name, offset, "a series refers to a chunk that another one has");
            return Ok(());
        }
        let mut at = start;
        while at < offset {
            match self.read(at)? {
                Ok((_, _, end)) if end <= offset => at = end,
                Ok(_) => {
                    report.error(&self.name, at, "a chunk reaches into the next one");
                    break;
                }
                Err(what) => {
                    report.error(&self.name, at, what);
                    break;
                }
            }
        }
        self.next = Some(offset);
        // Whole chunks up to here are no damage, but need space.
        if at == offset {
            report.warning(&self.name, start, "chunks that no series refers to");
        }
        Ok(())
    }

    /// Returns encoding and data of the chunk at an offset, and its end.
    fn read(&mut self, offset: u64) -> StorageResult<Result<RawChunk, &'static str>> {
        let head = self.window.at_least(offset, CHUNK_HEAD_BYTES_MAX)?;
        let Some((len, rest)) = split_uvarint(head).filter(|_| offset >= CHUNK_HEADER_BYTES) else {
            return Ok(Err("no chunk begins here"));
        };
        let start = head.len() - rest.len();
        // Checked before the data is read, because a wrong length must not allocate much memory.
        let Some(len) = usize::try_from(len).ok().filter(|len| *len <= CHUNK_BYTES_MAX) else {
            return Ok(Err("the chunk is longer than any chunk may be"));
        };
        let whole = start + 1 + len + 4;
        let bytes = self.window.get(offset, whole)?.and_then(|bytes| bytes.get(start..));
        let Some((content, crc)) = bytes.and_then(|bytes| bytes.split_at_checked(1 + len)) else {
            return Ok(Err("the file ends within this chunk"));
        };
        if crc != crc32c(content).to_be_bytes() {
            return Ok(Err("the chunk's checksum does not match"));
        }
        let Some((encoding, data)) = content.split_first() else {
            return Ok(Err("the chunk has no encoding"));
        };
        Ok(Ok((*encoding, data.into(), offset + whole as u64)))
    }
}

/// Decodes a chunk; returns its number of samples, and whether they are floats.
fn check_chunk(encoding: u8, data: Box<[u8]>, meta: &ChunkMeta) -> Result<(u64, bool), String> {
    let ChunkMeta { min_time_ms, max_time_ms, .. } = *meta;
    let undecodable = |error: ChunkError| format!("the chunk does not decode: {error}");
    let encoding = Encoding::try_from_u8(encoding)
        .ok_or_else(|| undecodable(ChunkError::UnknownEncoding { number: encoding }))?;
    let chunk = Chunk { encoding, min_time_ms, max_time_ms, data: data.into() };
    let mut count = 0u64;
    let (mut first_ms, mut last_ms) = (None, None);
    for sample in values(&chunk).map_err(undecodable)? {
        let (timestamp_ms, _) = sample.map_err(undecodable)?;
        if last_ms.is_some_and(|last_ms| timestamp_ms <= last_ms) {
            return Err("the chunk's samples are not in time order".to_owned());
        }
        first_ms.get_or_insert(timestamp_ms);
        last_ms = Some(timestamp_ms);
        count += 1;
    }
    // The count in the chunk's header is checked against the samples that decode.
    if count != u64::from(sample_count(&chunk).map_err(undecodable)?) || count == 0 {
        return Err("the chunk does not hold as many samples as it says".to_owned());
    }
    if (first_ms, last_ms) != (Some(min_time_ms), Some(max_time_ms)) {
        return Err(format!(
            "the chunk's samples span {}..={} ms, but the index says {min_time_ms}..={max_time_ms} ms",
            first_ms.unwrap_or_default(),
            last_ms.unwrap_or_default()
        ));
    }
    Ok((count, encoding.is_floats()))
}
