//! Integers in one to 72 bits, and the buffer that they are written to.
//!
//! ```text
//! prefix     bits that follow    signed values          unsigned values
//! 0           0                  0                      0
//! 10          3                  -3 ..= 4               ..= 7
//! 110         6                  -31 ..= 32             ..= 63
//! 1110        9                  -255 ..= 256           ..= 511
//! 11110      12                  -2047 ..= 2048         ..= 4095
//! 111110     18                  -131071 ..= 131072     ..= 262143
//! 1111110    25                  -16777215 ..= 16777216 ..= 33554431
//! 11111110   56                  -(2^55-1) ..= 2^55     ..= 2^56-1
//! 11111111   64                  anything               anything
//! ```
//!
//! Source: prometheus/prometheus, `tsdb/docs/format/chunks.md` and `tsdb/chunkenc/varbit.go`.

use crate::codec::{BitReader, BitWriter, put_varint};

/// Number of bits after a prefix of n ones, by n.
const WIDTHS: [u32; 9] = [0, 3, 6, 9, 12, 18, 25, 56, 64];

/// Length of the longest prefix, which has no zero at its end.
const PREFIX_BITS_MAX: u32 = 8;

/// Minimum growth of the buffer in bytes; a large buffer grows by half.
const GROWTH_BYTES_MIN: usize = 128;

#[derive(Clone, Debug, Default)]
pub struct BitBuffer {
    /// Longer than the written bits, so that eight bytes can be stored at a time.
    bytes: Vec<u8>,
    position_bits: u32,
}

impl BitBuffer {
    /// Adds the low `bits` bits (1 to 64) of `value`, whose other bits are zero.
    #[inline]
    pub fn put(&mut self, value: u64, bits: u32) {
        let needed = self.position_bits as usize / 8 + BitWriter::SPARE_BYTES;
        if self.bytes.len() < needed {
            self.grow(needed);
        }
        let mut writer = BitWriter::resume(&mut self.bytes, self.position_bits);
        writer.put(value, bits);
        self.position_bits = writer.position_bits();
    }

    /// Reserves room for this many bytes in total.
    pub fn reserve(&mut self, bytes: usize) {
        let needed = bytes + BitWriter::SPARE_BYTES;
        if self.bytes.len() < needed {
            self.bytes.resize(needed, 0);
        }
    }

    #[cold]
    fn grow(&mut self, needed: usize) {
        let growth = GROWTH_BYTES_MIN.max(self.bytes.len() / 2);
        let len = needed.max(self.bytes.len() + growth);
        // `resize` alone would double the capacity, at a cost for every open histogram series.
        self.bytes.reserve_exact(len - self.bytes.len());
        self.bytes.resize(len, 0);
    }

    pub fn put_varbit_int(&mut self, value: i64) {
        // The range of n bits is -(2^(n-1) - 1) ..= 2^(n-1), unlike in two's complement.
        let magnitude = if value > 0 { value as u64 - 1 } else { value.unsigned_abs() };
        let needed = if value == 0 { 0 } else { 65 - magnitude.leading_zeros() };
        self.put_varbit(value as u64, needed);
    }

    pub fn put_varbit_uint(&mut self, value: u64) {
        self.put_varbit(value, 64 - value.leading_zeros());
    }

    /// Adds a signed number in whole bytes, at any bit position.
    pub fn put_varint(&mut self, value: i64) {
        let mut bytes = Vec::with_capacity(10);
        put_varint(&mut bytes, value);
        bytes.into_iter().for_each(|byte| self.put(u64::from(byte), 8));
    }

    fn put_varbit(&mut self, value: u64, needed: u32) {
        // `i64::MIN` would need 65 bits in these ranges; the widest class takes any number.
        let needed = needed.min(64);
        let ones = WIDTHS.iter().take_while(|width| **width < needed).count() as u32;
        let prefix_bits = (ones + 1).min(PREFIX_BITS_MAX);
        let all_ones = (1u64 << ones) - 1;
        let prefix = all_ones << (prefix_bits - ones);
        let width = WIDTHS[ones as usize];
        // One put takes up to 64 bits; only the widest class needs more.
        if prefix_bits + width <= 64 {
            let low = value & ((1u64 << width) - 1);
            self.put(prefix << width | low, prefix_bits + width);
        } else {
            self.put(prefix, prefix_bits);
            self.put(value, width);
        }
    }

    pub fn position_bits(&self) -> u32 {
        self.position_bits
    }

    /// Returns the written bits, with zeros up to the next byte.
    pub fn data(&self) -> &[u8] {
        self.bytes.get(..self.position_bits.div_ceil(8) as usize).unwrap_or_default()
    }

    pub fn data_mut(&mut self) -> &mut [u8] {
        self.bytes.get_mut(..self.position_bits.div_ceil(8) as usize).unwrap_or_default()
    }

    /// Number of bytes allocated, used or not.
    pub fn capacity_bytes(&self) -> usize {
        self.bytes.capacity()
    }
}

/// Reads an unsigned number; `None` if the bits end too early.
pub fn take_varbit_uint(bits: &mut BitReader<'_>) -> Option<u64> {
    let width = take_width(bits)?;
    bits.take(width)
}

/// Reads a signed number; `None` if the bits end too early.
#[inline]
pub fn take_varbit_int(bits: &mut BitReader<'_>) -> Option<i64> {
    let width = take_width(bits)?;
    if width == 0 {
        return Some(0);
    }
    let value = bits.take(width)?;
    // Unlike in two's complement, the topmost bit alone is the largest positive number.
    let is_negative = width < 64 && value > 1 << (width - 1);
    Some(if is_negative { value.wrapping_sub(1 << width) as i64 } else { value as i64 })
}

/// Reads an unsigned number in whole bytes; `None` if it is cut short or exceeds 64 bits.
pub fn take_uvarint(bits: &mut BitReader<'_>) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = bits.take(8)?;
        // The tenth byte has room for the topmost bit only.
        if shift == 63 && byte > 1 {
            return None;
        }
        value |= (byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// Reads a zigzag-folded number in whole bytes; `None` as for [`take_uvarint`].
pub fn take_varint(bits: &mut BitReader<'_>) -> Option<i64> {
    let folded = take_uvarint(bits)?;
    Some(((folded >> 1) as i64) ^ -((folded & 1) as i64))
}

#[inline]
fn take_width(bits: &mut BitReader<'_>) -> Option<u32> {
    bits.fill();
    // After the end of the bits `peek` has zeros, which end the prefix; then `take` fails.
    let ones = bits.peek().leading_ones().min(PREFIX_BITS_MAX);
    bits.take((ones + 1).min(PREFIX_BITS_MAX))?;
    WIDTHS.get(ones as usize).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn edges() -> Vec<i64> {
        let powers = (0..63).map(|bits| 1i64 << bits);
        let around = powers.flat_map(|p| [p - 1, p, p + 1, 1 - p, -p, -p - 1]);
        around.chain([0, i64::MAX, i64::MIN]).collect()
    }

    #[test]
    fn widths_are_those_of_the_table() {
        let bits_of = |value: i64| {
            let mut out = BitBuffer::default();
            out.put_varbit_int(value);
            out.position_bits()
        };
        let ends = [(4, 5), (32, 9), (256, 13), (2048, 17), (131_072, 24), (16_777_216, 32)];
        for (largest, bits) in ends {
            assert_eq!((bits_of(largest), bits_of(1 - largest)), (bits, bits), "{largest}");
            assert!(bits_of(largest + 1) > bits && bits_of(-largest) > bits, "{largest}");
        }
        assert_eq!((bits_of(0), bits_of(1 << 55), bits_of(1 + (1 << 55))), (1, 64, 72));
        assert_eq!((bits_of(i64::MIN), bits_of(i64::MAX)), (72, 72));
    }

    #[test]
    fn edges_come_back() {
        let mut out = BitBuffer::default();
        for value in edges() {
            out.put_varbit_int(value);
            out.put_varbit_uint(value as u64);
            out.put_varint(value);
        }
        let mut bits = BitReader::new(out.data());
        for value in edges() {
            assert_eq!(take_varbit_int(&mut bits), Some(value));
            assert_eq!(take_varbit_uint(&mut bits), Some(value as u64));
            assert_eq!(take_varint(&mut bits), Some(value));
        }
    }

    proptest! {
        #[test]
        fn any_bits_are_survived(bytes: Vec<u8>) {
            let mut bits = BitReader::new(&bytes);
            while take_varbit_int(&mut bits).is_some() {}
            let mut bits = BitReader::new(&bytes);
            while take_varbit_uint(&mut bits).is_some() {}
            let mut bits = BitReader::new(&bytes);
            while take_varint(&mut bits).is_some() {}
        }
    }
}
