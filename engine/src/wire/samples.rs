//! Samples of series as the field `timeseries` of a `prometheus.QueryResult`, field by field.
//!
//! ```text
//! ┌──────┬────────────────┬────────┬─────────────────────┬─────────────────────────┐
//! │ 0x0a │ length uvarint │ labels │ 0x12 sample × floats│ 0x22 histogram × others │
//! └──────┴────────────────┴────────┴─────────────────────┴─────────────────────────┘
//! ```
//!
//! Zero values and times of floats are written, too, so sizes follow from numbers and times.

use super::histogram::{put_histogram, put_histogram_field};
use crate::codec::{put_uvarint, uvarint_bytes};
use crate::model::{Labels, TimeRange, Value};
use tidepool_remote_write::{float_bytes, put_float};

/// Begins a series whose samples take `samples_bytes` bytes.
pub fn put_series_head(out: &mut Vec<u8>, labels: &Labels, samples_bytes: u64) {
    out.push(0x0a);
    put_uvarint(out, labels.packed().len() as u64 + samples_bytes);
    out.extend_from_slice(labels.packed());
}

/// Returns the number of bytes of a whole series.
pub fn series_bytes(labels: &Labels, samples_bytes: u64) -> u64 {
    let content = labels.packed().len() as u64 + samples_bytes;
    1 + uvarint_bytes(content) as u64 + content
}

/// Returns the size in bytes of a float with a time in the range; `None` if sizes differ.
pub fn float_bytes_in(range: TimeRange) -> Option<usize> {
    let TimeRange { start_ms, end_ms } = range;
    let bytes = float_bytes(start_ms);
    // The size of a float grows with its time, but negative times take ten bytes.
    let is_same = (start_ms < 0) == (end_ms < 0) && bytes == float_bytes(end_ms);
    is_same.then_some(bytes)
}

/// Appends a value of any kind.
pub fn put_value(out: &mut Vec<u8>, timestamp_ms: i64, value: &Value) {
    match value {
        Value::Float(value) => put_float(out, timestamp_ms, *value),
        Value::Histogram(histogram) => put_histogram(out, timestamp_ms, histogram),
        Value::FloatHistogram(histogram) => put_histogram(out, timestamp_ms, histogram),
    }
}

/// Appends a value as a field of a series in remote write: floats are field 2 in both versions,
/// histograms field 4 in 1.0 and 3 in 2.0.
pub fn put_series_value(out: &mut Vec<u8>, histogram_field: u32, timestamp_ms: i64, value: &Value) {
    match value {
        Value::Float(value) => put_float(out, timestamp_ms, *value),
        Value::Histogram(h) => put_histogram_field(out, histogram_field, timestamp_ms, h),
        Value::FloatHistogram(h) => put_histogram_field(out, histogram_field, timestamp_ms, h),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn sizes_are_told_in_advance(times: [i64; 3], bits: u64, near in -3i64..3, shift in 0u32..63) {
            let [start_ms, between_ms, end_ms] = times;
            let (start_ms, end_ms) = (start_ms.min(end_ms), start_ms.max(end_ms));
            for time_ms in [start_ms, (1i64 << shift) + near, 0] {
                let mut out = Vec::new();
                put_float(&mut out, time_ms, f64::from_bits(bits));
                prop_assert_eq!(out.len(), float_bytes(time_ms));
            }
            let between_ms = between_ms.clamp(start_ms, end_ms);
            if let Some(bytes) = float_bytes_in(TimeRange { start_ms, end_ms }) {
                prop_assert_eq!(bytes, float_bytes(between_ms));
            }
        }
    }
}
