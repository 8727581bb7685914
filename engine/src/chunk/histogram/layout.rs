//! The bucket layout at the beginning of a histogram chunk; `mod.rs` shows its bytes.

use crate::chunk::ChunkError;
use crate::chunk::varbit::{BitBuffer, take_varbit_int, take_varbit_uint};
use crate::codec::BitReader;
use crate::model::histogram::{BucketLayout, CUSTOM_BUCKETS_SCHEMA, Span};

/// Largest custom bound, in thousandths, that is stored in short form, in at most four bytes.
const CUSTOM_THOUSANDTHS_MAX: f64 = 33_554_430.0;

/// Byte before a zero threshold that is stored in full.
const ZERO_THRESHOLD_IN_FULL: u64 = 255;

/// Added to the exponent of a zero threshold that is a power of two, so that the smallest possible
/// one, 2^-243, is stored as 1.
const ZERO_THRESHOLD_BIAS: i32 = 244;

/// Exponents of the powers of two that one byte can express.
const ZERO_THRESHOLD_EXPONENTS: std::ops::RangeInclusive<i32> = -243..=10;

const DOUBLE_BIAS: i32 = 1023;

const DOUBLE_MANTISSA_BITS: u32 = 52;

pub fn put_layout(out: &mut BitBuffer, layout: &BucketLayout) {
    put_zero_threshold(out, layout.zero_threshold);
    out.put_varbit_int(i64::from(layout.schema));
    for spans in [&layout.positive_spans, &layout.negative_spans] {
        out.put_varbit_uint(spans.len() as u64);
        for span in spans {
            out.put_varbit_uint(u64::from(span.length));
            out.put_varbit_int(i64::from(span.offset));
        }
    }
    if layout.has_custom_buckets() {
        out.put_varbit_uint(layout.custom_values.len() as u64);
        for bound in &layout.custom_values {
            put_custom_bound(out, *bound);
        }
    }
}

/// Reads a layout; `None` if the bits end too early.
pub fn take_layout(bits: &mut BitReader<'_>) -> Option<Result<BucketLayout, ChunkError>> {
    let zero_threshold = take_zero_threshold(bits)?;
    let schema = take_varbit_int(bits)?;
    let Ok(schema) = i32::try_from(schema) else {
        return Some(Err(ChunkError::BadLayout { reason: "the schema does not fit 32 bits" }));
    };
    let (positive_spans, negative_spans) = match (take_spans(bits)?, take_spans(bits)?) {
        (Ok(positive), Ok(negative)) => (positive, negative),
        (Err(error), _) | (_, Err(error)) => return Some(Err(error)),
    };
    let mut custom_values = Vec::new();
    if schema == CUSTOM_BUCKETS_SCHEMA {
        // Each turn reads some bits, so a false count cannot outlast the bits.
        for _ in 0..take_varbit_uint(bits)? {
            custom_values.push(take_custom_bound(bits)?);
        }
    }
    let custom_values = custom_values.into_boxed_slice();
    Some(Ok(BucketLayout { schema, zero_threshold, positive_spans, negative_spans, custom_values }))
}

fn take_spans(bits: &mut BitReader<'_>) -> Option<Result<Box<[Span]>, ChunkError>> {
    let mut spans = Vec::new();
    for i in 0..take_varbit_uint(bits)? {
        let length = u32::try_from(take_varbit_uint(bits)?);
        let offset = i32::try_from(take_varbit_int(bits)?);
        match (length, offset) {
            // A negative offset after the first span would make spans overlap.
            (Ok(length), Ok(offset)) if i == 0 || offset >= 0 => {
                spans.push(Span { offset, length });
            }
            _ => {
                let reason = "a span's offset or length is out of range";
                return Some(Err(ChunkError::BadLayout { reason }));
            }
        }
    }
    Some(Ok(spans.into_boxed_slice()))
}

fn put_zero_threshold(out: &mut BitBuffer, threshold: f64) {
    match threshold_byte(threshold) {
        Some(byte) => out.put(byte, 8),
        None => {
            out.put(ZERO_THRESHOLD_IN_FULL, 8);
            out.put(threshold.to_bits(), 64);
        }
    }
}

/// Returns the single byte for zero or for a power of two in the range of such a byte.
fn threshold_byte(threshold: f64) -> Option<u64> {
    if threshold == 0.0 {
        return Some(0);
    }
    let bits = threshold.to_bits();
    let exponent = (bits >> DOUBLE_MANTISSA_BITS) as i32 - DOUBLE_BIAS;
    let is_power = bits.trailing_zeros() >= DOUBLE_MANTISSA_BITS;
    // The sign bit of a negative threshold makes the exponent too large for the range.
    (is_power && ZERO_THRESHOLD_EXPONENTS.contains(&exponent))
        .then_some((exponent + ZERO_THRESHOLD_BIAS) as u64)
}

fn take_zero_threshold(bits: &mut BitReader<'_>) -> Option<f64> {
    Some(match bits.take(8)? {
        0 => 0.0,
        ZERO_THRESHOLD_IN_FULL => f64::from_bits(bits.take(64)?),
        byte => {
            let exponent = byte as i32 - ZERO_THRESHOLD_BIAS + DOUBLE_BIAS;
            f64::from_bits((exponent as u64) << DOUBLE_MANTISSA_BITS)
        }
    })
}

fn put_custom_bound(out: &mut BitBuffer, bound: f64) {
    let thousandths = bound * 1000.0;
    let rounded = thousandths.round();
    // Short only if the division on reading yields exactly this bound again.
    let is_short =
        (0.0..=CUSTOM_THOUSANDTHS_MAX).contains(&thousandths) && rounded / 1000.0 == bound;
    if is_short {
        out.put_varbit_uint(rounded as u64 + 1);
    } else {
        out.put(0, 1);
        out.put(bound.to_bits(), 64);
    }
}

fn take_custom_bound(bits: &mut BitReader<'_>) -> Option<f64> {
    Some(match take_varbit_uint(bits)? {
        0 => f64::from_bits(bits.take(64)?),
        thousandths => (thousandths - 1) as f64 / 1000.0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn threshold_round_trip(threshold: f64) -> (Option<f64>, u32) {
        let mut out = BitBuffer::default();
        put_zero_threshold(&mut out, threshold);
        (take_zero_threshold(&mut BitReader::new(out.data())), out.position_bits())
    }

    #[test]
    fn thresholds_that_are_powers_of_two_take_a_byte() {
        for (threshold, bits) in [
            (0.0, 8),
            (2f64.powi(-128), 8),
            (2f64.powi(-243), 8),
            (1024.0, 8),
            (2048.0, 72),
            (2f64.powi(-244), 72),
            (-0.5, 72),
            (0.001, 72),
            (f64::MIN_POSITIVE / 2.0, 72),
            (f64::INFINITY, 72),
        ] {
            assert_eq!(threshold_round_trip(threshold), (Some(threshold), bits));
        }
        let mut out = BitBuffer::default();
        put_zero_threshold(&mut out, 2f64.powi(-128));
        assert_eq!(out.data(), [116]);
    }

    proptest! {
        #[test]
        fn bounds_come_back(bits: u64, thousandths in 0u32..40_000_000) {
            for bound in [f64::from_bits(bits), f64::from(thousandths) / 1000.0] {
                let mut out = BitBuffer::default();
                put_custom_bound(&mut out, bound);
                let read = take_custom_bound(&mut BitReader::new(out.data()));
                // A zero loses its sign, as upstream's does.
                let wanted = if bound == 0.0 { 0.0f64 } else { bound };
                prop_assert_eq!(read.map(f64::to_bits), Some(wanted.to_bits()));
                prop_assert_eq!(threshold_round_trip(bound).0.map(f64::to_bits), Some(wanted.to_bits()));
            }
        }
    }
}
