//! Bit streams, most significant bit first, as upstream's chunk encodings use them.
//!
//! ```text
//! value 0b101, 3 bits, then 0b11110000111, 11 bits:
//! ┌─────────────────┬─────────────────┐
//! │ 1 0 1 1 1 1 1 0 │ 0 0 0 1 1 1 . . │   the last two bits stay free, and are zero
//! └─────────────────┴─────────────────┘
//! ```
//!
//! Reader and writer move up to 64 bits at a time and loop over bytes only at a stream's end.

/// Reads bits from a byte slice through a window of 64 bits.
#[derive(Clone, Debug)]
pub struct BitReader<'a> {
    /// Bytes that are not wholly in the window yet.
    rest: &'a [u8],
    /// The next bits, topmost first. Bits beyond `valid` are zero or already those of `rest`.
    window: u64,
    /// Number of valid bits in the window, at most 63.
    valid: u32,
}

/// Writes bits into a borrowed buffer, so that the owner decides what is kept between uses: a
/// million series each have an unfinished chunk. At least [`SPARE_BYTES`](Self::SPARE_BYTES) must
/// follow the position of every [`put`](Self::put), so that one store suffices for any bits.
#[derive(Debug)]
pub struct BitWriter<'a> {
    bytes: &'a mut [u8],
    position_bits: u32,
}

impl<'a> BitReader<'a> {
    /// Returns a reader at the first bit of `bytes`.
    pub fn new(bytes: &'a [u8]) -> BitReader<'a> {
        BitReader { rest: bytes, window: 0, valid: 0 }
    }

    /// Brings at least 56 bits into the window, or all that are left.
    #[inline]
    pub fn fill(&mut self) {
        match self.rest.first_chunk::<8>() {
            Some(word) => {
                // `rest` moves by whole bytes; bits of a byte loaded in part are loaded again.
                self.window |= u64::from_be_bytes(*word) >> self.valid;
                self.rest = &self.rest[(63 - self.valid as usize) >> 3..];
                self.valid |= 56;
            }
            None => self.fill_from_last_bytes(),
        }
    }

    #[cold]
    fn fill_from_last_bytes(&mut self) {
        while self.valid <= 55
            && let [first, rest @ ..] = self.rest
        {
            self.window |= u64::from(*first) << (56 - self.valid);
            self.valid += 8;
            self.rest = rest;
        }
    }

    /// Returns the number of bits left in the stream.
    pub fn left(&self) -> usize {
        self.rest.len() * 8 + self.valid as usize
    }

    /// Number of bits that can be skipped or peeked at before the next [`fill`](Self::fill).
    #[inline]
    pub fn filled(&self) -> u32 {
        self.valid
    }

    /// Returns the next bits, topmost first. Only the first [`filled`](Self::filled) are valid.
    #[inline]
    pub fn peek(&self) -> u64 {
        self.window
    }

    /// Skips bits that were peeked at, at most [`filled`](Self::filled).
    #[inline]
    pub fn skip(&mut self, bits: u32) {
        debug_assert!(bits <= self.valid);
        self.window <<= bits;
        self.valid -= bits;
    }

    /// Returns the next `bits` bits (at most 64) as a number; `None` if the stream ends before.
    #[inline]
    pub fn take(&mut self, bits: u32) -> Option<u64> {
        if bits > self.valid {
            self.fill();
            if bits > self.valid {
                return self.take_in_two(bits);
            }
        }
        // Two shifts, since one by 64 (for `bits` of 0) would overflow.
        let value = (self.window >> 1) >> (63 - bits);
        self.skip(bits);
        Some(value)
    }

    /// Reads more bits than `fill` guarantees; `None` if the stream ends before.
    #[cold]
    fn take_in_two(&mut self, bits: u32) -> Option<u64> {
        if bits as usize > self.left() {
            return None;
        }
        // The window was filled to at least 56 bits, so `bits` is larger and 32 less is positive.
        let low_bits = bits - 32;
        let high = self.take(32)?;
        Some(high << low_bits | self.take(low_bits)?)
    }
}

impl<'a> BitWriter<'a> {
    /// Bytes that a put may write from its position on: 64 bits may end in the ninth byte.
    pub const SPARE_BYTES: usize = 9;

    /// Continues at a bit position of `bytes`; the byte must be zero from that bit on.
    #[inline]
    pub fn resume(bytes: &'a mut [u8], position_bits: u32) -> BitWriter<'a> {
        BitWriter { bytes, position_bits }
    }

    /// Returns the position of the next bit.
    #[inline]
    pub fn position_bits(&self) -> u32 {
        self.position_bits
    }

    /// Writes the low `bits` bits (1 to 64) of `value`, whose other bits must be 0; fills the last
    /// byte with zeros.
    ///
    /// # Panics
    ///
    /// If fewer than [`SPARE_BYTES`](Self::SPARE_BYTES) are left in the buffer.
    #[inline]
    pub fn put(&mut self, value: u64, bits: u32) {
        debug_assert!((1..=64).contains(&bits) && (bits == 64 || value >> bits == 0));
        let at = self.position_bits as usize / 8;
        let shift = self.position_bits % 8;
        let place = &mut self.bytes[at..at + Self::SPARE_BYTES];
        let aligned = value << (64 - bits);
        if let Some(word) = place.first_chunk_mut::<8>() {
            // Right after an overlapping store, loading one byte is fast, loading eight is not.
            *word = (u64::from(word[0]) << 56 | aligned >> shift).to_be_bytes();
        }
        if let Some(ninth) = place.last_mut() {
            // Two shifts, since a single shift of a byte by eight would overflow.
            *ninth = ((aligned as u8) << (7 - shift)) << 1;
        }
        self.position_bits += bits;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn low_bits(value: u64, bits: u32) -> u64 {
        value & (u64::MAX >> (64 - bits))
    }

    proptest! {
        #[test]
        fn numbers_of_any_width_come_back(numbers in prop::collection::vec((any::<u64>(), 1u32..=64), 0..50)) {
            let total: u32 = numbers.iter().map(|(_, bits)| bits).sum();
            let mut bytes = vec![0; total as usize / 8 + BitWriter::SPARE_BYTES];
            let mut writer = BitWriter::resume(&mut bytes, 0);
            for (value, bits) in &numbers {
                writer.put(low_bits(*value, *bits), *bits);
            }
            prop_assert_eq!(writer.position_bits(), total);
            bytes.truncate(total.div_ceil(8) as usize);
            let free_bits = bytes.len() as u32 * 8 - total;
            let mut reader = BitReader::new(&bytes);
            for (value, bits) in &numbers {
                prop_assert_eq!(reader.take(*bits), Some(low_bits(*value, *bits)));
            }
            prop_assert_eq!(reader.take(free_bits), Some(0));
            prop_assert_eq!(reader.take(1), None);
        }

        #[test]
        fn any_order_of_reads_ends_without_harm(bytes: Vec<u8>, widths in prop::collection::vec(0u32..=64, 0..99)) {
            let mut reader = BitReader::new(&bytes);
            let mut left = bytes.len() as u64 * 8;
            for bits in widths {
                match reader.take(bits) {
                    Some(_) => left -= u64::from(bits),
                    None => prop_assert!(u64::from(bits) > left),
                }
            }
        }
    }

    #[test]
    fn the_picture_above_is_right() {
        let mut bytes = [0; 1 + BitWriter::SPARE_BYTES];
        let mut writer = BitWriter::resume(&mut bytes, 0);
        writer.put(0b101, 3);
        writer.put(0b111_1000_0111, 11);
        assert_eq!(writer.position_bits(), 14);
        assert_eq!(bytes[..3], [0b1011_1110, 0b0001_1100, 0]);
    }
}
