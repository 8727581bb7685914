//! A decoder of float (XOR) chunks, written from `tsdb/docs/format/chunks.md` of Prometheus alone
//! and kept simple: a second opinion about the chunks that tidepool sends.
//!
//! ```text
//! ┌───────────────────┬───────────────┬─────────┬────────────────────┬─────────┬──────────────────
//! │ samples u16 (BE)  │ t0 varint     │ v0 f64  │ t1 - t0 uvarint    │ v1 xor  │ t2 dod │ v2 xor …
//! └───────────────────┴───────────────┴─────────┴────────────────────┴─────────┴──────────────────
//! dod, signed, most significant bit first:   0 │ 10 + 14 bits │ 110 + 17 │ 1110 + 20 │ 1111 + 64
//! xor of the values' bits:                   0 │ 10 + same window │ 11 + leading (5) + width (6) + bits
//! ```
//!
//! A `dod` of n bits holds -(2^(n-1))+1 to 2^(n-1), both included: unlike two's complement, the
//! pattern of a one followed by zeros is the largest positive number. A width of 64 is written as
//! 0.

use crate::series::Sample;

/// Reason why bytes are not a float chunk.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChunkError {
    /// The bytes end inside a sample.
    #[error("the chunk ends inside sample {sample} of {samples}")]
    Truncated {
        /// Number of the sample, counted from zero.
        sample: u16,
        /// Number of samples that the chunk announces.
        samples: u16,
    },
    /// The two bytes of the count are missing.
    #[error("the chunk has no sample count")]
    NoCount,
    /// A chunk must not be without samples.
    #[error("the chunk announces no samples")]
    Empty,
    /// A window is repeated before the first one, or is wider than 64 bits.
    #[error("sample {sample} has an impossible window of bits")]
    Window {
        /// Number of the sample, counted from zero.
        sample: u16,
    },
    /// More than the padding of a byte, or one byte of zero, follows the last sample.
    #[error("{bits} bits follow the last sample")]
    Trailing {
        /// Number of bits after the last sample.
        bits: usize,
    },
}

/// Decodes a whole chunk: its data without length, encoding byte and checksum.
pub fn decode(data: &[u8]) -> Result<Vec<Sample>, ChunkError> {
    let (count, rest) = data.split_first_chunk::<2>().ok_or(ChunkError::NoCount)?;
    let count = u16::from_be_bytes(*count);
    if count == 0 {
        return Err(ChunkError::Empty);
    }
    let mut decoder = Decoder { bits: Bits::new(rest), window: None };
    let mut samples: Vec<Sample> = Vec::with_capacity(usize::from(count));
    let mut delta = 0i64;
    for number in 0..count {
        let truncated = ChunkError::Truncated { sample: number, samples: count };
        let sample = match samples.last() {
            None => decoder.first().ok_or(truncated)?,
            Some(last) => {
                delta = match number {
                    1 => decoder.bits.uvarint().map(|delta| delta as i64),
                    _ => decoder.delta_of_deltas().map(|dod| delta.wrapping_add(dod)),
                }
                .ok_or_else(|| truncated.clone())?;
                let xor = decoder.xor(number)?.ok_or(truncated)?;
                Sample {
                    timestamp_ms: last.timestamp_ms.wrapping_add(delta),
                    value: f64::from_bits(last.value.to_bits() ^ xor),
                }
            }
        };
        samples.push(sample);
    }
    match decoder.bits.left() {
        0..8 => Ok(samples),
        // Prometheus 2.x begins the next byte too early, and chunks are passed on as they are.
        8 if rest.last() == Some(&0) => Ok(samples),
        bits => Err(ChunkError::Trailing { bits }),
    }
}

struct Decoder<'a> {
    bits: Bits<'a>,
    /// Number of zeros after the significant bits, and number of significant bits.
    window: Option<(u32, u32)>,
}

impl Decoder<'_> {
    fn first(&mut self) -> Option<Sample> {
        let zigzag = self.bits.uvarint()?;
        let timestamp_ms = (zigzag >> 1) as i64 ^ -((zigzag & 1) as i64);
        Some(Sample { timestamp_ms, value: f64::from_bits(self.bits.read(64)?) })
    }

    fn delta_of_deltas(&mut self) -> Option<i64> {
        for width in [0, 14, 17, 20] {
            if self.bits.read(1)? == 0 {
                let bits = self.bits.read(width)?;
                let negative = width > 0 && bits > 1 << (width - 1);
                return Some(bits as i64 - if negative { 1 << width } else { 0 });
            }
        }
        self.bits.read(64).map(|bits| bits as i64)
    }

    /// Returns the differing bits of a value; `None` inside `Ok` means that the bytes ended.
    fn xor(&mut self, sample: u16) -> Result<Option<u64>, ChunkError> {
        let Some(changed) = self.bits.read(1) else { return Ok(None) };
        if changed == 0 {
            return Ok(Some(0));
        }
        let Some(new_window) = self.bits.read(1) else { return Ok(None) };
        if new_window == 1 {
            let (Some(leading), Some(width)) = (self.bits.read(5), self.bits.read(6)) else {
                return Ok(None);
            };
            let width = if width == 0 { 64 } else { width as u32 };
            let trailing = 64u32.checked_sub(leading as u32 + width);
            self.window = Some((trailing.ok_or(ChunkError::Window { sample })?, width));
        }
        let (trailing, width) = self.window.ok_or(ChunkError::Window { sample })?;
        Ok(self.bits.read(width).map(|bits| bits << trailing))
    }
}

/// Reads numbers bit by bit, most significant bit first.
pub struct Bits<'a> {
    bytes: &'a [u8],
    /// Position in bits from the start.
    position: usize,
}

impl Bits<'_> {
    /// Begins with the first bit.
    pub fn new(bytes: &[u8]) -> Bits<'_> {
        Bits { bytes, position: 0 }
    }

    /// Returns the number of bits left.
    pub fn left(&self) -> usize {
        self.bytes.len() * 8 - self.position
    }

    /// Returns a number of this many bits; `None` if fewer are left.
    pub fn read(&mut self, count: u32) -> Option<u64> {
        if self.position + count as usize > self.bytes.len() * 8 {
            return None;
        }
        let mut value = 0;
        for _ in 0..count {
            let byte = self.bytes[self.position / 8];
            value = value << 1 | u64::from(byte >> (7 - self.position % 8) & 1);
            self.position += 1;
        }
        Some(value)
    }

    fn uvarint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.read(8)?;
            value |= (byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three samples by hand: t = 0, 1000, 2000; v = 1.0, 1.0, 2.0.
    ///
    /// After the count, `t0` = 0 as one byte and `v0` as eight come: 1000 as the uvarint e8 07;
    /// then bits: value same `0`; dod 0 `0`; value changed, new window `11`, 1.0 ^ 2.0 =
    /// 0x7ff0_0000_0000_0000 has 1 leading zero `00001` and 11 significant bits `001011`, all ones.
    const WORKED: [u8; 17] =
        [0, 3, 0, 0x3f, 0xf0, 0, 0, 0, 0, 0, 0, 0xe8, 0x07, 0x30, 0x97, 0xff, 0xc0];

    #[test]
    fn the_worked_example_decodes() {
        let samples = decode(&WORKED).expect("the example is a chunk");
        let pairs: Vec<_> = samples.iter().map(|s| (s.timestamp_ms, s.value)).collect();
        assert_eq!(pairs, [(0, 1.0), (1000, 1.0), (2000, 2.0)]);
    }

    #[test]
    fn every_truncation_is_noticed() {
        for length in 0..WORKED.len() {
            assert!(decode(&WORKED[..length]).is_err(), "{length} bytes");
        }
    }

    #[test]
    fn a_byte_too_many_is_noticed() {
        let mut longer = WORKED.to_vec();
        longer.push(0);
        assert!(matches!(decode(&longer), Err(ChunkError::Trailing { .. })));
    }

    /// Prometheus 2.x appends an empty byte if the last sample ends with a whole byte.
    #[test]
    fn an_empty_byte_after_a_whole_one_is_passed_over() {
        let one_sample = [0, 1, 2, 0x3f, 0xf0, 0, 0, 0, 0, 0, 0];
        for (more, is_fine) in
            [(&[][..], true), (&[0], true), (&[1], false), (&[0, 0], false), (&[0, 1], false)]
        {
            let decoded = decode(&[&one_sample, more].concat());
            assert_eq!(decoded.is_ok(), is_fine, "{more:?}: {decoded:?}");
        }
    }

    #[test]
    fn the_ends_of_a_narrow_delta_decode() {
        // 14 bits: 10 0000 0000 0000 is +8192, 10 0000 0000 0001 is -8191.
        for (bits, dod) in [(0x2000u16, 8192), (0x2001, -8191), (0x3fff, -1), (0x0001, 1)] {
            let bytes = (0x8000 | bits).to_be_bytes();
            let bits = Bits::new(&bytes);
            assert_eq!(Decoder { bits, window: None }.delta_of_deltas(), Some(dod), "{bytes:?}");
        }
    }
}
