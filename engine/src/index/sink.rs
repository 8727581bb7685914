//! Buffered writing to one file of a new block.
//!
//! Bytes go to a buffer; the caller regularly calls [`FileSink::flush_full`], so that the storage
//! gets few large writes and memory stays bounded. The checksum of a section is computed over the
//! whole buffer instead of for each piece.

use super::IndexError;
use crate::codec::crc32c_append;
use crate::storage::{BlockWriter, StorageResult};

/// Number of buffered bytes at which the buffer is written out.
const FLUSH_BYTES: usize = 128 * 1024;

/// One file, written from front to back.
pub(crate) struct FileSink {
    file: String,
    /// Number of bytes that the storage already has.
    flushed: u64,
    buffer: Vec<u8>,
    /// Start of the open section's content.
    section_start: u64,
    /// Checksum of the open section's content up to `buffer[summed..]`.
    section_crc: u32,
    summed: usize,
}

impl FileSink {
    pub(crate) fn new(file: String) -> FileSink {
        // Callers flush between entries, so the buffer grows past the limit by one entry.
        let buffer = Vec::with_capacity(FLUSH_BYTES + FLUSH_BYTES / 8);
        FileSink { file, flushed: 0, buffer, section_start: 0, section_crc: 0, summed: 0 }
    }

    /// Length of the file so far.
    pub(crate) fn position(&self) -> u64 {
        self.flushed + self.buffer.len() as u64
    }

    pub(crate) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    pub(crate) fn put(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    pub(crate) fn put_u32(&mut self, value: u32) {
        self.put(&value.to_be_bytes());
    }

    /// Fills up with zeros to a multiple of `align` bytes.
    pub(crate) fn pad_to(&mut self, align: u64) {
        let missing = self.position().next_multiple_of(align) - self.position();
        self.buffer.resize(self.buffer.len() + missing as usize, 0);
    }

    /// Leaves a hole, so that the next bytes lie far into the file.
    #[cfg(test)]
    pub(crate) fn skip(&mut self, bytes: u64, out: &mut dyn BlockWriter) -> StorageResult<()> {
        self.flush(out)?;
        self.flushed += bytes;
        Ok(())
    }

    /// Begins `length u32 │ content │ checksum u32`.
    pub(crate) fn begin_section(&mut self) {
        self.put_u32(0);
        self.section_start = self.position();
        (self.section_crc, self.summed) = (0, self.buffer.len());
    }

    /// Ends the open section: fills in its length, and appends its checksum.
    pub(crate) fn end_section(
        &mut self,
        out: &mut dyn BlockWriter,
        what: &'static str,
    ) -> Result<(), IndexError> {
        let bytes = self.position() - self.section_start;
        let bytes_max = u64::from(u32::MAX);
        let len = u32::try_from(bytes)
            .map_err(|_| IndexError::TooLarge { what, bytes, bytes_max })?
            .to_be_bytes();
        // Computed first, since the checksum does not include itself.
        self.sum();
        self.put_u32(self.section_crc);
        let len_at = self.section_start - len.len() as u64;
        let in_buffer = len_at.checked_sub(self.flushed).and_then(|at| usize::try_from(at).ok());
        match in_buffer.and_then(|at| self.buffer.get_mut(at..at + len.len())) {
            Some(place) => place.copy_from_slice(&len),
            None => {
                // The length may be partly in the buffer, so the buffer is written before it.
                self.flush(out)?;
                out.write_at(&self.file, len_at, &len)?;
            }
        }
        Ok(())
    }

    #[inline]
    pub(crate) fn flush_full(&mut self, out: &mut dyn BlockWriter) -> StorageResult<()> {
        if self.buffer.len() < FLUSH_BYTES { Ok(()) } else { self.flush(out) }
    }

    pub(crate) fn flush(&mut self, out: &mut dyn BlockWriter) -> StorageResult<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        // The checksum must include these bytes before the buffer is cleared.
        self.sum();
        out.write_at(&self.file, self.flushed, &self.buffer)?;
        self.flushed += self.buffer.len() as u64;
        self.buffer.clear();
        self.summed = 0;
        Ok(())
    }

    fn sum(&mut self) {
        let unsummed = self.buffer.get(self.summed..).unwrap_or_default();
        self.section_crc = crc32c_append(self.section_crc, unsummed);
        self.summed = self.buffer.len();
    }
}
