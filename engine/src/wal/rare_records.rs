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
//! Labels are encoded as in a series record. Of the fields of metadata, `UNIT` and `HELP` are
//! Prometheus', `FAMILY` is tidepool's; Prometheus skips unknown fields, as tidepool does. Markers
//! occur only in the out-of-order log: a file of chunks has the earlier samples of the series.

use super::decode::{LabelPairs, RecordError, split_be_u64, split_labels, split_string};
use super::encode::put_labels;
use super::samples_v2::RowHeads;
use super::{EXEMPLARS, METADATA, MMAP_MARKERS, TOMBSTONES};
use crate::codec::{put_uvarint, put_varint, split_uvarint, split_varint};
use crate::model::TimeRange;

const UNIT: &str = "UNIT";
const HELP: &str = "HELP";
const FAMILY: &str = "FAMILY";

/// A deleted time range of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TombstoneRecord {
    /// Reference of the series in the log.
    pub series_ref: u64,
    /// Deleted time, both ends included.
    pub range: TimeRange,
}

/// One exemplar of a record.
#[derive(Clone, Debug)]
pub struct ExemplarRecord<'a> {
    /// Reference of the series that the exemplar belongs to.
    pub series_ref: u64,
    /// Milliseconds since the Unix epoch.
    pub timestamp_ms: i64,
    /// Value of the example observation.
    pub value: f64,
    /// Labels of the exemplar itself, such as a trace id.
    pub labels: LabelPairs<'a>,
}

/// Marks that a file of chunks has the earlier samples of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MmapMarkerRecord {
    /// Reference of the series in the log.
    pub series_ref: u64,
    /// File number in the high 32 bits, position in the file in the low 32 bits.
    pub chunk_position: u64,
}

/// Metadata of the metric that a series belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetadataRecord<'a> {
    /// Reference of the series in the log.
    pub series_ref: u64,
    /// 0 unknown, 1 counter, 2 gauge, 3 histogram, 4 gaugehistogram, 5 summary, 6 info, 7 stateset.
    pub kind: u8,
    /// Unit of the metric; may be empty.
    pub unit: &'a str,
    /// Help text of the metric; may be empty.
    pub help: &'a str,
    /// Name of the metric family; empty if the record does not have it.
    pub family: &'a str,
}

/// Iterates over the rows of a record whose rows are decoded independently of each other.
pub struct Rows<'a, R> {
    record: &'a [u8],
    rest: &'a [u8],
    split: SplitRow<'a, R>,
}

type SplitRow<'a, R> = fn(&'a [u8]) -> Option<(R, &'a [u8])>;

/// Iterates over the exemplars of a record.
pub struct ExemplarRecords<'a> {
    record: &'a [u8],
    rest: &'a [u8],
    heads: RowHeads,
}

/// Encodes a record of these tombstones.
pub fn tombstones_record(tombstones: impl IntoIterator<Item = TombstoneRecord>) -> Vec<u8> {
    let mut record = vec![TOMBSTONES];
    for TombstoneRecord { series_ref, range } in tombstones {
        record.extend_from_slice(&series_ref.to_be_bytes());
        put_varint(&mut record, range.start_ms);
        put_varint(&mut record, range.end_ms);
    }
    record
}

/// Creates an empty record of exemplars, relative to this reference and time.
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

/// Encodes a record of these markers.
pub fn mmap_markers_record(markers: impl IntoIterator<Item = MmapMarkerRecord>) -> Vec<u8> {
    let mut record = vec![MMAP_MARKERS];
    for MmapMarkerRecord { series_ref, chunk_position } in markers {
        record.extend_from_slice(&series_ref.to_be_bytes());
        record.extend_from_slice(&chunk_position.to_be_bytes());
    }
    record
}

/// Creates an empty record of metadata, for [`put_metadata`].
pub fn metadata_record() -> Vec<u8> {
    vec![METADATA]
}

/// Adds a series' metadata to a record.
pub fn put_metadata(record: &mut Vec<u8>, metadata: &MetadataRecord<'_>) {
    put_uvarint(record, metadata.series_ref);
    record.push(metadata.kind);
    let fields = [(UNIT, metadata.unit), (HELP, metadata.help), (FAMILY, metadata.family)];
    // Prometheus always writes the first two; `FAMILY` is added only if it has a text.
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
    // Each turn reads some bytes, so a false count cannot outlast the record.
    for _ in 0..fields {
        let (name, after) = split_string(rest)?;
        let (text, after) = split_string(after)?;
        match name {
            UNIT => unit = text,
            HELP => help = text,
            FAMILY => family = text,
            // Later versions may add fields; upstream skips them likewise.
            _ => {}
        }
        rest = after;
    }
    Some((MetadataRecord { series_ref, kind: *kind, unit, help, family }, rest))
}
