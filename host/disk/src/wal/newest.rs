//! A look at the newest records of the in-order log, without replaying it.

use super::pack::Unpacker;
use super::reader::SegmentReader;
use super::segment::WalListing;
use super::stats::Counters;
use crate::DataDir;
use crate::error::Result;
use crate::fs::Access;
use std::sync::Arc;

/// The first record that is sought, of the newest segment that has one. Every run of a program
/// begins a segment of its own, so that record tells who wrote last. At most about `bytes_max` of
/// the log are read; damage and what cannot be read are passed over: the replay reports them.
pub fn newest_record(
    data: &DataDir,
    bytes_max: u64,
    is_sought: impl Fn(&[u8]) -> bool,
) -> Result<Option<Vec<u8>>> {
    let disk = data.disk();
    let (mut unpacker, mut bytes_left) = (Unpacker::default(), bytes_max);
    let WalListing { segments, checkpoints, .. } = WalListing::read(&*disk, &data.wal_path())?;
    // What a checkpoint has replaced may be there in part, after a crash: it tells nothing.
    let replaced = checkpoints.last().map(|checkpoint| checkpoint.number);
    let segments = segments.into_iter().filter(|found| Some(found.number) > replaced);
    for found in segments.rev() {
        let Ok(file) = disk.open(&found.path, Access::Read) else { continue };
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
