//! Chunk files with read-ahead. An answer reads chunks of each block in turn, at ascending offsets.

use tidepool_disk::BlockFile;
use tidepool_remote_write::{CHUNK_HEAD_BYTES_MAX, checked_chunk, chunk_extent};

/// Size of the first read, and of a read after a jump: a narrow query needs little of each file.
const AHEAD_BYTES_MIN: usize = 4 * 1024;

/// Maximum size of one read of a file.
const AHEAD_BYTES_MAX: usize = 64 * 1024;

/// Maximum read-ahead of all files together. Exceeded only if each file has the minimum.
const ALL_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Encodings that all clients support: XOR and both kinds of histograms, without start timestamps.
const PLAIN_ENCODINGS: std::ops::RangeInclusive<u8> = 1..=3;

/// The files that a plan names. Chunks refer to a file by its number.
#[derive(Default)]
pub(super) struct ChunkFiles {
    /// `None` for a file that cannot be read.
    files: Vec<Option<ChunkFile>>,
}

struct ChunkFile {
    file: BlockFile,
    /// Offset in the file at which the window (the bytes read last) begins.
    start: u64,
    /// The window, and after its bytes remains of longer windows.
    buffer: Vec<u8>,
    window_bytes: usize,
    ahead_bytes: usize,
}

impl ChunkFiles {
    /// Adds the next file; `None` if it cannot be read.
    pub(super) fn add(&mut self, file: Option<BlockFile>) {
        self.files.push(file.map(|file| ChunkFile {
            file,
            start: 0,
            buffer: Vec::new(),
            window_bytes: 0,
            ahead_bytes: AHEAD_BYTES_MIN,
        }));
    }

    /// Returns encoding and data of the chunk at an offset of a file. Returns `None` if the chunk
    /// is damaged, cannot be read, or has an encoding that some clients do not support.
    #[inline]
    pub(super) fn chunk(&mut self, file: usize, offset: u64) -> Option<(u8, &[u8])> {
        let each_bytes_max = ALL_BYTES_MAX / self.files.len().max(1);
        let ahead_bytes_max = each_bytes_max.clamp(AHEAD_BYTES_MIN, AHEAD_BYTES_MAX);
        let file = self.files.get_mut(file)?.as_mut()?;
        // The head is read first, because it has the length of the chunk.
        let extent = chunk_extent(file.at_least(offset, CHUNK_HEAD_BYTES_MAX, ahead_bytes_max)?);
        let extent = extent.ok()?;
        let bytes = file.at_least(offset, extent.end, ahead_bytes_max)?;
        let (encoding, data) = checked_chunk(bytes.get(extent)?, crc32c::crc32c).ok()?;
        PLAIN_ENCODINGS.contains(&encoding).then_some((encoding, data))
    }
}

impl ChunkFile {
    /// Returns at least `bytes` bytes, or fewer at the end of the file.
    #[inline]
    fn at_least(&mut self, offset: u64, bytes: usize, ahead_bytes_max: usize) -> Option<&[u8]> {
        let place = offset.checked_sub(self.start).and_then(|at| usize::try_from(at).ok());
        let in_window = place.filter(|at| at.saturating_add(bytes) <= self.window_bytes);
        let at = match in_window {
            Some(at) => at,
            None => {
                self.load(offset, bytes, ahead_bytes_max)?;
                0
            }
        };
        self.buffer.get(at..self.window_bytes)
    }

    fn load(&mut self, offset: u64, bytes: usize, ahead_bytes_max: usize) -> Option<()> {
        let window_end = self.start + self.window_bytes as u64;
        let near = self.start..=window_end.saturating_add(self.ahead_bytes as u64);
        // After a jump of more than the read-ahead, reading ahead would mostly read bytes to skip.
        self.ahead_bytes = match near.contains(&offset) && self.window_bytes > 0 {
            true => (2 * self.ahead_bytes).min(ahead_bytes_max),
            false => AHEAD_BYTES_MIN,
        };
        let left = self.file.size_bytes().saturating_sub(offset);
        let bytes = bytes.max(self.ahead_bytes).min(usize::try_from(left).unwrap_or(usize::MAX));
        if self.buffer.len() > bytes.max(ahead_bytes_max) {
            // A long chunk has left a large buffer, which is freed.
            self.buffer = Vec::new();
        }
        if self.buffer.len() < bytes {
            self.buffer.resize(bytes, 0);
        }
        // A failed read leaves arbitrary bytes, so the window is empty until it succeeds.
        self.window_bytes = 0;
        self.file.read_into(offset, self.buffer.get_mut(..bytes)?).ok()?;
        (self.start, self.window_bytes) = (offset, bytes);
        Some(())
    }
}
