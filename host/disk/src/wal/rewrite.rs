//! Removes records from a log that is already written. Each segment is rewritten next to the log,
//! and the new file then replaces the old one.
//!
//! ```text
//! rewrite.tmp/00000000 ──── rename ────▶ 00000003     atomically, one segment after the other
//! ```
//!
//! A crash leaves records in some segments, so the caller must tolerate that and call again.

use super::pack::Unpacker;
use super::reader::SegmentReader;
use super::segment::{SegmentFile, WalListing, segment_name};
use super::writer::SegmentWriter;
use super::{Counters, Wal};
use crate::error::{Action, Result};
use crate::fs::{Access, Disk, remove_tree};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const UNFINISHED_DIR: &str = "rewrite.tmp";

/// Removes an unfinished rewrite that a crash left.
pub(super) fn sweep(disk: &dyn Disk, dir: &Path) {
    let unfinished = dir.join(UNFINISHED_DIR);
    if let Err(error) = remove_tree(disk, &unfinished) {
        let path = unfinished.display();
        tracing::warn!(%path, %error, "could not remove unfinished files of an earlier run");
    }
}

/// Approximate size of the batches in which records are copied.
const BATCH_BYTES: usize = 1024 * 1024;

impl Wal {
    /// Removes records from all segments of earlier runs, but not from checkpoints, and returns the
    /// number of removed records. Segments without such records are not rewritten; a damaged
    /// segment is quarantined first. Must be called after the replay and before the first append.
    pub fn drop_records(&mut self, is_dropped: impl Fn(&[u8]) -> bool) -> Result<u64> {
        self.check_replayed()?;
        let listing = WalListing::read(&*self.disk, &self.dir)?;
        let mut dropped = 0;
        for found in &listing.segments {
            // The first pass only counts: rewriting every segment would wear out the flash.
            let mut to_drop = 0;
            let records = self.read_segment(found, |records| {
                to_drop += records.iter().filter(|record| is_dropped(record)).count();
                Ok(())
            })?;
            if to_drop > 0 {
                let keep = self.removal.is_damaged(&found.path);
                self.replace_segment(found, records, &is_dropped, keep)?;
                dropped += to_drop as u64;
            }
        }
        Ok(dropped)
    }

    /// Rewrites a segment without the records to drop. With `keep`, quarantines the old segment
    /// first and returns its path in the quarantine.
    pub(super) fn replace_segment(
        &self,
        found: &SegmentFile,
        records_expected: u64,
        is_dropped: &impl Fn(&[u8]) -> bool,
        keep: bool,
    ) -> Result<Option<PathBuf>> {
        let dir = self.dir.join(UNFINISHED_DIR);
        let replaced = self.write_anew(&dir, found, records_expected, is_dropped).and_then(|()| {
            // Before the rename, which would remove the only name of the damaged file.
            let kept = if keep { self.removal.quarantine.keep_segment(&found.path)? } else { None };
            let from = dir.join(segment_name(0));
            self.disk.rename(&from, &found.path).map_err(Action::Rename.failed(&from))?;
            let parent = found.path.parent().unwrap_or(&self.dir);
            self.disk.sync_dir(parent).map_err(Action::Sync.failed(parent))?;
            Ok(kept)
        });
        // Removed now, since its space may be needed; otherwise the next rewrite removes it.
        if let Err(error) = remove_tree(&*self.disk, &dir) {
            tracing::debug!(
                path = %dir.display(), %error,
                "could not remove unfinished files; the next rewrite removes them"
            );
        }
        replaced
    }

    fn write_anew(
        &self,
        dir: &Path,
        found: &SegmentFile,
        records_expected: u64,
        is_dropped: &impl Fn(&[u8]) -> bool,
    ) -> Result<()> {
        remove_tree(&*self.disk, dir).map_err(Action::Remove.failed(dir))?;
        self.disk.create_dir(dir).map_err(Action::Create.failed(dir))?;
        let mut options = self.options.writer(true, &self.counters);
        // One new segment for one old segment, even if other compression makes it longer.
        options.segment_bytes_max = u64::MAX;
        let mut writer =
            SegmentWriter::new(Arc::clone(&self.disk), dir.to_owned(), Some(0), options);
        let records = self.read_segment(found, |mut records| {
            records.retain(|record| !is_dropped(record));
            writer.append(&records).map(drop)
        })?;
        // If the device returns fewer records than expected, the old file must stay.
        if records != records_expected {
            let differs = io::Error::other(format!("{records} records, of {records_expected}"));
            return Err(Action::Read.failed(&found.path)(differs));
        }
        writer.finish()
    }

    /// Passes all records of a segment to `take`, in batches, and returns their number.
    fn read_segment(
        &self,
        found: &SegmentFile,
        mut take: impl FnMut(Vec<Vec<u8>>) -> Result<()>,
    ) -> Result<u64> {
        let file = self.disk.open(&found.path, Access::Read);
        let file = file.map_err(Action::Open.failed(&found.path))?;
        let size_bytes = file.size().map_err(Action::Open.failed(&found.path))?;
        // Separate counters, because the replay has already counted the damage.
        let counters = Arc::new(Counters::default());
        let mut reader = SegmentReader::new(file, found.path.clone(), size_bytes, counters);
        let mut unpacker = Unpacker::default();
        let mut count = 0;
        loop {
            let (mut records, mut bytes) = (Vec::new(), 0);
            while bytes < BATCH_BYTES
                && let Some(record) = reader.next(&mut unpacker)
            {
                // At least 1, so that a batch of empty records ends, too.
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
