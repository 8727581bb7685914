//! Decodes records in place; texts are not copied.

use super::rare_records::{
    self, ExemplarRecords, MetadataRecord, MmapMarkerRecord, Rows, TombstoneRecord,
};
use super::samples_v2::{RowHeads, SampleV2Records};
use super::{
    COLUMNS, COLUMNS_201, ColumnRecord, DELETIONS_APPLIED, EXEMPLARS, FLOAT_HISTOGRAMS_V2,
    HISTOGRAMS_V2, HistogramRecords, METADATA, MMAP_MARKERS, RETIRED, SAMPLES, SAMPLES_V2, SERIES,
    TOMBSTONES, WalCount, own_records,
};
use crate::codec::{split_uvarint, split_varint};
use crate::model::Sample;

/// A record as replay sees it.
pub enum Record<'a> {
    /// Series that later records refer to by number.
    Series(SeriesRecords<'a>),
    /// Samples of series that earlier records introduced.
    Samples(SampleRecords<'a>),
    /// Deleted time ranges of series.
    Tombstones(Rows<'a, TombstoneRecord>),
    /// Exemplars of series that earlier records introduced.
    Exemplars(ExemplarRecords<'a>),
    /// Positions of out-of-order samples that files of chunks hold already.
    MmapMarkers(Rows<'a, MmapMarkerRecord>),
    /// Types, units and help texts of metrics.
    Metadata(Rows<'a, MetadataRecord<'a>>),
    /// Native histograms with integer counts.
    Histograms(HistogramRecords<'a, u64>),
    /// Native histograms with float counts.
    FloatHistograms(HistogramRecords<'a, f64>),
    /// Float samples that upstream wrote together with start timestamps.
    SamplesV2(SampleV2Records<'a>),
    /// Samples by columns, which a [`ColumnReader`](super::ColumnReader) decodes to rows.
    Columns(ColumnRecord<'a>),
    /// All earlier deletions are applied; the number is a time in milliseconds (`own_records.rs`).
    DeletionsApplied(i64),
    /// No new series may get a number up to this one.
    Retired(u64),
    /// A type that this version does not know.
    Unknown(u8),
}

/// A record that ends before its content does, or holds impossible numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a WAL record of type {kind} is damaged at byte {offset}")]
pub struct RecordError {
    /// Type of the damaged record.
    pub kind: u8,
    /// Offset in the record at which decoding stopped.
    pub offset: usize,
}

/// Names and values of labels.
pub type LabelPairs<'a> = Vec<(&'a str, &'a str)>;

/// One series of a record.
#[derive(Debug, PartialEq, Eq)]
pub struct SeriesRecord<'a> {
    /// Number by which sample records refer to the series.
    pub series_ref: u64,
    /// Labels in the order of the writer.
    pub labels: LabelPairs<'a>,
}

/// Iterates over the series of a record.
pub struct SeriesRecords<'a> {
    record: &'a [u8],
    rest: &'a [u8],
}

/// Iterates over (series reference, sample) of a record.
pub struct SampleRecords<'a> {
    record: &'a [u8],
    rest: &'a [u8],
    first_ref: u64,
    first_timestamp_ms: i64,
}

/// Decodes the head of a record; the returned iterators decode the content.
pub fn decode(record: &[u8]) -> Result<Record<'_>, RecordError> {
    // An empty record has no type; replay skips it like an unknown one.
    let Some((kind, rest)) = record.split_first() else { return Ok(Record::Unknown(0)) };
    match *kind {
        SERIES => Ok(Record::Series(SeriesRecords { record, rest })),
        SAMPLES if rest.is_empty() => {
            Ok(Record::Samples(SampleRecords { record, rest, first_ref: 0, first_timestamp_ms: 0 }))
        }
        SAMPLES => {
            let header = split_be_u64(rest).and_then(|(first_ref, rest)| {
                split_be_u64(rest).map(|(time, rest)| (first_ref, time as i64, rest))
            });
            let (first_ref, first_timestamp_ms, rest) =
                header.ok_or(RecordError { kind: SAMPLES, offset: 1 })?;
            Ok(Record::Samples(SampleRecords { record, rest, first_ref, first_timestamp_ms }))
        }
        TOMBSTONES => Ok(Record::Tombstones(rare_records::tombstones(record, rest))),
        EXEMPLARS => {
            let (heads, rest) = heads(record)?;
            Ok(Record::Exemplars(ExemplarRecords::new(record, rest, heads)))
        }
        MMAP_MARKERS => Ok(Record::MmapMarkers(rare_records::mmap_markers(record, rest))),
        METADATA => Ok(Record::Metadata(rare_records::metadata(record, rest))),
        u64::KIND | u64::CUSTOM_KIND => {
            let (heads, rest) = heads(record)?;
            Ok(Record::Histograms(HistogramRecords::new(record, rest, heads)))
        }
        f64::KIND | f64::CUSTOM_KIND => {
            let (heads, rest) = heads(record)?;
            Ok(Record::FloatHistograms(HistogramRecords::new(record, rest, heads)))
        }
        SAMPLES_V2 => Ok(Record::SamplesV2(SampleV2Records::new(record, rest))),
        HISTOGRAMS_V2 => {
            let heads = RowHeads::with_start();
            Ok(Record::Histograms(HistogramRecords::new(record, rest, heads)))
        }
        FLOAT_HISTOGRAMS_V2 => {
            let heads = RowHeads::with_start();
            Ok(Record::FloatHistograms(HistogramRecords::new(record, rest, heads)))
        }
        COLUMNS | COLUMNS_201 => Ok(Record::Columns(ColumnRecord::split(record, rest)?)),
        DELETIONS_APPLIED => {
            Ok(Record::DeletionsApplied(own_records::number(record, rest)? as i64))
        }
        RETIRED => Ok(Record::Retired(own_records::number(record, rest)?)),
        kind => Ok(Record::Unknown(kind)),
    }
}

/// Splits off the reference and time that rows are relative to; both are absent without rows.
fn heads(record: &[u8]) -> Result<(RowHeads, &[u8]), RecordError> {
    let rest = record.get(1..).unwrap_or_default();
    if rest.is_empty() {
        return Ok((RowHeads::ToFirst(0, 0), rest));
    }
    let first = split_be_u64(rest).and_then(|(first_ref, rest)| {
        split_be_u64(rest).map(|(time, rest)| (RowHeads::ToFirst(first_ref, time as i64), rest))
    });
    first.ok_or_else(|| RecordError::at(record, &mut &*rest))
}

impl RecordError {
    /// Returns the error at the beginning of `rest`, and clears `rest` so that iteration ends.
    pub(super) fn at(record: &[u8], rest: &mut &[u8]) -> RecordError {
        let offset = record.len() - rest.len();
        *rest = &[];
        RecordError { kind: record.first().copied().unwrap_or_default(), offset }
    }
}

impl<'a> Iterator for SeriesRecords<'a> {
    type Item = Result<SeriesRecord<'a>, RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        match split_series(self.rest) {
            Some((series, rest)) => {
                self.rest = rest;
                Some(Ok(series))
            }
            None => Some(Err(RecordError::at(self.record, &mut self.rest))),
        }
    }
}

impl SampleRecords<'_> {
    /// Passes all rows of the iterator to `take`, in a loop that dominates the time of a replay.
    #[inline(always)]
    pub fn each(mut self, mut take: impl FnMut(u64, Sample)) -> Result<(), RecordError> {
        loop {
            let near = self.rest.first_chunk().and_then(near_sample);
            let (series_ref, sample) = match near {
                Some((ref_delta, time_delta, bits, len)) => {
                    self.rest = &self.rest[len..];
                    let timestamp_ms = self.first_timestamp_ms.wrapping_add(time_delta);
                    let series_ref = self.first_ref.wrapping_add(ref_delta as u64);
                    (series_ref, Sample { timestamp_ms, value: f64::from_bits(bits) })
                }
                // A row with longer differences, or close to the record's end.
                None => match self.next_far() {
                    Some(row) => row?,
                    None => return Ok(()),
                },
            };
            take(series_ref, sample);
        }
    }

    #[cold]
    fn next_far(&mut self) -> Option<Result<(u64, Sample), RecordError>> {
        self.next()
    }
}

impl Iterator for SampleRecords<'_> {
    type Item = Result<(u64, Sample), RecordError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        match split_sample(self.rest) {
            Some((ref_delta, time_delta, value, rest)) => {
                self.rest = rest;
                let timestamp_ms = self.first_timestamp_ms.wrapping_add(time_delta);
                let series_ref = self.first_ref.wrapping_add(ref_delta as u64);
                Some(Ok((series_ref, Sample { timestamp_ms, value })))
            }
            None => Some(Err(RecordError::at(self.record, &mut self.rest))),
        }
    }
}

fn split_series(bytes: &[u8]) -> Option<(SeriesRecord<'_>, &[u8])> {
    let (series_ref, rest) = split_be_u64(bytes)?;
    let (labels, rest) = split_labels(rest)?;
    Some((SeriesRecord { series_ref, labels }, rest))
}

/// Splits off label names and values in turn, after the number of labels.
pub(super) fn split_labels(bytes: &[u8]) -> Option<(LabelPairs<'_>, &[u8])> {
    let (count, mut rest) = split_uvarint(bytes)?;
    // A label has two length bytes at least, so a false count cannot allocate much.
    let count = usize::try_from(count).ok().filter(|count| *count <= rest.len() / 2)?;
    let mut labels = Vec::with_capacity(count);
    for _ in 0..count {
        let (name, after) = split_string(rest)?;
        let (value, after) = split_string(after)?;
        labels.push((name, value));
        rest = after;
    }
    Some((labels, rest))
}

#[inline]
fn split_sample(bytes: &[u8]) -> Option<(i64, i64, f64, &[u8])> {
    let (ref_delta, rest) = split_varint(bytes)?;
    let (time_delta, rest) = split_varint(rest)?;
    let (bits, rest) = split_be_u64(rest)?;
    Some((ref_delta, time_delta, f64::from_bits(bits), rest))
}

/// Bytes of the longest near row, which `each` decodes at once: both differences have three bytes.
const NEAR_BYTES: usize = 3 + 3 + 8;

/// Decodes a near row: differences of reference and time, bits of the value, length of the row.
#[inline(always)]
fn near_sample(bytes: &[u8; NEAR_BYTES]) -> Option<(i64, i64, u64, usize)> {
    // Both differences take at most six bytes, so one word holds them.
    let word = u64::from_le_bytes(*bytes.first_chunk()?);
    let (ref_delta, ref_bytes) = near_varint(word)?;
    let (time_delta, time_bytes) = near_varint(word >> (8 * ref_bytes))?;
    let len = ref_bytes + time_bytes;
    let bits = u64::from_be_bytes(*bytes.get(len..)?.first_chunk()?);
    Some((ref_delta, time_delta, bits, len + 8))
}

/// Decodes a zigzag-folded value of at most three bytes at a word's beginning, with its length.
#[inline(always)]
fn near_varint(word: u64) -> Option<(i64, usize)> {
    // The seven bits of each byte are moved down over the continuation bits of earlier bytes.
    let low = (word & 0x7f) as u32;
    let middle = (word >> 1 & 0x7f << 7) as u32;
    let high = (word >> 2 & 0x7f << 14) as u32;
    let (folded, bytes) = match word {
        _ if word & 0x80 == 0 => (low, 1),
        _ if word & 0x8000 == 0 => (low | middle, 2),
        _ if word & 0x80_0000 == 0 => (low | middle | high, 3),
        _ => return None,
    };
    Some((i64::from((folded >> 1) as i32 ^ -((folded & 1) as i32)), bytes))
}

#[inline]
pub(super) fn split_be_u64(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (head, rest) = bytes.split_first_chunk::<8>()?;
    Some((u64::from_be_bytes(*head), rest))
}

pub(super) fn split_string(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let (len, rest) = split_uvarint(bytes)?;
    let (text, rest) = rest.split_at_checked(usize::try_from(len).ok()?)?;
    Some((std::str::from_utf8(text).ok()?, rest))
}
