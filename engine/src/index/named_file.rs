//! Reads one file of a committed block, in pieces of a reasonable size.

use super::{Damage, IndexError};
use crate::codec::{crc32c, crc32c_append};
use crate::storage::{BlockFile, ChunkBytes, StorageError, StorageResult};
use std::rc::Rc;

/// Number of bytes read at once when a section is read from front to back.
const SCAN_BYTES: usize = 64 * 1024;

/// Longest entry of a section that is accepted, in bytes.
pub(super) const ENTRY_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Bytes of the first read after a jump: most series entries, and most chunks, are shorter.
const AHEAD_BYTES_MIN: usize = 512;

/// A file with its name, for errors.
#[derive(Clone)]
pub(crate) struct NamedFile {
    file: Rc<dyn BlockFile>,
    /// Length of the file, which never changes; asking the storage would be a call of the host.
    size: u64,
    block: Rc<str>,
    name: Rc<str>,
}

/// A window on a file, which is read ahead while reads move forward.
///
/// Each read that continues the previous one, or skips a little, doubles the bytes read at once, up
/// to a limit; after a jump the next read is small again. So adjacent reads need few calls, and a
/// single look-up few bytes.
pub(crate) struct ReadAhead {
    file: NamedFile,
    start: u64,
    bytes: Vec<u8>,
    has_chunks: bool,
    /// Ends of the chunks within `bytes` that the storage has checked; and in `ends_passed` the
    /// number of ends before the chunk that was asked for last.
    ends: Vec<u32>,
    ends_passed: usize,
    ahead_bytes: usize,
    ahead_bytes_max: usize,
}

/// Bounds of the content of a section: `length u32 │ content │ checksum u32`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Section {
    pub(crate) start: u64,
    pub(crate) end: u64,
}

impl NamedFile {
    pub(crate) fn new(file: Rc<dyn BlockFile>, block: &str, name: &str) -> NamedFile {
        NamedFile { size: file.size(), file, block: block.into(), name: name.into() }
    }

    pub(crate) fn block(&self) -> &Rc<str> {
        &self.block
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    pub(crate) fn damage(&self, offset: u64, what: &'static str) -> Damage {
        Damage { block: Rc::clone(&self.block), file: Rc::clone(&self.name), offset, what }
    }

    /// Reads exactly `len` bytes; `None` if the file is too short.
    pub(crate) fn read(&self, offset: u64, len: usize) -> StorageResult<Option<Vec<u8>>> {
        let Some(len) = self.fitting(offset, len) else { return Ok(None) };
        let bytes = self.file.read_at(offset, len)?;
        self.check_len(offset, len, &bytes)?;
        Ok(Some(bytes))
    }

    /// Like `read`, in a file of chunks; a chunk must begin at the offset.
    fn read_chunks(&self, offset: u64, len: usize) -> StorageResult<Option<ChunkBytes>> {
        let Some(len) = self.fitting(offset, len) else { return Ok(None) };
        let read = self.file.read_chunks(offset, len)?;
        self.check_len(offset, len, &read.bytes)?;
        Ok(Some(read))
    }

    /// Returns the length if the file has that many bytes from the offset on.
    fn fitting(&self, offset: u64, len: usize) -> Option<u32> {
        let fits = offset.checked_add(len as u64).is_some_and(|end| end <= self.size());
        u32::try_from(len).ok().filter(|_| fits)
    }

    fn check_len(&self, offset: u64, len: u32, bytes: &[u8]) -> StorageResult<()> {
        if bytes.len() == len as usize {
            return Ok(());
        }
        let NamedFile { block, name, .. } = self;
        // The file has these bytes, so a short read is the storage's failure, not damage.
        let reason = format!("{block}/{name}: {} of {len} bytes at {offset}", bytes.len());
        Err(StorageError::Io { reason })
    }

    pub(super) fn summary(&self) -> Option<Vec<u8>> {
        self.file.summary()
    }

    pub(super) fn keep_summary(&self, summary: &[u8]) {
        self.file.keep_summary(summary);
    }

    /// Reads the bounds of the section that begins at `offset`.
    pub(crate) fn section(&self, offset: u64) -> Result<Section, IndexError> {
        let cut_short = || self.damage(offset, "the file ends within this section");
        let len = self.read(offset, 4)?.and_then(|len| len.first_chunk::<4>().copied());
        let len = u64::from(u32::from_be_bytes(len.ok_or_else(cut_short)?));
        let section = Section { start: offset + 4, end: offset + 4 + len };
        if section.end + 4 > self.size() { Err(cut_short().into()) } else { Ok(section) }
    }

    /// Reads a section that consists of a count and that many entries; verifies its checksum.
    ///
    /// `entry` gets the offset of an entry in the section's content, and the bytes from there on;
    /// `entry` returns the entry's length, or `None` to get more bytes. Returns the entry count.
    pub(crate) fn scan_section(
        &self,
        section: Section,
        mut entry: impl FnMut(u32, &[u8]) -> Option<usize>,
    ) -> Result<u32, IndexError> {
        let damage = |offset, what| IndexError::from(self.damage(offset, what));
        let mut window = ReadAhead::for_scan(self.clone());
        let header = window.get(section.start, 4)?.and_then(|bytes| bytes.first_chunk::<4>());
        let header = *header.ok_or_else(|| damage(section.start, "the section is empty"))?;
        let mut crc = crc32c(&header);
        let count = u32::from_be_bytes(header);
        let (mut offset, mut left, mut wanted) = (section.start + 4, count, SCAN_BYTES);
        while offset < section.end {
            let bytes = window.at_least(offset, wanted)?;
            // The window has bytes after the section, too; its checksum is no entry.
            let in_section = usize::try_from(section.end - offset).unwrap_or(usize::MAX);
            let bytes = bytes.get(..in_section).unwrap_or(bytes);
            let mut used = 0;
            while left > 0
                && let Some(rest) = bytes.get(used..)
            {
                // Cannot overflow: the length of a section has 32 bits.
                let at = (offset - section.start) as u32 + used as u32;
                let Some(len) = entry(at, rest) else { break };
                used += len;
                left -= 1;
            }
            let Some(entries) = bytes.get(..used).filter(|entries| !entries.is_empty()) else {
                if left == 0 {
                    return Err(damage(offset, "bytes after the section's last entry"));
                }
                // More bytes would not help: the section ends, or the entry is too long.
                if bytes.len() == in_section || bytes.len() >= ENTRY_BYTES_MAX {
                    return Err(damage(offset, "an entry does not decode"));
                }
                wanted = wanted.saturating_mul(2);
                continue;
            };
            crc = crc32c_append(crc, entries);
            (offset, wanted) = (offset + used as u64, SCAN_BYTES);
        }
        if left > 0 {
            return Err(damage(section.start, "the section has fewer entries than it counts"));
        }
        let stored = window.get(section.end, 4)?.and_then(|bytes| bytes.first_chunk::<4>());
        if stored.map(|stored| u32::from_be_bytes(*stored)) != Some(crc) {
            return Err(damage(section.start, "the section's checksum does not match"));
        }
        Ok(count)
    }
}

impl ReadAhead {
    pub(crate) fn new(file: NamedFile, ahead_bytes_max: usize) -> ReadAhead {
        ReadAhead {
            file,
            start: 0,
            bytes: Vec::new(),
            has_chunks: false,
            ends: Vec::new(),
            ends_passed: 0,
            ahead_bytes: AHEAD_BYTES_MIN.min(ahead_bytes_max),
            ahead_bytes_max,
        }
    }

    /// Makes a window on a file of chunks; every read must begin at a chunk.
    pub(crate) fn of_chunks(file: NamedFile, ahead_bytes_max: usize) -> ReadAhead {
        ReadAhead { has_chunks: true, ..ReadAhead::new(file, ahead_bytes_max) }
    }

    fn for_scan(file: NamedFile) -> ReadAhead {
        ReadAhead { ahead_bytes: SCAN_BYTES, ..ReadAhead::new(file, SCAN_BYTES) }
    }

    /// Drops the bytes that were read ahead; the next read is small again.
    pub(crate) fn rest(&mut self) {
        (self.bytes, self.ends) = (Vec::new(), Vec::new());
        self.ahead_bytes = AHEAD_BYTES_MIN.min(self.ahead_bytes_max);
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.bytes.capacity() + size_of_val(&*self.ends)
    }

    /// Returns whether the storage has checked the chunk at this position. Searches from the last
    /// result on, since mostly the next chunk is asked for, or one soon after it.
    #[inline]
    pub(crate) fn is_checked(&mut self, offset: u64, len: usize) -> bool {
        let Some(start) = offset.checked_sub(self.start) else { return false };
        let end_at = |number: usize| self.ends.get(number).map(|end| u64::from(*end));
        let begins_at = |number: usize| number.checked_sub(1).map_or(Some(0), end_at);
        let mut number = self.ends_passed;
        // A jump back: the search begins again at the first chunk.
        if begins_at(number).is_none_or(|begin| begin > start) {
            number = 0;
        }
        while begins_at(number).is_some_and(|begin| begin < start) {
            number += 1;
        }
        self.ends_passed = number;
        begins_at(number) == Some(start) && end_at(number) == Some(start + len as u64)
    }

    /// Returns exactly `len` bytes; `None` if the file is too short.
    #[inline]
    pub(crate) fn get(&mut self, offset: u64, len: usize) -> StorageResult<Option<&[u8]>> {
        let bytes = self.at_least(offset, len)?;
        Ok(bytes.get(..len))
    }

    /// Returns `len` bytes or more; fewer only at the end of the file.
    #[inline]
    pub(crate) fn at_least(&mut self, offset: u64, len: usize) -> StorageResult<&[u8]> {
        let place = offset.checked_sub(self.start).and_then(|at| usize::try_from(at).ok());
        let in_window =
            place.filter(|at| at.checked_add(len).is_some_and(|end| end <= self.bytes.len()));
        let at = match in_window {
            Some(at) => at,
            None => {
                self.load(offset, len)?;
                0
            }
        };
        Ok(self.bytes.get(at..).unwrap_or_default())
    }

    fn load(&mut self, offset: u64, len: usize) -> StorageResult<()> {
        let window_end = self.start + self.bytes.len() as u64;
        // After a skip longer than a read, reading ahead would mostly read skipped bytes.
        let near = self.start..=window_end.saturating_add(self.ahead_bytes as u64);
        if self.bytes.is_empty() {
            // The first read keeps the initial size.
        } else if near.contains(&offset) {
            self.ahead_bytes = (self.ahead_bytes * 2).min(self.ahead_bytes_max);
        } else {
            self.ahead_bytes = AHEAD_BYTES_MIN.min(self.ahead_bytes_max);
        }
        let left = self.file.size().saturating_sub(offset);
        let len = len.max(self.ahead_bytes).min(usize::try_from(left).unwrap_or(usize::MAX));
        // Freed before the read, so that only one piece is in memory at a time.
        (self.bytes, self.ends) = (Vec::new(), Vec::new());
        if self.has_chunks {
            let ChunkBytes { bytes, ends } =
                self.file.read_chunks(offset, len)?.unwrap_or_default();
            (self.bytes, self.ends, self.ends_passed) = (bytes, ends, 0);
        } else {
            self.bytes = self.file.read(offset, len)?.unwrap_or_default();
        }
        self.start = offset;
        Ok(())
    }
}
