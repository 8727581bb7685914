//! Buffering: records that are appended to a segment may wait in memory, to be written in long
//! pieces.
//!
//! ```text
//! segment  │ written ………………………… │ gathered …… │
//!          0             written_bytes     size_bytes
//! ```
//!
//! Flash is spared that way: a system writes dirty pages back after half a minute at the latest,
//! and a page that fills slowly is written again and again.
//!
//! Invariants: what was appended is in the file or gathered, never half of it; gathered bytes are
//! dropped only when the file has them, so a write that fails is tried again at the same place,
//! over whatever it left there; no more is gathered than the limit, but for a single longer batch.

use crate::fs::DiskFile;
use std::io;
use std::sync::Arc;

/// The end of a segment, where records are appended.
pub(super) struct SegmentTail {
    file: Arc<dyn DiskFile>,
    written_bytes: u64,
    gathered: Vec<u8>,
    /// 0 gathers nothing.
    gathered_bytes_max: usize,
}

/// Why bytes could not be appended. None of them were.
pub(super) enum AppendFailure {
    /// They could not be written.
    Write {
        /// Whether some of them lie behind the end, since cutting the file back failed, too.
        left_behind: bool,
        /// The error of the operating system.
        source: io::Error,
    },
    /// There is no room beside what is gathered, which could not be written.
    Flush(io::Error),
}

impl SegmentTail {
    /// The end of an empty file.
    pub fn new(file: Arc<dyn DiskFile>, gathered_bytes_max: usize) -> SegmentTail {
        SegmentTail { file, written_bytes: 0, gathered: Vec::new(), gathered_bytes_max }
    }

    /// Length of the segment with what is gathered.
    pub fn size_bytes(&self) -> u64 {
        self.written_bytes + self.unwritten_bytes()
    }

    /// Bytes that the file has whole.
    pub fn written_bytes(&self) -> u64 {
        self.written_bytes
    }

    /// Bytes that only this process's memory has.
    pub fn unwritten_bytes(&self) -> u64 {
        self.gathered.len() as u64
    }

    /// Appends all bytes, or none.
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
        self.gathered.extend_from_slice(bytes);
        Ok(())
    }

    /// Writes what is gathered. After an error it still is.
    pub fn flush(&mut self) -> io::Result<()> {
        if self.gathered.is_empty() {
            return Ok(());
        }
        let gathered = std::mem::take(&mut self.gathered);
        let written = self.write(&gathered);
        self.gathered = gathered;
        match written {
            Ok(()) => {
                self.gathered.clear();
                // What a single long batch needed is given back.
                self.gathered.shrink_to(self.gathered_bytes_max);
                Ok(())
            }
            Err((source, _)) => Err(source),
        }
    }

    /// Makes what is written survive a power cut.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// Sets the file's length; nothing may be gathered, or appended afterwards.
    pub fn end_at(&self, size_bytes: u64) -> io::Result<()> {
        debug_assert!(self.gathered.is_empty(), "gathered records must be written first");
        self.file.set_len(size_bytes)
    }

    /// Writes at the end of the file. After an error the file is cut back, if that can be done;
    /// otherwise the error says that something was left behind the end.
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
