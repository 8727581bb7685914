//! Reads one segment, record by record, in bounded memory. Damage is skipped up to the next intact
//! record.

use super::format::{FRAME_BYTES, MAGIC, MARKER, PAYLOAD_BYTES_MAX, Record, decode, unframe};
use std::io;
use std::path::Path;
use std::sync::Arc;
use tidepool_disk::fs::{Access, Disk, DiskFile};

/// Bytes that are read at once.
const READ_BYTES: usize = 64 * 1024;
const RECORD_BYTES_MAX: usize = FRAME_BYTES + PAYLOAD_BYTES_MAX;

/// A range of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) offset: u64,
    pub(super) bytes: u64,
}

#[derive(Debug)]
pub(super) enum Piece {
    Record(Record),
    /// No record, and intact ones follow.
    Damage(Place),
    /// No record, and none follows.
    Torn(Place),
    /// The file cannot be read from this offset on.
    Unreadable {
        offset: u64,
        source: io::Error,
    },
}

pub(super) struct Reader {
    file: Arc<dyn DiskFile>,
    /// Where reading ends: in the end at the first byte that cannot be read.
    end: u64,
    unread_bytes: u64,
    /// Offset of the buffer in the file.
    offset: u64,
    buffer: Vec<u8>,
    /// Place in the buffer of what is next.
    at: usize,
    /// Length of the last record, which ends there.
    record_bytes: usize,
    failure: Option<io::Error>,
}

impl Reader {
    /// Reads up to `end`, or to where the file ends now.
    pub(super) fn open(disk: &dyn Disk, path: &Path, end: Option<u64>) -> io::Result<Reader> {
        let file = disk.open(path, Access::Read)?;
        let size_bytes = file.size()?;
        let end = end.map_or(size_bytes, |end| end.min(size_bytes));
        let (buffer, failure, unread_bytes) = (Vec::new(), None, 0);
        let mut reader =
            Reader { file, end, unread_bytes, offset: 0, buffer, at: 0, record_bytes: 0, failure };
        reader.fill();
        if reader.buffer.starts_with(MAGIC) {
            reader.at = MAGIC.len();
        }
        Ok(reader)
    }

    pub(super) fn next(&mut self) -> Option<Piece> {
        let begin = self.position();
        loop {
            self.fill();
            let rest = &self.buffer[self.at..];
            let place = Place { offset: begin, bytes: self.position() - begin };
            if rest.is_empty() {
                if let Some(source) = self.failure.take() {
                    // Torn bytes before it are a part of what cannot be read.
                    return Some(Piece::Unreadable { offset: begin, source });
                }
                return (place.bytes > 0).then_some(Piece::Torn(place));
            }
            if let Some(payload) = unframe(rest) {
                if place.bytes > 0 {
                    return Some(Piece::Damage(place));
                }
                let decoded = decode(payload);
                self.record_bytes = FRAME_BYTES + payload.len();
                self.at += self.record_bytes;
                let place = Place { offset: begin, bytes: self.record_bytes as u64 };
                return Some(decoded.map_or(Piece::Damage(place), Piece::Record));
            }
            self.at += to_next_marker(rest);
        }
    }

    /// The bytes of the record that was read last.
    pub(super) fn record(&self) -> &[u8] {
        &self.buffer[self.at - self.record_bytes..self.at]
    }

    /// Offset of what is next.
    pub(super) fn position(&self) -> u64 {
        self.offset + self.at as u64
    }

    /// Number of bytes that could not be read.
    pub(super) fn unread_bytes(&self) -> u64 {
        self.unread_bytes
    }

    /// Makes the longest record available, or all there is.
    fn fill(&mut self) {
        while self.buffer.len() - self.at < RECORD_BYTES_MAX && self.failure.is_none() {
            let from = self.offset + self.buffer.len() as u64;
            let length = self.end.saturating_sub(from).min(READ_BYTES as u64) as usize;
            if length == 0 {
                return;
            }
            // Only now, so that `record` has its bytes until the next call, and seldom.
            if self.at >= RECORD_BYTES_MAX {
                self.buffer.drain(..self.at);
                self.offset += self.at as u64;
                self.at = 0;
            }
            let old = self.buffer.len();
            self.buffer.resize(old + length, 0);
            if let Err(error) = self.file.read_at(from, &mut self.buffer[old..]) {
                self.buffer.truncate(old);
                self.failure = Some(error);
                (self.unread_bytes, self.end) = (self.end - from, from);
            }
        }
    }
}

/// Number of bytes up to the next marker behind the first byte, or to where one may begin.
fn to_next_marker(bytes: &[u8]) -> usize {
    match bytes[1..].windows(MARKER.len()).position(|window| window == MARKER) {
        Some(at) => at + 1,
        // The bytes are fewer than a record can have only where the file ends.
        None if bytes.len() < RECORD_BYTES_MAX => bytes.len(),
        None => bytes.len() - (MARKER.len() - 1),
    }
}
