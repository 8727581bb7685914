//! Reads a head snapshot: checks that the logs have not changed since, then returns its pieces.

use super::{HeadSnapshotError, MAGIC, PIECE_BYTES_MAX, Result, VERSION};
use crate::DataDir;
use crate::error::Action;
use crate::fs::{Access, DiskFile};
use crate::wal::position;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// Bytes before the position: magic, version and length of the position.
const START_BYTES: u64 = 16;

/// A head snapshot that matches the present logs.
pub struct HeadSnapshot {
    path: PathBuf,
    file: Arc<dyn DiskFile>,
    size_bytes: u64,
    /// Offset of the next piece.
    offset: u64,
    /// Checksum over the lengths and checksums that were read so far.
    checksum: u32,
}

impl HeadSnapshot {
    /// Opens the directory's head snapshot, if it exists. Returns an error if it cannot be used.
    pub fn open(data: &DataDir) -> Result<Option<HeadSnapshot>> {
        let path = data.head_snapshot_path();
        let file = match data.disk().open(&path, Access::Read) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(Action::Open.failed(&path))?,
        };
        let size_bytes = file.size().map_err(Action::Open.failed(&path))?;
        let mut snapshot = HeadSnapshot { path, file, size_bytes, offset: 0, checksum: 0 };
        let written_at = snapshot.read_start()?;
        // Prometheus makes its caches first, so the logs may be as before although it has run.
        if data.has_head_caches()? {
            return Err(HeadSnapshotError::OtherCaches);
        }
        if written_at != position(data)?.as_bytes() {
            return Err(HeadSnapshotError::OtherLogs);
        }
        Ok(Some(snapshot))
    }

    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// Replaces the buffer's content by the next piece, and returns whether there was a piece. At
    /// the end of the file, all pieces are known to be undamaged.
    pub fn next(&mut self, piece: &mut Vec<u8>) -> Result<bool> {
        let at = self.offset;
        let mut frame = [0; 8];
        self.read(&mut frame)?;
        let (len, checksum) = (word(&frame, 0), word(&frame, 4));
        if len == 0 {
            // The file must end here: bytes after the end marker are damage.
            return match checksum == self.checksum && self.offset == self.size_bytes {
                true => Ok(false),
                false => Err(HeadSnapshotError::Damaged {
                    offset: at,
                    reason: "its end marker does not match",
                }),
            };
        }
        self.checksum = crc32c::crc32c_append(self.checksum, &frame);
        // Checked before the buffer grows, because a damaged length can have any value.
        let too_long = len as usize > PIECE_BYTES_MAX;
        if too_long || u64::from(len) > self.size_bytes - self.offset {
            return Err(HeadSnapshotError::Damaged { offset: at, reason: "a piece is too long" });
        }
        piece.resize(len as usize, 0);
        self.read(piece)?;
        match crc32c::crc32c(piece) == checksum {
            true => Ok(true),
            false => Err(HeadSnapshotError::Damaged { offset: at, reason: "a checksum is wrong" }),
        }
    }

    /// Reads the head of the file, and returns the description of the logs in it.
    fn read_start(&mut self) -> Result<Vec<u8>> {
        let damaged = |reason| HeadSnapshotError::Damaged { offset: 0, reason };
        let mut start = vec![0; START_BYTES as usize];
        self.read(&mut start)?;
        if !start.starts_with(MAGIC) {
            return Err(damaged("its magic number is wrong"));
        }
        let (version, len) = (word(&start, 8), word(&start, 12));
        if version != VERSION {
            return Err(HeadSnapshotError::Version { version });
        }
        if u64::from(len) > self.size_bytes - self.offset {
            return Err(damaged("it is cut short"));
        }
        start.resize(start.len() + len as usize, 0);
        self.read(&mut start[START_BYTES as usize..])?;
        let mut checksum = [0; 4];
        self.read(&mut checksum)?;
        self.checksum = crc32c::crc32c(&start);
        if self.checksum != word(&checksum, 0) {
            return Err(damaged("a checksum is wrong"));
        }
        Ok(start.split_off(START_BYTES as usize))
    }

    fn read(&mut self, out: &mut [u8]) -> Result<()> {
        if out.len() as u64 > self.size_bytes - self.offset {
            let reason = "it is cut short";
            return Err(HeadSnapshotError::Damaged { offset: self.offset, reason });
        }
        let read = self.file.read_at(self.offset, out);
        read.map_err(Action::Read.failed(&self.path))?;
        self.offset += out.len() as u64;
        Ok(())
    }
}

/// Reads a little-endian `u32` at an offset; returns 0 beyond the end.
fn word(bytes: &[u8], at: usize) -> u32 {
    let word = bytes.get(at..).and_then(<[u8]>::first_chunk::<4>);
    word.map_or(0, |word| u32::from_le_bytes(*word))
}
