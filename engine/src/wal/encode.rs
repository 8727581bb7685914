//! Encodes records of series and of float samples.

use super::{SAMPLES, SERIES};
use crate::codec::{put_uvarint, put_varint};
use crate::model::Sample;

/// Creates an empty record of new series, for [`put_series`].
pub fn series_record() -> Vec<u8> {
    vec![SERIES]
}

/// Adds a series to a record, with its `label_count` sorted labels.
pub fn put_series<'a>(
    record: &mut Vec<u8>,
    series_ref: u64,
    label_count: usize,
    labels: impl Iterator<Item = (&'a str, &'a str)>,
) {
    record.extend_from_slice(&series_ref.to_be_bytes());
    put_labels(record, label_count, labels);
}

pub(super) fn put_labels<'a>(
    record: &mut Vec<u8>,
    label_count: usize,
    labels: impl Iterator<Item = (&'a str, &'a str)>,
) {
    put_uvarint(record, label_count as u64);
    for (name, value) in labels {
        for text in [name, value] {
            put_uvarint(record, text.len() as u64);
            record.extend_from_slice(text.as_bytes());
        }
    }
}

/// Creates an empty record for `count` samples, which are relative to this reference and time.
pub fn samples_record(first_ref: u64, first_timestamp_ms: i64, count: usize) -> Vec<u8> {
    // A head of 17 bytes; the differences of most rows take two bytes each.
    let mut record = Vec::with_capacity(17 + count * 12);
    record.push(SAMPLES);
    record.extend_from_slice(&first_ref.to_be_bytes());
    record.extend_from_slice(&first_timestamp_ms.to_be_bytes());
    record
}

/// Adds a sample to a record that [`samples_record`] began with the same `first` values.
#[inline]
pub fn put_samples(record: &mut Vec<u8>, first: (u64, i64), series_ref: u64, sample: Sample) {
    // Differences wrap, as they do in `decode`, so any references and times are possible.
    put_varint(record, series_ref.wrapping_sub(first.0) as i64);
    put_varint(record, sample.timestamp_ms.wrapping_sub(first.1));
    record.extend_from_slice(&sample.value.to_bits().to_be_bytes());
}
