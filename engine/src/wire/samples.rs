//! Plain samples as a `prometheus.QueryResult` has them: its field `timeseries`, field by field.
//!
//! ```text
//! ┌──────┬────────────────┬────────┬─────────────────────┬─────────────────────────┐
//! │ 0x0a │ length uvarint │ labels │ 0x12 sample × floats│ 0x22 histogram × others │
//! └──────┴────────────────┴────────┴─────────────────────┴─────────────────────────┘
//! sample: ┌─────┬──────┬──────────────────┬──────┬──────────────┐
//!         │ len │ 0x09 │ value float64 LE │ 0x10 │ time uvarint │
//!         └─────┴──────┴──────────────────┴──────┴──────────────┘
//! ```
//!
//! Value and time are written even if they are zero, which protobuf need not but may do: so the
//! size of many samples is known from their number and their first and last time.

use super::histogram::put_histogram;
use crate::codec::{put_uvarint, uvarint_bytes};
use crate::model::{Labels, TimeRange, Value};

/// Bytes of a sample's field but for its time: tag and length, the value with its tag, the tag of
/// the time.
const FLOAT_BYTES: usize = 2 + 9 + 1;

/// Times from 1971 to 2109 take six bytes.
const USUAL_TIMES: std::ops::Range<i64> = 1 << 35..1 << 42;

/// Begins a series of which the samples take so many bytes.
pub fn put_series_head(out: &mut Vec<u8>, labels: &Labels, samples_bytes: u64) {
    out.push(0x0a);
    put_uvarint(out, labels.packed().len() as u64 + samples_bytes);
    out.extend_from_slice(labels.packed());
}

/// How many bytes a series takes in all.
pub fn series_bytes(labels: &Labels, samples_bytes: u64) -> u64 {
    let content = labels.packed().len() as u64 + samples_bytes;
    1 + uvarint_bytes(content) as u64 + content
}

/// How many bytes a float of any time takes.
pub fn float_bytes(timestamp_ms: i64) -> usize {
    // A negative time takes ten bytes: protobuf's int64 is not zigzag-folded.
    FLOAT_BYTES + uvarint_bytes(timestamp_ms as u64)
}

/// How many bytes each float takes whose time lies in a range; `None` if they differ.
pub fn float_bytes_in(range: TimeRange) -> Option<usize> {
    let TimeRange { start_ms, end_ms } = range;
    let bytes = float_bytes(start_ms);
    let is_same = (start_ms < 0) == (end_ms < 0) && bytes == float_bytes(end_ms);
    is_same.then_some(bytes)
}

/// Appends a float.
#[inline]
pub fn put_float(out: &mut Vec<u8>, timestamp_ms: i64, value: f64) {
    let [a, b, c, d, e, f, g, h] = value.to_le_bytes();
    if USUAL_TIMES.contains(&timestamp_ms) {
        let part = |shift: u32| (timestamp_ms >> shift) as u8 | 0x80;
        let time = [part(0), part(7), part(14), part(21), part(28), (timestamp_ms >> 35) as u8];
        let [i, j, k, l, m, n] = time;
        let length = FLOAT_BYTES as u8 - 2 + 6;
        out.extend_from_slice(&[
            0x12, length, 0x09, a, b, c, d, e, f, g, h, 0x10, i, j, k, l, m, n,
        ]);
        return;
    }
    let length = float_bytes(timestamp_ms) as u8 - 2;
    out.extend_from_slice(&[0x12, length, 0x09, a, b, c, d, e, f, g, h, 0x10]);
    put_uvarint(out, timestamp_ms as u64);
}

/// Appends a value of any kind.
pub fn put_value(out: &mut Vec<u8>, timestamp_ms: i64, value: &Value) {
    match value {
        Value::Float(value) => put_float(out, timestamp_ms, *value),
        Value::Histogram(histogram) => put_histogram(out, timestamp_ms, histogram),
        Value::FloatHistogram(histogram) => put_histogram(out, timestamp_ms, histogram),
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
