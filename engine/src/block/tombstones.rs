//! `tombstones`: time ranges of series that were deleted since the block was written.
//!
//! ```text
//! ┌────────────┬───┬────────────────────────────────────────────────────────┬───────┐
//! │ 0x0130BA30 │ 1 │ (series ref uvarint │ start varint │ end varint) × n   │ CRC32 │
//! └────────────┴───┴────────────────────────────────────────────────────────┴───────┘
//! ```
//!
//! Times are milliseconds, both ends inclusive. The checksum (big-endian, Castagnoli) covers the
//! bytes between version and checksum, as Prometheus' code computes it; its `tombstones.md`
//! also mentions an offset at the end, which does not exist.

use super::BlockError;
use crate::codec::{crc32c, put_uvarint, put_varint, split_uvarint, split_varint};
use crate::index::{NamedFile, SeriesRef};
use crate::model::TimeRange;
use crate::storage::{Blocks, StorageError};
use std::collections::BTreeMap;
use tidepool_model::sort;

/// Name of the file inside a block.
pub const TOMBSTONES_FILE: &str = "tombstones";

const MAGIC: u32 = 0x0130_ba30;
const VERSION: u8 = 1;

/// Bytes of magic number and version.
const HEADER_BYTES: usize = 5;

/// Largest file that is read or written, in bytes.
pub const TOMBSTONES_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Deleted time ranges of a block's series.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tombstones {
    ranges: BTreeMap<SeriesRef, Vec<TimeRange>>,
}

impl Tombstones {
    /// Reads the tombstones of a block; a block without the file has no deletions.
    pub fn read(blocks: &dyn Blocks, block: &str) -> Result<Tombstones, BlockError> {
        let file = match blocks.open(block, TOMBSTONES_FILE) {
            Ok(file) => NamedFile::new(file, block, TOMBSTONES_FILE),
            Err(StorageError::NotFound { .. }) => return Ok(Tombstones::default()),
            Err(error) => return Err(error.into()),
        };
        let damage = |offset, what| BlockError::from(file.damage(offset, what));
        // Bounded before the read, so that no file asks for unlimited memory.
        let len = usize::try_from(file.size()).ok().filter(|len| *len <= TOMBSTONES_BYTES_MAX);
        let len = len.ok_or_else(|| damage(0, "the file is too long for tombstones"))?;
        let bytes = file.read(0, len)?.unwrap_or_default();
        let version = match bytes.split_first_chunk::<4>() {
            Some((magic, [version, ..])) if *magic == MAGIC.to_be_bytes() => *version,
            _ => return Err(damage(0, "this is not a file of tombstones")),
        };
        if version != VERSION {
            let (block, file) = (block.to_owned(), TOMBSTONES_FILE.to_owned());
            return Err(BlockError::UnsupportedVersion { block, file, version: version.into() });
        }
        let content = bytes.get(HEADER_BYTES..).and_then(<[u8]>::split_last_chunk::<4>);
        let (mut rest, crc) = content.ok_or_else(|| damage(0, "the file is too short"))?;
        if *crc != crc32c(rest).to_be_bytes() {
            return Err(damage(0, "the checksum of the tombstones does not match"));
        }
        let mut tombstones = Tombstones::default();
        while !rest.is_empty() {
            let offset = (len - crc.len() - rest.len()) as u64;
            let (series, range, after) = split_tombstone(rest)
                .ok_or_else(|| damage(offset, "a tombstone does not decode"))?;
            tombstones.ranges.entry(series).or_default().push(range);
            rest = after;
        }
        // Other writers may leave ranges unsorted or overlapping.
        for ranges in tombstones.ranges.values_mut() {
            join_overlapping(ranges);
        }
        Ok(tombstones)
    }

    /// Adds a deleted range of a series.
    pub fn add(&mut self, series: SeriesRef, range: TimeRange) {
        let ranges = self.ranges.entry(series).or_default();
        ranges.push(range);
        join_overlapping(ranges);
    }

    /// Encodes the content of the file.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_be_bytes().to_vec();
        bytes.push(VERSION);
        // Always sorted by series and time, so that equal tombstones have equal checksums.
        for (series, range) in self.iter() {
            put_uvarint(&mut bytes, u64::from(series.0));
            put_varint(&mut bytes, range.start_ms);
            put_varint(&mut bytes, range.end_ms);
        }
        let crc = crc32c(bytes.get(HEADER_BYTES..).unwrap_or_default());
        bytes.extend_from_slice(&crc.to_be_bytes());
        bytes
    }

    /// Checksum of the bytes of [`Tombstones::encode`], whoever wrote the file in whatever order.
    pub fn checksum(&self) -> u32 {
        self.encode().last_chunk().copied().map_or(0, u32::from_be_bytes)
    }

    /// Returns all deleted ranges by series, ascending and not overlapping.
    pub fn iter(&self) -> impl Iterator<Item = (SeriesRef, TimeRange)> + '_ {
        let ranges = self.ranges.iter();
        ranges.flat_map(|(series, ranges)| ranges.iter().map(|range| (*series, *range)))
    }

    /// Returns the deleted ranges of a series, ascending and not overlapping.
    pub fn deleted_ranges(&self, series: SeriesRef) -> &[TimeRange] {
        self.ranges.get(&series).map_or(&[], Vec::as_slice)
    }

    /// Approximate memory use in bytes.
    pub fn memory_bytes(&self) -> usize {
        let ranges = self.ranges.values().map(|ranges| size_of_val(ranges.as_slice()));
        ranges.map(|bytes| bytes + size_of::<(SeriesRef, Vec<TimeRange>)>()).sum()
    }

    /// Returns whether nothing was deleted in the block.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Number of deleted ranges, counted per series.
    pub fn count(&self) -> u64 {
        self.ranges.values().map(|ranges| ranges.len() as u64).sum()
    }
}

fn split_tombstone(bytes: &[u8]) -> Option<(SeriesRef, TimeRange, &[u8])> {
    let (series, rest) = split_uvarint(bytes)?;
    let (start_ms, rest) = split_varint(rest)?;
    let (end_ms, rest) = split_varint(rest)?;
    Some((SeriesRef(u32::try_from(series).ok()?), TimeRange { start_ms, end_ms }, rest))
}

/// Sorts ranges, joins those that overlap or touch, and drops empty ones.
fn join_overlapping(ranges: &mut Vec<TimeRange>) {
    ranges.retain(|range| range.start_ms <= range.end_ms);
    sort::sort_by_key(ranges, |range| range.start_ms);
    ranges.dedup_by(|next, before| {
        // A range may end at `i64::MAX`, as after a deletion without an end, so the sum saturates.
        let touches = next.start_ms <= before.end_ms.saturating_add(1);
        if touches {
            before.end_ms = before.end_ms.max(next.end_ms);
        }
        touches
    });
}
