//! Buffering: appended records can be gathered in memory first, to be written in long pieces.
//!
//! ```text
//! segment  │ written ………………………… │ gathered …… │
//!          0             written_bytes     size_bytes
//! ```
//!
//! Buffering spares flash: the system writes dirty pages to the device after half a minute at the
//! latest, so a page that fills slowly is written again and again.
//!
//! Invariants: a batch is in the file or gathered as a whole. Gathered bytes are dropped only when
//! the file has them; so a failed write is retried at the same offset, over bytes that it may have
//! left. The gathered bytes exceed the limit only by one long batch.

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

/// Reason for which nothing was appended.
pub(super) enum AppendFailure {
    Write {
        /// Whether bytes remain after the end, because cutting the file back failed, too.
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

    /// Number of bytes that exist only in this process's memory.
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
        // A single batch may exceed the limit, because batches are not split.
        self.gathered.extend_from_slice(bytes);
        Ok(())
    }

    /// Writes the gathered bytes. After an error the bytes stay gathered.
    pub fn flush(&mut self) -> io::Result<()> {
        if self.gathered.is_empty() {
            return Ok(());
        }
        let gathered = std::mem::take(&mut self.gathered);
        let written = self.write(&gathered);
        // Put back in both cases: after an error for the bytes, otherwise for the allocation.
        self.gathered = gathered;
        match written {
            Ok(()) => {
                self.gathered.clear();
                // Frees the memory that a single long batch needed.
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

    /// Writes at the end of the file. After an error, cuts the file back to its length; the flag in
    /// the error tells whether that failed as well, so that bytes remain after the end.
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
