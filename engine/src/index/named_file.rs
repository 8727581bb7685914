//! Reading one file of a committed block, in pieces of a reasonable size.

use super::{Damage, IndexError};
use crate::codec::{crc32c, crc32c_append};
use crate::storage::{BlockFile, ChunkBytes, StorageError, StorageResult};
use std::rc::Rc;

/// How much is read at once when a section is read from front to back.
const SCAN_BYTES: usize = 64 * 1024;

/// Longest entry of a section that is believed, in bytes.
pub(super) const ENTRY_BYTES_MAX: usize = 16 * 1024 * 1024;

/// First read after a jump: most entries of a series, and most chunks, are shorter.
const AHEAD_BYTES_MIN: usize = 512;

/// A file that can say which it is, for errors.
#[derive(Clone)]
pub(crate) struct NamedFile {
    file: Rc<dyn BlockFile>,
    /// Files of committed blocks do not change. To ask takes a call of the host.
    size: u64,
    block: Rc<str>,
    name: Rc<str>,
}

/// The bytes after a place in a file, read ahead while reads move forward.
///
/// Each read that continues the one before (or skips a little) doubles what is read at once, up
/// to a limit; a jump begins small again. So neighbours cost few calls and a lone look-up little.
pub(crate) struct ReadAhead {
    file: NamedFile,
    start: u64,
    bytes: Vec<u8>,
    /// Whether these are chunks.
    has_chunks: bool,
    /// Where chunks end in these bytes that the storage has checked, and how many of them end
    /// before the one that was asked for last, or where it did.
    ends: Vec<u32>,
    ends_passed: usize,
    ahead_bytes: usize,
    ahead_bytes_max: usize,
}

/// A section as `length u32 │ content │ checksum u32`: where the content lies.
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

    /// The error for wrong bytes at an offset.
    pub(crate) fn damage(&self, offset: u64, what: &'static str) -> Damage {
        Damage { block: Rc::clone(&self.block), file: Rc::clone(&self.name), offset, what }
    }

    /// Exactly `len` bytes, or `None` if the file ends before.
    pub(crate) fn read(&self, offset: u64, len: usize) -> StorageResult<Option<Vec<u8>>> {
        let Some(len) = self.fitting(offset, len) else { return Ok(None) };
        let bytes = self.file.read_at(offset, len)?;
        self.check_len(offset, len, &bytes)?;
        Ok(Some(bytes))
    }

    /// The same of a file of chunks, of which one begins at the offset.
    fn read_chunks(&self, offset: u64, len: usize) -> StorageResult<Option<ChunkBytes>> {
        let Some(len) = self.fitting(offset, len) else { return Ok(None) };
        let read = self.file.read_chunks(offset, len)?;
        self.check_len(offset, len, &read.bytes)?;
        Ok(Some(read))
    }

    /// A length, if the file has so many bytes there.
    fn fitting(&self, offset: u64, len: usize) -> Option<u32> {
        let fits = offset.checked_add(len as u64).is_some_and(|end| end <= self.size());
        u32::try_from(len).ok().filter(|_| fits)
    }

    fn check_len(&self, offset: u64, len: u32, bytes: &[u8]) -> StorageResult<()> {
        if bytes.len() == len as usize {
            return Ok(());
        }
        let NamedFile { block, name, .. } = self;
        let reason = format!("{block}/{name}: {} of {len} bytes at {offset}", bytes.len());
        Err(StorageError::Io { reason })
    }

    /// The summary of the file that was kept, if any.
    pub(super) fn summary(&self) -> Option<Vec<u8>> {
        self.file.summary()
    }

    /// Keeps a summary of the file for the next instance that opens it.
    pub(super) fn keep_summary(&self, summary: &[u8]) {
        self.file.keep_summary(summary);
    }

    /// Finds the ends of a section that begins at `offset`.
    pub(crate) fn section(&self, offset: u64) -> Result<Section, IndexError> {
        let cut_short = || self.damage(offset, "the file ends within this section");
        let len = self.read(offset, 4)?.and_then(|len| len.first_chunk::<4>().copied());
        let len = u64::from(u32::from_be_bytes(len.ok_or_else(cut_short)?));
        let section = Section { start: offset + 4, end: offset + 4 + len };
        if section.end + 4 > self.size() { Err(cut_short().into()) } else { Ok(section) }
    }

    /// Reads a section made of a count and as many entries, checking its checksum.
    ///
    /// `entry` gets an entry's offset within the section's content and the bytes from there, and
    /// says how long the entry is; `None` asks for more bytes. Returns the number of entries.
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
            let in_section = usize::try_from(section.end - offset).unwrap_or(usize::MAX);
            let bytes = bytes.get(..in_section).unwrap_or(bytes);
            let mut used = 0;
            while left > 0
                && let Some(rest) = bytes.get(used..)
            {
                let at = (offset - section.start) as u32 + used as u32;
                let Some(len) = entry(at, rest) else { break };
                used += len;
                left -= 1;
            }
            let Some(entries) = bytes.get(..used).filter(|entries| !entries.is_empty()) else {
                if left == 0 {
                    return Err(damage(offset, "bytes after the section's last entry"));
                }
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

    /// Of a file of chunks: where something is read, a chunk begins.
    pub(crate) fn of_chunks(file: NamedFile, ahead_bytes_max: usize) -> ReadAhead {
        ReadAhead { has_chunks: true, ..ReadAhead::new(file, ahead_bytes_max) }
    }

    /// Reads in large pieces from the first one on.
    fn for_scan(file: NamedFile) -> ReadAhead {
        ReadAhead { ahead_bytes: SCAN_BYTES, ..ReadAhead::new(file, SCAN_BYTES) }
    }

    /// Forgets what was read, and begins small again.
    pub(crate) fn rest(&mut self) {
        (self.bytes, self.ends) = (Vec::new(), Vec::new());
        self.ahead_bytes = AHEAD_BYTES_MIN.min(self.ahead_bytes_max);
    }

    /// Memory of what was read.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.bytes.capacity() + size_of_val(&*self.ends)
    }

    /// Whether the storage has checked the chunk of this place and length. Mostly the next one is
    /// asked for, or one that is not far behind.
    #[inline]
    pub(crate) fn is_checked(&mut self, offset: u64, len: usize) -> bool {
        let Some(start) = offset.checked_sub(self.start) else { return false };
        let end_at = |number: usize| self.ends.get(number).map(|end| u64::from(*end));
        let begins_at = |number: usize| number.checked_sub(1).map_or(Some(0), end_at);
        let mut number = self.ends_passed;
        if begins_at(number).is_none_or(|begin| begin > start) {
            number = 0;
        }
        while begins_at(number).is_some_and(|begin| begin < start) {
            number += 1;
        }
        self.ends_passed = number;
        begins_at(number) == Some(start) && end_at(number) == Some(start + len as u64)
    }

    /// Exactly `len` bytes, or `None` if the file ends before.
    #[inline]
    pub(crate) fn get(&mut self, offset: u64, len: usize) -> StorageResult<Option<&[u8]>> {
        let bytes = self.at_least(offset, len)?;
        Ok(bytes.get(..len))
    }

    /// `len` bytes or more, fewer only where the file ends before.
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
        // Where more is skipped than was read, reading ahead would mostly read what is skipped.
        let near = self.start..=window_end.saturating_add(self.ahead_bytes as u64);
        if self.bytes.is_empty() {
            // The first read: keep the size it was made with.
        } else if near.contains(&offset) {
            self.ahead_bytes = (self.ahead_bytes * 2).min(self.ahead_bytes_max);
        } else {
            self.ahead_bytes = AHEAD_BYTES_MIN.min(self.ahead_bytes_max);
        }
        let left = self.file.size().saturating_sub(offset);
        let len = len.max(self.ahead_bytes).min(usize::try_from(left).unwrap_or(usize::MAX));
        // One piece is in memory at a time.
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
