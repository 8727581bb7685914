//! Describes the logs while nothing writes to them: every file with its length, and a checksum of
//! each log's end. A program that writes to a log changes the description, because every run begins
//! a new segment.

use super::segment::{SegmentFile, WalListing};
use crate::DataDir;
use crate::error::{Action, Result};
use crate::fs::{Access, Disk};
use std::fmt::Write as _;
use std::path::Path;

/// Maximum number of bytes at a log's end that are checksummed.
const END_BYTES_MAX: u64 = 64 * 1024;

/// Describes both logs, one file per line. Logs with equal descriptions are equal, as far as that
/// can be known without reading all of both.
pub fn position(data: &DataDir) -> Result<String> {
    let mut text = String::new();
    let disk = data.disk();
    describe(&*disk, &data.wal_path(), "wal", &mut text)?;
    if data.has_out_of_order_wal()? {
        describe(&*disk, &data.out_of_order_wal_path(), "wbl", &mut text)?;
    }
    Ok(text)
}

fn describe(disk: &dyn Disk, dir: &Path, name: &str, text: &mut String) -> Result<()> {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{name}/");
    let listing = WalListing::read(disk, dir)?;
    for checkpoint in &listing.checkpoints {
        let _ = writeln!(text, "{name}/{}/", file_name(&checkpoint.path));
        let inside = WalListing::read(disk, &checkpoint.path)?;
        list(&inside.segments, text);
    }
    list(&listing.segments, text);
    // A replaced last segment of the same length can only be noticed by its content.
    if let Some(last) = listing.segments.iter().rfind(|found| found.size_bytes > 0) {
        let _ = writeln!(text, "ends in {:08x}", end_checksum(disk, last)?);
    }
    Ok(())
}

fn list(segments: &[SegmentFile], text: &mut String) {
    for found in segments {
        let _ = writeln!(text, "{} {}", file_name(&found.path), found.size_bytes);
    }
}

fn file_name(path: &Path) -> std::borrow::Cow<'_, str> {
    path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default()
}

fn end_checksum(disk: &dyn Disk, segment: &SegmentFile) -> Result<u32> {
    let len = segment.size_bytes.min(END_BYTES_MAX);
    let mut end = vec![0; len as usize];
    let file = disk.open(&segment.path, Access::Read);
    let file = file.map_err(Action::Open.failed(&segment.path))?;
    let read = file.read_at(segment.size_bytes - len, &mut end);
    read.map_err(Action::Read.failed(&segment.path))?;
    Ok(crc32c::crc32c(&end))
}
