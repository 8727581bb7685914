//! Float samples: field 2 of a series in both versions, and in remote read.
//!
//! ```text
//! ┌──────┬─────┬──────┬──────────────────┬──────┬──────────────┐
//! │ 0x12 │ len │ 0x09 │ value float64 LE │ 0x10 │ time uvarint │
//! └──────┴─────┴──────┴──────────────────┴──────┴──────────────┘
//! ```
//!
//! Value and time are written even if they are zero, which protobuf permits but does not require.

use crate::varint::{put_uvarint, uvarint_bytes};

/// Bytes of a sample's field without its time: tag and length, the value with its tag, the tag of
/// the time.
const FLOAT_BYTES: usize = 2 + 9 + 1;

/// Times from 1971 to 2109, whose encoding has six bytes.
const USUAL_TIMES: std::ops::Range<i64> = 1 << 35..1 << 42;

/// A float sample of a series.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Milliseconds since the Unix epoch.
    pub timestamp_ms: i64,
    /// Value; all bit patterns are kept, because NaN payloads have meaning, such as stale markers.
    pub value: f64,
}

impl PartialEq for Sample {
    /// Values are compared by their bits, so that NaN equals itself.
    fn eq(&self, other: &Self) -> bool {
        self.timestamp_ms == other.timestamp_ms && self.value.to_bits() == other.value.to_bits()
    }
}

impl Eq for Sample {}

/// Returns the number of bytes of a float sample with this time.
pub fn float_bytes(timestamp_ms: i64) -> usize {
    // A negative time has ten bytes: protobuf's int64 is not zigzag-encoded.
    FLOAT_BYTES + uvarint_bytes(timestamp_ms as u64)
}

/// Appends a float sample as field 2.
#[inline]
pub fn put_float(out: &mut Vec<u8>, timestamp_ms: i64, value: f64) {
    let [a, b, c, d, e, f, g, h] = value.to_le_bytes();
    // One copy of a fixed size is faster than a loop over the bytes of the time.
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
