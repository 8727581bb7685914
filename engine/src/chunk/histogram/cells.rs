//! Cells: numbers that change from sample to sample, each with the base of its next difference.

use crate::chunk::Encoding;
use crate::chunk::varbit::{BitBuffer, take_varbit_int, take_varbit_uint};
use crate::codec::BitReader;
use crate::model::histogram::Count;
use std::fmt::Debug;

const LEADING_ZEROS_MAX: u32 = 31;

/// Value of `leading_zeros` until the first window is set; no value has that many.
const NO_WINDOW: u8 = 0xff;

/// Reason why a number does not decode.
#[derive(Clone, Copy, Debug)]
pub enum CellError {
    CutShort,
    /// The zeros and the bits that a value claims to have exceed 64 bits.
    TooWide {
        leading_zeros: u8,
        bits: u8,
    },
}

pub trait Cell<T>: Clone + Debug {
    fn first(out: &mut BitBuffer, value: T) -> Self;

    fn put(&mut self, out: &mut BitBuffer, value: T);

    /// Writes the placeholder that a stale marker has instead of a number.
    fn put_nothing(&mut self, out: &mut BitBuffer);

    fn read_first(bits: &mut BitReader<'_>) -> Result<Self, CellError>;

    fn read(&mut self, bits: &mut BitReader<'_>) -> Result<(), CellError>;

    /// The value last written or read.
    fn value(&self) -> T;
}

/// Storage of integer or float counts in chunks.
pub trait ChunkCount: Count {
    /// Encoding of chunks with these counts.
    const ENCODING: Encoding;
    /// Smallest number of bits that a bucket takes in a chunk's first sample.
    const FIRST_BUCKET_BITS_MIN: u64;
    /// Cell of the observation count and the zero bucket.
    type TotalCell: Cell<Self>;
    /// Cell of the count of one bucket.
    type BucketCell: Cell<Self::Bucket>;
}

impl ChunkCount for u64 {
    const ENCODING: Encoding = Encoding::Histogram;
    const FIRST_BUCKET_BITS_MIN: u64 = 1;
    type TotalCell = StepCell;
    type BucketCell = StepCell;
}

impl ChunkCount for f64 {
    const ENCODING: Encoding = Encoding::FloatHistogram;
    const FIRST_BUCKET_BITS_MIN: u64 = 64;
    type TotalCell = XorCell;
    type BucketCell = XorCell;
}

/// An integer, stored as the change of its step, the difference between consecutive values.
#[derive(Clone, Copy, Debug, Default)]
pub struct StepCell {
    value: i64,
    step: i64,
}

impl StepCell {
    fn put_step_change(&mut self, out: &mut BitBuffer, value: i64) {
        let step = value.wrapping_sub(self.value);
        out.put_varbit_int(step.wrapping_sub(self.step));
        *self = StepCell { value, step };
    }

    fn read_step_change(&mut self, bits: &mut BitReader<'_>) -> Result<(), CellError> {
        let change = take_varbit_int(bits).ok_or(CellError::CutShort)?;
        self.step = self.step.wrapping_add(change);
        self.value = self.value.wrapping_add(self.step);
        Ok(())
    }

    fn put_no_change(&mut self, out: &mut BitBuffer) {
        out.put_varbit_int(0);
        // As in Prometheus: the bits mean "no change", but the next step is relative to 0.
        *self = StepCell { value: 0, step: self.value.wrapping_neg() };
    }
}

impl Cell<i64> for StepCell {
    fn first(out: &mut BitBuffer, value: i64) -> StepCell {
        out.put_varbit_int(value);
        StepCell { value, step: 0 }
    }

    #[inline]
    fn put(&mut self, out: &mut BitBuffer, value: i64) {
        self.put_step_change(out, value);
    }

    fn put_nothing(&mut self, out: &mut BitBuffer) {
        self.put_no_change(out);
    }

    fn read_first(bits: &mut BitReader<'_>) -> Result<StepCell, CellError> {
        let value = take_varbit_int(bits).ok_or(CellError::CutShort)?;
        Ok(StepCell { value, step: 0 })
    }

    #[inline]
    fn read(&mut self, bits: &mut BitReader<'_>) -> Result<(), CellError> {
        self.read_step_change(bits)
    }

    fn value(&self) -> i64 {
        self.value
    }
}

/// Totals differ from buckets only in their first value, which is unsigned.
impl Cell<u64> for StepCell {
    fn first(out: &mut BitBuffer, value: u64) -> StepCell {
        out.put_varbit_uint(value);
        StepCell { value: value as i64, step: 0 }
    }

    fn put(&mut self, out: &mut BitBuffer, value: u64) {
        self.put_step_change(out, value as i64);
    }

    fn put_nothing(&mut self, out: &mut BitBuffer) {
        self.put_no_change(out);
    }

    fn read_first(bits: &mut BitReader<'_>) -> Result<StepCell, CellError> {
        let value = take_varbit_uint(bits).ok_or(CellError::CutShort)?;
        Ok(StepCell { value: value as i64, step: 0 })
    }

    fn read(&mut self, bits: &mut BitReader<'_>) -> Result<(), CellError> {
        self.read_step_change(bits)
    }

    fn value(&self) -> u64 {
        self.value as u64
    }
}

/// A float, stored as the XOR with the previous value, in a window of its own as in `xor`.
#[derive(Clone, Copy, Debug)]
pub struct XorCell {
    value_bits: u64,
    /// Zeros before the window, or [`NO_WINDOW`] in a writer; readers begin with all 64 bits.
    leading_zeros: u8,
    trailing_zeros: u8,
}

impl Cell<f64> for XorCell {
    fn first(out: &mut BitBuffer, value: f64) -> XorCell {
        out.put(value.to_bits(), 64);
        XorCell { value_bits: value.to_bits(), leading_zeros: NO_WINDOW, trailing_zeros: 0 }
    }

    fn put(&mut self, out: &mut BitBuffer, value: f64) {
        let difference = value.to_bits() ^ self.value_bits;
        self.value_bits = value.to_bits();
        if difference == 0 {
            out.put(0, 1);
            return;
        }
        let leading_zeros = difference.leading_zeros().min(LEADING_ZEROS_MAX) as u8;
        let trailing_zeros = difference.trailing_zeros() as u8;
        let fits = self.leading_zeros != NO_WINDOW
            && leading_zeros >= self.leading_zeros
            && trailing_zeros >= self.trailing_zeros;
        if fits {
            out.put(0b10, 2);
        } else {
            self.leading_zeros = leading_zeros;
            self.trailing_zeros = trailing_zeros;
            let width = u64::from(64 - leading_zeros - trailing_zeros);
            out.put(0b11 << 11 | u64::from(leading_zeros) << 6 | (width & 63), 13);
        }
        let width = u32::from(64 - self.leading_zeros - self.trailing_zeros);
        out.put(difference >> self.trailing_zeros, width);
    }

    fn put_nothing(&mut self, out: &mut BitBuffer) {
        self.put(out, 0.0);
    }

    fn read_first(bits: &mut BitReader<'_>) -> Result<XorCell, CellError> {
        let value_bits = bits.take(64).ok_or(CellError::CutShort)?;
        Ok(XorCell { value_bits, leading_zeros: 0, trailing_zeros: 0 })
    }

    fn read(&mut self, bits: &mut BitReader<'_>) -> Result<(), CellError> {
        if bits.take(1).ok_or(CellError::CutShort)? == 0 {
            return Ok(());
        }
        if bits.take(1).ok_or(CellError::CutShort)? == 1 {
            let head = bits.take(11).ok_or(CellError::CutShort)?;
            let leading_zeros = (head >> 6) as u8;
            let width = if head & 63 == 0 { 64 } else { (head & 63) as u8 };
            // Neither summand exceeds 64, so their sum fits a byte; only damage makes it exceed 64.
            let trailing_zeros = 64u8.checked_sub(leading_zeros + width);
            self.trailing_zeros =
                trailing_zeros.ok_or(CellError::TooWide { leading_zeros, bits: width })?;
            self.leading_zeros = leading_zeros;
        }
        let width = u32::from(64 - self.leading_zeros - self.trailing_zeros);
        let difference = bits.take(width).ok_or(CellError::CutShort)?;
        self.value_bits ^= difference << self.trailing_zeros;
        Ok(())
    }

    fn value(&self) -> f64 {
        f64::from_bits(self.value_bits)
    }
}
