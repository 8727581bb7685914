//! Tombstones (type 3), exemplars (4), markers of memory-mapped chunks (5) and metadata (6).
//!
//! ```text
//! ┌────────┬────────────────────────────────────────────────────┐
//! │ type 3 │ ( ref u64 │ first ms varint │ last ms varint )…    │
//! ├────────┼─────────┬────────┬─────────────────────────────────┴─────────────────────┐
//! │ type 4 │ ref u64 │ ts i64 │ ( Δref varint │ Δts varint │ value 8B │ labels )…     │
//! ├────────┼─────────┴────────┴───────────────┬───────────────────────────────────────┘
//! │ type 5 │ ( ref u64 │ chunk position u64 )…│
//! ├────────┼──────────────────────────────────┴───────────────────────────────────────┐
//! │ type 6 │ ( ref uvarint │ kind 1B │ n uvarint │ ( len, name │ len, text ) × n )…    │
//! └────────┴──────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! Labels are those of a series record. Of metadata's fields `UNIT` and `HELP` are upstream's, and
//! `FAMILY` is ours: upstream passes over fields it does not know, as we do. Markers stand only in
//! the out-of-order log, and say that samples of a series up to there are in a file of chunks.

use super::decode::{LabelPairs, RecordError, split_be_u64, split_labels, split_string};
use super::encode::put_labels;
use super::samples_v2::RowHeads;
use super::{EXEMPLARS, METADATA, MMAP_MARKERS, TOMBSTONES};
use crate::codec::{put_uvarint, put_varint, split_uvarint, split_varint};
use crate::model::TimeRange;

const UNIT: &str = "UNIT";
const HELP: &str = "HELP";
const FAMILY: &str = "FAMILY";

/// A span of time that was deleted from a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TombstoneRecord {
    /// The series' number.
    pub series_ref: u64,
    /// Both ends included.
    pub range: TimeRange,
}

/// One exemplar of a record.
#[derive(Clone, Debug)]
pub struct ExemplarRecord<'a> {
    /// The number of the series that it belongs to.
    pub series_ref: u64,
    /// Milliseconds since the Unix epoch.
    pub timestamp_ms: i64,
    /// The observed value.
    pub value: f64,
    /// Its own labels.
    pub labels: LabelPairs<'a>,
}

/// Marks what a file of chunks holds of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MmapMarkerRecord {
    /// The series' number.
    pub series_ref: u64,
    /// File number in the high half, position in the low half.
    pub chunk_position: u64,
}

/// The metadata of a series' metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetadataRecord<'a> {
    /// The series' number.
    pub series_ref: u64,
    /// 0 unknown, 1 counter, 2 gauge, 3 histogram, 4 gauge histogram, 5 summary, 6 info,
    /// 7 stateset.
    pub kind: u8,
    /// Its unit.
    pub unit: &'a str,
    /// Its description.
    pub help: &'a str,
    /// The metric family; empty if the record does not say.
    pub family: &'a str,
}

/// Iterates over the rows of a record whose rows need no more than their own bytes.
pub struct Rows<'a, R> {
    record: &'a [u8],
    rest: &'a [u8],
    split: SplitRow<'a, R>,
}

/// Takes a row off the front.
type SplitRow<'a, R> = fn(&'a [u8]) -> Option<(R, &'a [u8])>;

/// Iterates over the exemplars of a record.
pub struct ExemplarRecords<'a> {
    record: &'a [u8],
    rest: &'a [u8],
    heads: RowHeads,
}

/// A record of tombstones.
pub fn tombstones_record(tombstones: impl IntoIterator<Item = TombstoneRecord>) -> Vec<u8> {
    let mut record = vec![TOMBSTONES];
    for TombstoneRecord { series_ref, range } in tombstones {
        record.extend_from_slice(&series_ref.to_be_bytes());
        put_varint(&mut record, range.start_ms);
        put_varint(&mut record, range.end_ms);
    }
    record
}

/// A record of exemplars that starts at this reference and time.
pub fn exemplars_record(first_ref: u64, first_timestamp_ms: i64) -> Vec<u8> {
    let mut record = vec![EXEMPLARS];
    record.extend_from_slice(&first_ref.to_be_bytes());
    record.extend_from_slice(&first_timestamp_ms.to_be_bytes());
    record
}

/// Adds an exemplar to a record that [`exemplars_record`] began with the same `first` values.
pub fn put_exemplar(record: &mut Vec<u8>, first: (u64, i64), exemplar: &ExemplarRecord<'_>) {
    put_varint(record, exemplar.series_ref.wrapping_sub(first.0) as i64);
    put_varint(record, exemplar.timestamp_ms.wrapping_sub(first.1));
    record.extend_from_slice(&exemplar.value.to_bits().to_be_bytes());
    put_labels(record, exemplar.labels.len(), exemplar.labels.iter().copied());
}

/// A record of markers.
pub fn mmap_markers_record(markers: impl IntoIterator<Item = MmapMarkerRecord>) -> Vec<u8> {
    let mut record = vec![MMAP_MARKERS];
    for MmapMarkerRecord { series_ref, chunk_position } in markers {
        record.extend_from_slice(&series_ref.to_be_bytes());
        record.extend_from_slice(&chunk_position.to_be_bytes());
    }
    record
}

/// An empty record of metadata, for [`put_metadata`].
pub fn metadata_record() -> Vec<u8> {
    vec![METADATA]
}

/// Adds a series' metadata to a record.
pub fn put_metadata(record: &mut Vec<u8>, metadata: &MetadataRecord<'_>) {
    put_uvarint(record, metadata.series_ref);
    record.push(metadata.kind);
    let fields = [(UNIT, metadata.unit), (HELP, metadata.help), (FAMILY, metadata.family)];
    let count = if metadata.family.is_empty() { 2 } else { 3 };
    put_labels(record, count, fields.into_iter().take(count));
}

pub(super) fn tombstones<'a>(record: &'a [u8], rest: &'a [u8]) -> Rows<'a, TombstoneRecord> {
    Rows { record, rest, split: split_tombstone }
}

pub(super) fn mmap_markers<'a>(record: &'a [u8], rest: &'a [u8]) -> Rows<'a, MmapMarkerRecord> {
    Rows { record, rest, split: split_mmap_marker }
}

pub(super) fn metadata<'a>(record: &'a [u8], rest: &'a [u8]) -> Rows<'a, MetadataRecord<'a>> {
    Rows { record, rest, split: split_metadata }
}

impl<'a> ExemplarRecords<'a> {
    pub(super) fn new(record: &'a [u8], rest: &'a [u8], heads: RowHeads) -> ExemplarRecords<'a> {
        ExemplarRecords { record, rest, heads }
    }

    fn split_row(&mut self) -> Option<ExemplarRecord<'a>> {
        let ((series_ref, timestamp_ms), rest) = self.heads.split(self.rest)?;
        let (bits, rest) = split_be_u64(rest)?;
        let (labels, rest) = split_labels(rest)?;
        self.rest = rest;
        Some(ExemplarRecord { series_ref, timestamp_ms, value: f64::from_bits(bits), labels })
    }
}

impl<'a> Iterator for ExemplarRecords<'a> {
    type Item = Result<ExemplarRecord<'a>, RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let row = self.split_row();
        Some(row.ok_or_else(|| RecordError::at(self.record, &mut self.rest)))
    }
}

impl<R> Iterator for Rows<'_, R> {
    type Item = Result<R, RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        Some(match (self.split)(self.rest) {
            Some((row, rest)) => {
                self.rest = rest;
                Ok(row)
            }
            None => Err(RecordError::at(self.record, &mut self.rest)),
        })
    }
}

impl PartialEq for ExemplarRecord<'_> {
    /// Values are compared by their bits, so that NaN equals itself.
    fn eq(&self, other: &Self) -> bool {
        (self.series_ref, self.timestamp_ms) == (other.series_ref, other.timestamp_ms)
            && self.value.to_bits() == other.value.to_bits()
            && self.labels == other.labels
    }
}

fn split_tombstone(bytes: &[u8]) -> Option<(TombstoneRecord, &[u8])> {
    let (series_ref, rest) = split_be_u64(bytes)?;
    let (start_ms, rest) = split_varint(rest)?;
    let (end_ms, rest) = split_varint(rest)?;
    Some((TombstoneRecord { series_ref, range: TimeRange { start_ms, end_ms } }, rest))
}

fn split_mmap_marker(bytes: &[u8]) -> Option<(MmapMarkerRecord, &[u8])> {
    let (series_ref, rest) = split_be_u64(bytes)?;
    let (chunk_position, rest) = split_be_u64(rest)?;
    Some((MmapMarkerRecord { series_ref, chunk_position }, rest))
}

fn split_metadata(bytes: &[u8]) -> Option<(MetadataRecord<'_>, &[u8])> {
    let (series_ref, rest) = split_uvarint(bytes)?;
    let (kind, rest) = rest.split_first()?;
    let (fields, mut rest) = split_uvarint(rest)?;
    let (mut unit, mut help, mut family) = ("", "", "");
    for _ in 0..fields {
        let (name, after) = split_string(rest)?;
        let (text, after) = split_string(after)?;
        match name {
            UNIT => unit = text,
            HELP => help = text,
            FAMILY => family = text,
            _ => {}
        }
        rest = after;
    }
    Some((MetadataRecord { series_ref, kind: *kind, unit, help, family }, rest))
}
