//! Decodes XOR2 chunks (`xor2.rs`). Bytes that do not decode end the iterator with an error.

use super::ChunkError;
use super::starts::{StartReader, are_starts_unknown};
use super::varbit::{take_uvarint, take_varint};
use super::xor2::HEADER_BYTES;
use crate::codec::BitReader;
use crate::model::Sample;
use crate::model::histogram::{STALE_NAN_BITS, is_stale_nan};

/// Iterator over the samples of an XOR2 chunk, first to last.
#[derive(Clone, Debug)]
pub struct Xor2Iter<'a> {
    bits: BitReader<'a>,
    count: u16,
    next: u16,
    starts: StartReader,
    /// Window of value bits: leading zeros and width; all 64 bits until a window is set.
    leading_zeros: u8,
    value_width: u8,
    timestamp_ms: i64,
    step_ms: u64,
    value_bits: u64,
    /// Bits of the last value that was not a stale marker.
    base_bits: u64,
}

/// Reason why a sample does not decode; [`Xor2Iter::explain`] adds the sample's position.
enum Cause {
    CutShort,
    TooWide,
}

/// Returns whether no sample of an XOR2 chunk has a start timestamp.
pub(super) fn has_no_starts(data: &[u8]) -> bool {
    data.get(HEADER_BYTES - 1).is_some_and(|header| are_starts_unknown(*header))
}

impl<'a> Xor2Iter<'a> {
    /// Creates an iterator over a chunk's data, without length, encoding or checksum.
    pub fn new(data: &'a [u8]) -> Result<Xor2Iter<'a>, ChunkError> {
        let (header, bits) =
            data.split_first_chunk::<HEADER_BYTES>().ok_or(ChunkError::NoHeader)?;
        let [high, low, starts] = *header;
        Ok(Xor2Iter {
            bits: BitReader::new(bits),
            count: u16::from_be_bytes([high, low]),
            next: 0,
            starts: StartReader::new(starts),
            leading_zeros: 0,
            value_width: 64,
            timestamp_ms: 0,
            step_ms: 0,
            value_bits: 0,
            base_bits: 0,
        })
    }

    /// Number of samples that the chunk claims to hold.
    pub fn count(&self) -> u16 {
        self.count
    }

    /// Returns the start timestamp of the sample returned last; 0 if unknown.
    #[inline]
    pub fn start_ms(&self) -> i64 {
        self.starts.start_ms()
    }

    #[cold]
    fn explain(&self, cause: Cause) -> ChunkError {
        let Xor2Iter { next: sample, count, leading_zeros, value_width: bits, .. } = *self;
        match cause {
            Cause::CutShort => ChunkError::CutShort { sample, count },
            Cause::TooWide => ChunkError::ValueTooWide { sample, count, leading_zeros, bits },
        }
    }

    #[inline]
    fn take(&mut self, bits: u32) -> Result<u64, Cause> {
        self.bits.take(bits).ok_or(Cause::CutShort)
    }

    /// Skips up to `max` ones, and the zero after fewer; returns the number of ones.
    #[inline]
    fn take_ones(&mut self, max: u32) -> Result<u32, Cause> {
        self.bits.fill();
        let ones = self.bits.peek().leading_ones().min(max);
        self.take((ones + 1).min(max))?;
        Ok(ones)
    }

    fn read_next(&mut self) -> Result<(), Cause> {
        let time_before_ms = self.timestamp_ms;
        match self.next {
            0 => {
                self.timestamp_ms = take_varint(&mut self.bits).ok_or(Cause::CutShort)?;
                let value_bits = self.take(64)?;
                self.set_value(value_bits);
            }
            1 => {
                self.step_ms = take_uvarint(&mut self.bits).ok_or(Cause::CutShort)?;
                self.pass_step();
                self.read_value()?;
            }
            _ => self.read_joint()?,
        }
        let (position, time_ms) = (self.next, self.timestamp_ms);
        let read = self.starts.read(&mut self.bits, position, time_ms, time_before_ms);
        read.ok_or(Cause::CutShort)
    }

    #[inline]
    fn read_joint(&mut self) -> Result<(), Cause> {
        let width = match self.take_ones(5)? {
            0 => {
                self.pass_step();
                // The previous sample may be a stale marker, which is no base for "the same value".
                self.value_bits = self.base_bits;
                return Ok(());
            }
            1 => {
                self.pass_step();
                let is_new = self.take(1)? == 1;
                return self.read_difference(is_new);
            }
            2 => 13,
            3 => 20,
            4 => 64,
            _ => {
                self.pass_step();
                self.value_bits = STALE_NAN_BITS;
                return Ok(());
            }
        };
        let bits = self.take(width)?;
        // Unlike in `xor`, the topmost bit is the sign.
        let change_ms = (bits << (64 - width)) as i64 >> (64 - width);
        self.step_ms = self.step_ms.wrapping_add(change_ms as u64);
        self.pass_step();
        self.read_value()
    }

    #[inline]
    fn pass_step(&mut self) {
        self.timestamp_ms = self.timestamp_ms.wrapping_add(self.step_ms as i64);
    }

    #[inline]
    fn read_value(&mut self) -> Result<(), Cause> {
        match self.take_ones(3)? {
            0 => self.value_bits = self.base_bits,
            1 => self.read_difference(false)?,
            2 => self.read_difference(true)?,
            _ => self.value_bits = STALE_NAN_BITS,
        }
        Ok(())
    }

    #[inline]
    fn read_difference(&mut self, is_new: bool) -> Result<(), Cause> {
        if is_new {
            let window = self.take(11)?;
            let width = (window & 63) as u8;
            self.leading_zeros = (window >> 6) as u8;
            self.value_width = if width == 0 { 64 } else { width };
            if self.leading_zeros + self.value_width > 64 {
                return Err(Cause::TooWide);
            }
        }
        let bits = self.take(u32::from(self.value_width))?;
        let difference = bits << (64 - self.leading_zeros - self.value_width);
        self.base_bits ^= difference;
        self.value_bits = self.base_bits;
        Ok(())
    }

    fn set_value(&mut self, value_bits: u64) {
        self.value_bits = value_bits;
        // If the first value is a stale marker, the next difference is to 0.
        if !is_stale_nan(f64::from_bits(value_bits)) {
            self.base_bits = value_bits;
        }
    }
}

impl Iterator for Xor2Iter<'_> {
    type Item = Result<Sample, ChunkError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.next == self.count {
            return None;
        }
        if let Err(cause) = self.read_next() {
            let error = self.explain(cause);
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
