//! Buffering: records appended to a segment may wait in memory, to be written in long pieces.
//!
//! ```text
//! segment  │ written ………………………… │ gathered …… │
//!          0             written_bytes     size_bytes
//! ```
//!
//! This spares flash: a system writes dirty pages back after half a minute at the latest, so a page
//! that fills slowly is written again and again.
//!
//! Invariants: appended bytes are in the file or gathered, never split; gathered bytes are dropped
//! only when the file has them, so a failed write is retried at the same offset, over any bytes
//! that it left there; the gathered bytes exceed the limit only for a single longer batch.

use crate::fs::DiskFile;
use std::io;
use std::sync::Arc;

/// The end of a segment, to which records are appended.
pub(super) struct SegmentTail {
    file: Arc<dyn DiskFile>,
    written_bytes: u64,
    gathered: Vec<u8>,
    /// Maximum size of `gathered`; 0 turns buffering off.
    gathered_bytes_max: usize,
}

/// Reason for which no byte was appended.
pub(super) enum AppendFailure {
    Write {
        /// Whether some bytes remain after the end, because cutting the file back failed too.
        left_behind: bool,
        source: io::Error,
    },
    /// The buffer is full, and writing the gathered bytes failed.
    Flush(io::Error),
}

impl SegmentTail {
    /// Creates the tail of an empty file.
    pub fn new(file: Arc<dyn DiskFile>, gathered_bytes_max: usize) -> SegmentTail {
        SegmentTail { file, written_bytes: 0, gathered: Vec::new(), gathered_bytes_max }
    }

    /// Length of the segment, gathered bytes included.
    pub fn size_bytes(&self) -> u64 {
        self.written_bytes + self.unwritten_bytes()
    }

    /// Number of bytes written to the file.
    pub fn written_bytes(&self) -> u64 {
        self.written_bytes
    }

    /// Number of bytes that only this process's memory holds.
    pub fn unwritten_bytes(&self) -> u64 {
        self.gathered.len() as u64
    }

    pub fn append(&mut self, bytes: &[u8]) -> Result<(), AppendFailure> {
        if self.gathered_bytes_max == 0 {
            return match self.write(bytes) {
                Ok(()) => Ok(()),
                Err((source, left_behind)) => Err(AppendFailure::Write { left_behind, source }),
            };
        }
        if self.gathered.len() + bytes.len() > self.gathered_bytes_max {
            self.flush().map_err(AppendFailure::Flush)?;
        }
        // May exceed the limit by one long batch, which must not be split.
        self.gathered.extend_from_slice(bytes);
        Ok(())
    }

    /// Writes the gathered bytes. After an error they stay gathered.
    pub fn flush(&mut self) -> io::Result<()> {
        if self.gathered.is_empty() {
            return Ok(());
        }
        let gathered = std::mem::take(&mut self.gathered);
        let written = self.write(&gathered);
        // Put back whether the write failed or not: the bytes, or else the allocation, are needed.
        self.gathered = gathered;
        match written {
            Ok(()) => {
                self.gathered.clear();
                // Frees the room that a single long batch needed.
                self.gathered.shrink_to(self.gathered_bytes_max);
                Ok(())
            }
            Err((source, _)) => Err(source),
        }
    }

    /// Makes written bytes survive a power cut.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// Sets the file's length. Nothing may be gathered, and no append may follow.
    pub fn end_at(&self, size_bytes: u64) -> io::Result<()> {
        debug_assert!(self.gathered.is_empty(), "gathered records must be written first");
        self.file.set_len(size_bytes)
    }

    /// Writes at the end of the file. After an error the file is cut back to its length; the
    /// error's flag tells whether that failed, so that bytes remain after the end.
    fn write(&mut self, bytes: &[u8]) -> Result<(), (io::Error, bool)> {
        match self.file.write_at(self.written_bytes, bytes) {
            Ok(()) => {
                self.written_bytes += bytes.len() as u64;
                Ok(())
            }
            Err(source) => Err((source, self.file.set_len(self.written_bytes).is_err())),
        }
    }
}
