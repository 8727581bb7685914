//! Taking records out of a log that is already written: segment by segment, each written anew
//! beside the log and then put in the old one's place.
//!
//! ```text
//! rewrite.tmp/00000000 ──── rename ────▶ 00000003     atomically; the next segment follows
//! ```
//!
//! A crash leaves a log in which some segments still have the records, so whoever asks must be
//! able to live with that, and ask again.

use super::pack::Unpacker;
use super::reader::SegmentReader;
use super::segment::{SegmentFile, WalListing, segment_name};
use super::writer::SegmentWriter;
use super::{Counters, Wal};
use crate::disk::error::{Action, Result};
use crate::disk::fs::{Access, remove_tree};
use std::io;
use std::sync::Arc;

const UNFINISHED_DIR: &str = "rewrite.tmp";

/// Bytes of records that are read before they are written.
const BATCH_BYTES: usize = 1024 * 1024;

impl Wal {
    /// Takes records out of all segments that earlier lives wrote, but not out of checkpoints, and
    /// gives how many. Segments without any stay as they are; from the others damaged places go,
    /// too. To be called after the replay and before the first append.
    pub fn drop_records(&mut self, is_dropped: impl Fn(&[u8]) -> bool) -> Result<u64> {
        self.check_replayed()?;
        let listing = WalListing::read(&*self.disk, &self.dir)?;
        let mut dropped = 0;
        for found in &listing.segments {
            let mut to_drop = 0;
            let records = self.read_segment(found, |records| {
                to_drop += records.iter().filter(|record| is_dropped(record)).count();
                Ok(())
            })?;
            if to_drop > 0 {
                self.rewrite_segment(found, records, &is_dropped).inspect_err(|_| {
                    // The disk may be full, and this takes space. If it stays, the next attempt
                    // removes it.
                    let _ = remove_tree(&*self.disk, &self.dir.join(UNFINISHED_DIR));
                })?;
                dropped += to_drop as u64;
            }
        }
        Ok(dropped)
    }

    fn rewrite_segment(
        &self,
        found: &SegmentFile,
        records_expected: u64,
        is_dropped: &impl Fn(&[u8]) -> bool,
    ) -> Result<()> {
        let dir = self.dir.join(UNFINISHED_DIR);
        remove_tree(&*self.disk, &dir).map_err(Action::Remove.failed(&dir))?;
        self.disk.create_dir(&dir).map_err(Action::Create.failed(&dir))?;
        let mut options = self.options.writer(true, &self.counters);
        // One segment in the place of one, however it was packed.
        options.segment_bytes_max = u64::MAX;
        let mut writer = SegmentWriter::new(Arc::clone(&self.disk), dir.clone(), Some(0), options);
        let records = self.read_segment(found, |mut records| {
            records.retain(|record| !is_dropped(record));
            writer.append(&records).map(drop)
        })?;
        // A device that gives less the second time must not cost what it gave the first time.
        if records != records_expected {
            let differs = io::Error::other(format!("{records} records, of {records_expected}"));
            return Err(Action::Read.failed(&found.path)(differs));
        }
        writer.finish()?;
        let from = dir.join(segment_name(0));
        self.disk.rename(&from, &found.path).map_err(Action::Rename.failed(&from))?;
        self.disk.sync_dir(&self.dir).map_err(Action::Sync.failed(&self.dir))?;
        self.disk.remove_dir(&dir).map_err(Action::Remove.failed(&dir))
    }

    /// Hands over all records of a segment, some at a time, and gives how many there are.
    fn read_segment(
        &self,
        found: &SegmentFile,
        mut take: impl FnMut(Vec<Vec<u8>>) -> Result<()>,
    ) -> Result<u64> {
        let file = self.disk.open(&found.path, Access::Read);
        let file = file.map_err(Action::Open.failed(&found.path))?;
        let size_bytes = file.size().map_err(Action::Open.failed(&found.path))?;
        // The replay has counted what is damaged.
        let counters = Arc::new(Counters::default());
        let mut reader = SegmentReader::new(file, found.path.clone(), size_bytes, counters);
        let mut unpacker = Unpacker::default();
        let mut count = 0;
        loop {
            let (mut records, mut bytes) = (Vec::new(), 0);
            while bytes < BATCH_BYTES
                && let Some(record) = reader.next(&mut unpacker)
            {
                bytes += record.len().max(1);
                records.push(record);
            }
            if records.is_empty() {
                return Ok(count);
            }
            count += records.len() as u64;
            take(records)?;
        }
    }
}
