//! Writes a head snapshot at a clean stop, piece by piece and within a time limit.

use super::{
    FILE, HeadSnapshotError, MAGIC, PIECE_BYTES_MAX, RESERVE_BYTES, Result, UNFINISHED_FILE,
    VERSION,
};
use crate::DataDir;
use crate::error::Action;
use crate::fs::DiskFile;
use crate::wal::position;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Number of bytes after which the file is synced, so that a slow device is noticed early.
const SYNC_EVERY_BYTES: u64 = 8 * 1024 * 1024;

/// A head snapshot being written. Dropping it before [`commit`](HeadSnapshotWriter::commit) removes
/// the file.
pub struct HeadSnapshotWriter {
    data: DataDir,
    unfinished: PathBuf,
    file: Arc<dyn DiskFile>,
    bytes: u64,
    synced_bytes: u64,
    /// Checksum over the lengths and checksums that were written so far.
    checksum: u32,
    started: Instant,
    time_max: Duration,
    committed: bool,
}

impl HeadSnapshotWriter {
    /// Begins a snapshot for the present logs, which must be synced and not be written to any more.
    /// [`add`](HeadSnapshotWriter::add) fails once `time_max` has passed.
    pub fn begin(data: &DataDir, time_max: Duration) -> Result<HeadSnapshotWriter> {
        let position = position(data)?;
        // From here on an old snapshot is useless, and its space may be needed.
        data.remove_head_snapshot()?;
        let unfinished = data.path().join(UNFINISHED_FILE);
        let file = data.disk().create(&unfinished).map_err(Action::Create.failed(&unfinished))?;
        let mut writer = HeadSnapshotWriter {
            data: data.clone(),
            unfinished,
            file,
            bytes: 0,
            synced_bytes: 0,
            checksum: 0,
            started: Instant::now(),
            time_max,
            committed: false,
        };
        let mut start = Vec::from(MAGIC);
        start.extend_from_slice(&VERSION.to_le_bytes());
        start.extend_from_slice(&(position.len() as u32).to_le_bytes());
        start.extend_from_slice(position.as_bytes());
        writer.checksum = crc32c::crc32c(&start);
        start.extend_from_slice(&writer.checksum.to_le_bytes());
        writer.write(&start)?;
        Ok(writer)
    }

    /// Appends a piece, which must not be empty.
    pub fn add(&mut self, piece: &[u8]) -> Result<()> {
        if piece.len() > PIECE_BYTES_MAX {
            return Err(HeadSnapshotError::PieceTooLong { bytes: piece.len() });
        }
        // Checked for every piece, since other programs may fill the device meanwhile.
        let free_bytes = self.data.free_bytes()?;
        if free_bytes < RESERVE_BYTES + piece.len() as u64 {
            return Err(HeadSnapshotError::NoRoom { free_bytes });
        }
        self.write_frame(piece.len() as u32, crc32c::crc32c(piece))?;
        self.write(piece)?;
        if self.bytes - self.synced_bytes >= SYNC_EVERY_BYTES {
            self.file.sync_data().map_err(Action::Sync.failed(&self.unfinished))?;
            self.synced_bytes = self.bytes;
        }
        let time = self.started.elapsed();
        if time > self.time_max {
            return Err(HeadSnapshotError::TooSlow { bytes: self.bytes, time });
        }
        Ok(())
    }

    /// Makes the snapshot durable and, atomically, visible; returns its length.
    pub fn commit(mut self) -> Result<u64> {
        self.write_frame(0, self.checksum)?;
        self.file.sync_data().map_err(Action::Sync.failed(&self.unfinished))?;
        let path = self.data.path().join(FILE);
        let renamed = self.data.disk().rename(&self.unfinished, &path);
        renamed.map_err(Action::Rename.failed(&self.unfinished))?;
        // From here on the file has its final name, so dropping the writer must not remove it.
        self.committed = true;
        let dir = self.data.path();
        self.data.disk().sync_dir(dir).map_err(Action::Sync.failed(dir))?;
        Ok(self.bytes)
    }

    fn write_frame(&mut self, len: u32, checksum: u32) -> Result<()> {
        let mut frame = [0; 8];
        let (first, last) = frame.split_at_mut(4);
        first.copy_from_slice(&len.to_le_bytes());
        last.copy_from_slice(&checksum.to_le_bytes());
        self.checksum = crc32c::crc32c_append(self.checksum, &frame);
        self.write(&frame)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let written = self.file.write_at(self.bytes, bytes);
        written.map_err(Action::Write.failed(&self.unfinished))?;
        self.bytes += bytes.len() as u64;
        Ok(())
    }
}

impl Drop for HeadSnapshotWriter {
    fn drop(&mut self) {
        if self.committed {
            return;
        }
        if let Err(error) = self.data.disk().remove_file(&self.unfinished) {
            let path = self.unfinished.display();
            tracing::warn!(%path, %error, "could not delete unfinished files; the next start deletes them");
        }
    }
}
