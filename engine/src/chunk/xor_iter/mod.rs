//! Decodes XOR chunks (`xor`). After bytes that do not decode, the iterator ends with an error.

mod bulk;

pub use bulk::read_floats;

use super::{Chunk, ChunkError};
use crate::codec::{BitReader, split_uvarint, split_varint};
use crate::model::Sample;
use std::rc::Rc;

/// Iterator over the samples of an XOR chunk, first to last.
#[derive(Clone, Debug)]
pub struct XorIter<'a> {
    /// Bits after the first two times and the first value; empty until these are read.
    bits: BitReader<'a>,
    /// Bytes of the first two times and the first value, and all after, as far as not read.
    bytes: &'a [u8],
    count: u16,
    next: u16,
    /// Window of value bits: leading zeros and width. Prometheus may continue a chunk after a
    /// restart with a window that was never set: all 64 bits are meant then.
    leading_zeros: u8,
    value_width: u8,
    timestamp_ms: i64,
    step_ms: u64,
    value_bits: u64,
}

impl<'a> XorIter<'a> {
    /// Creates an iterator over a chunk's data, without length, encoding or checksum.
    pub fn new(data: &'a [u8]) -> Result<XorIter<'a>, ChunkError> {
        let (header, bytes) = data.split_first_chunk::<2>().ok_or(ChunkError::NoHeader)?;
        Ok(XorIter {
            bits: BitReader::new(&[]),
            bytes,
            count: u16::from_be_bytes(*header),
            next: 0,
            leading_zeros: 0,
            value_width: 64,
            timestamp_ms: 0,
            step_ms: 0,
            value_bits: 0,
        })
    }

    /// Number of samples that the chunk claims to hold.
    pub fn count(&self) -> u16 {
        self.count
    }

    /// Number of bits after the sample read last.
    fn left_bits(&self) -> usize {
        match self.next {
            0 | 1 => 8 * self.bytes.len(),
            _ => self.bits.left(),
        }
    }

    fn cut_short(&self) -> ChunkError {
        ChunkError::CutShort { sample: self.next, count: self.count }
    }

    /// Reads the first sample, which is made of whole bytes.
    fn read_first(&mut self) -> Option<()> {
        let (timestamp_ms, rest) = split_varint(self.bytes)?;
        let (value, rest) = rest.split_first_chunk::<8>()?;
        self.timestamp_ms = timestamp_ms;
        self.value_bits = u64::from_be_bytes(*value);
        self.bytes = rest;
        Some(())
    }

    /// Reads the first step, also of whole bytes; bits begin after it.
    fn read_first_step(&mut self) -> Option<()> {
        let (step_ms, rest) = split_uvarint(self.bytes)?;
        self.step_ms = step_ms;
        self.timestamp_ms = self.timestamp_ms.wrapping_add(step_ms as i64);
        self.bits = BitReader::new(rest);
        self.bits.fill();
        Some(())
    }

    /// Reads a step. Afterwards `peek` has at least 20 bits, or all that are left.
    #[inline]
    fn read_step(&mut self) -> Option<()> {
        self.bits.fill();
        let window = self.bits.peek();
        if window >> 63 == 0 {
            // After the end of the bits `peek` has zeros, which are no code.
            if self.bits.filled() == 0 {
                return None;
            }
            self.bits.skip(1);
        } else {
            let change_ms = self.read_step_change()?;
            self.step_ms = self.step_ms.wrapping_add(change_ms as u64);
        }
        self.timestamp_ms = self.timestamp_ms.wrapping_add(self.step_ms as i64);
        Some(())
    }

    #[inline]
    fn read_step_change(&mut self) -> Option<i64> {
        let (prefix, width) = match self.bits.peek().leading_ones() {
            1 => (2, 14),
            2 => (3, 17),
            3 => (4, 20),
            _ => {
                self.bits.take(4)?;
                let change_ms = self.bits.take(64)? as i64;
                // The escape used up the window, from which `read_value` peeks without filling.
                self.bits.fill();
                return Some(change_ms);
            }
        };
        let bits = self.bits.take(prefix + width)? & ((1 << width) - 1);
        // Unlike in two's complement, the topmost bit alone is the largest positive number.
        let is_negative = bits > 1 << (width - 1);
        Some(bits as i64 - (i64::from(is_negative) << width))
    }

    #[inline]
    fn read_value(&mut self) -> Result<(), ChunkError> {
        let window = self.bits.peek();
        if window >> 63 == 0 {
            if self.bits.filled() == 0 {
                return Err(self.cut_short());
            }
            self.bits.skip(1);
            return Ok(());
        }
        if window >> 62 == 0b10 {
            self.bits.take(2).ok_or_else(|| self.cut_short())?;
        } else {
            let head = self.bits.take(13).ok_or_else(|| self.cut_short())?;
            let width = (head & 63) as u8;
            self.leading_zeros = (head >> 6 & 31) as u8;
            self.value_width = if width == 0 { 64 } else { width };
            // Only damage makes a window this wide; the shift below would overflow.
            if self.leading_zeros + self.value_width > 64 {
                return Err(ChunkError::ValueTooWide {
                    sample: self.next,
                    count: self.count,
                    leading_zeros: self.leading_zeros,
                    bits: self.value_width,
                });
            }
        }
        let bits = self.bits.take(u32::from(self.value_width)).ok_or_else(|| self.cut_short())?;
        self.value_bits ^= bits << (64 - self.leading_zeros - self.value_width);
        Ok(())
    }

    #[inline]
    fn read_next(&mut self) -> Result<(), ChunkError> {
        match self.next {
            0 => return self.read_first().ok_or_else(|| self.cut_short()),
            1 => self.read_first_step(),
            _ => self.read_step(),
        }
        .ok_or_else(|| self.cut_short())?;
        self.read_value()
    }
}

/// Returns the samples of a chunk of floats before a time; `None` if there are none. The bytes up
/// to any sample are a valid chunk except for the count, so nothing is re-encoded. Fails if one of
/// the returned samples, or the first sample after them, does not decode.
pub(super) fn before(chunk: &Chunk, time_ms: i64) -> Result<Option<Chunk>, ChunkError> {
    let data = &*chunk.data;
    let mut samples = XorIter::new(data)?;
    let mut end = None;
    while let Some(sample) = samples.next() {
        let timestamp_ms = sample?.timestamp_ms;
        if timestamp_ms >= time_ms {
            break;
        }
        end = Some((timestamp_ms, samples.next, samples.left_bits()));
    }
    let Some((last_ms, count, left_bits)) = end else { return Ok(None) };
    let bits = 8 * data.len() - left_bits;
    let mut kept: Rc<[u8]> = data.get(..bits.div_ceil(8)).unwrap_or(data).into();
    // `kept` was made here and has no other owner, so `get_mut` succeeds.
    if let Some([header @ .., last]) = Rc::get_mut(&mut kept) {
        // Bits of the next sample are replaced by the padding of zeros.
        *last &= u8::MAX << (8 * (header.len() + 1) - bits);
        for (byte, counted) in header.iter_mut().zip(count.to_be_bytes()) {
            *byte = counted;
        }
    }
    Ok(Some(Chunk { data: kept, max_time_ms: last_ms, ..*chunk }))
}

impl Iterator for XorIter<'_> {
    type Item = Result<Sample, ChunkError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.next == self.count {
            return None;
        }
        if let Err(error) = self.read_next() {
            self.next = self.count;
            return Some(Err(error));
        }
        self.next += 1;
        let value = f64::from_bits(self.value_bits);
        Some(Ok(Sample { timestamp_ms: self.timestamp_ms, value }))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        // The count may be false, and an error is one item, so the lower bound is at most 1.
        let left = usize::from(self.count - self.next);
        (left.min(1), Some(left))
    }
}
