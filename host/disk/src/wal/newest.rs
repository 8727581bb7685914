//! Reads the newest records of the in-order log, without a replay.

use super::pack::Unpacker;
use super::reader::SegmentReader;
use super::segment::WalListing;
use super::stats::Counters;
use crate::DataDir;
use crate::error::Result;
use crate::fs::Access;
use std::sync::Arc;

/// Searches the segments, newest first, for a record that satisfies `is_sought`; returns the first
/// such record of the segment. It shows which program wrote last, because every run begins a new
/// segment. Reads at most about `bytes_max` of the log. Skips damaged and unreadable parts, which
/// the replay reports.
pub fn newest_record(
    data: &DataDir,
    bytes_max: u64,
    is_sought: impl Fn(&[u8]) -> bool,
) -> Result<Option<Vec<u8>>> {
    let disk = data.disk();
    let (mut unpacker, mut bytes_left) = (Unpacker::default(), bytes_max);
    let WalListing { segments, checkpoints, .. } = WalListing::read(&*disk, &data.wal_path())?;
    // A crash may leave segments that a checkpoint has replaced. Their records are not recent.
    let replaced = checkpoints.last().map(|checkpoint| checkpoint.number);
    let segments = segments.into_iter().filter(|found| Some(found.number) > replaced);
    for found in segments.rev() {
        let Ok(file) = disk.open(&found.path, Access::Read) else { continue };
        // Separate counters, because the replay will count the same damage.
        let counters = Arc::new(Counters::default());
        let mut reader = SegmentReader::new(file, found.path, found.size_bytes, counters);
        while reader.position() < bytes_left {
            match reader.next(&mut unpacker) {
                Some(record) if is_sought(&record) => return Ok(Some(record)),
                Some(_) => {}
                None => break,
            }
        }
        bytes_left = bytes_left.saturating_sub(reader.position());
        if bytes_left == 0 {
            break;
        }
    }
    Ok(None)
}
