//! Files of chunks, read ahead: an answer takes a few chunks of each block in turn, each time a
//! little further on.

use tidepool_disk::BlockFile;
use tidepool_remote_write::{CHUNK_HEAD_BYTES_MAX, checked_chunk, chunk_extent};

/// First read of a file, and after a jump. A narrow read needs little of each.
const AHEAD_BYTES_MIN: usize = 4 * 1024;

/// Most that is read of a file at once.
const AHEAD_BYTES_MAX: usize = 64 * 1024;

/// What all files together have read ahead, unless each of them has the least.
const ALL_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Encodings that every client knows: XOR and both kinds of histograms, without start timestamps.
const PLAIN_ENCODINGS: std::ops::RangeInclusive<u8> = 1..=3;

/// The files that a plan has named, by number.
#[derive(Default)]
pub(super) struct ChunkFiles {
    /// Those that cannot be read are empty.
    files: Vec<Option<ChunkFile>>,
}

struct ChunkFile {
    file: BlockFile,
    /// Where in the file the window begins.
    start: u64,
    /// The window, and what is left of longer ones.
    buffer: Vec<u8>,
    window_bytes: usize,
    ahead_bytes: usize,
}

impl ChunkFiles {
    /// Adds the next file, if it can be read.
    pub(super) fn add(&mut self, file: Option<BlockFile>) {
        self.files.push(file.map(|file| ChunkFile {
            file,
            start: 0,
            buffer: Vec::new(),
            window_bytes: 0,
            ahead_bytes: AHEAD_BYTES_MIN,
        }));
    }

    /// Encoding and data of the chunk that begins at an offset of a file. Nothing if it is damaged,
    /// cannot be read, or is in an encoding that not every client knows.
    #[inline]
    pub(super) fn chunk(&mut self, file: usize, offset: u64) -> Option<(u8, &[u8])> {
        let each_bytes_max = ALL_BYTES_MAX / self.files.len().max(1);
        let ahead_bytes_max = each_bytes_max.clamp(AHEAD_BYTES_MIN, AHEAD_BYTES_MAX);
        let file = self.files.get_mut(file)?.as_mut()?;
        let extent = chunk_extent(file.at_least(offset, CHUNK_HEAD_BYTES_MAX, ahead_bytes_max)?);
        let extent = extent.ok()?;
        let bytes = file.at_least(offset, extent.end, ahead_bytes_max)?;
        let (encoding, data) = checked_chunk(bytes.get(extent)?, crc32c::crc32c).ok()?;
        PLAIN_ENCODINGS.contains(&encoding).then_some((encoding, data))
    }
}

impl ChunkFile {
    /// So many bytes or more; fewer only where the file ends before.
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
        // Where more is skipped than was read, reading ahead would mostly read what is skipped.
        self.ahead_bytes = match near.contains(&offset) && self.window_bytes > 0 {
            true => (2 * self.ahead_bytes).min(ahead_bytes_max),
            false => AHEAD_BYTES_MIN,
        };
        let left = self.file.size_bytes().saturating_sub(offset);
        let bytes = bytes.max(self.ahead_bytes).min(usize::try_from(left).unwrap_or(usize::MAX));
        if self.buffer.len() > bytes.max(ahead_bytes_max) {
            // A chunk of unusual length left it.
            self.buffer = Vec::new();
        }
        if self.buffer.len() < bytes {
            self.buffer.resize(bytes, 0);
        }
        self.window_bytes = 0;
        self.file.read_into(offset, self.buffer.get_mut(..bytes)?).ok()?;
        (self.start, self.window_bytes) = (offset, bytes);
        Some(())
    }
}
