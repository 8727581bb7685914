//! Splits numbers, strings and chunks off the front of a piece of a head snapshot. Numbers are
//! little-endian, as in WebAssembly's memory.

use super::{SavedHeadError, damaged};

/// The rest of a piece, not yet decoded.
#[derive(Clone, Copy, Debug)]
pub struct Bytes<'a>(pub &'a [u8]);

impl<'a> Bytes<'a> {
    /// Returns whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Splits off a part of fixed length.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<&'a [u8; N], SavedHeadError> {
        let (array, rest) = self.0.split_first_chunk::<N>().ok_or(SavedHeadError::CutShort)?;
        self.0 = rest;
        Ok(array)
    }

    /// Splits off a part of any length.
    #[inline]
    pub fn part(&mut self, len: usize) -> Result<&'a [u8], SavedHeadError> {
        let (part, rest) = self.0.split_at_checked(len).ok_or(SavedHeadError::CutShort)?;
        self.0 = rest;
        Ok(part)
    }

    /// Splits off a single byte.
    #[inline]
    pub fn u8(&mut self) -> Result<u8, SavedHeadError> {
        self.array::<1>().map(|[byte]| *byte)
    }

    /// Splits off a flag: a byte that is 0 or 1.
    pub fn flag(&mut self) -> Result<bool, SavedHeadError> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(damaged("a flag is neither yes nor no")),
        }
    }

    /// Splits off a number of four bytes.
    #[inline]
    pub fn u32(&mut self) -> Result<u32, SavedHeadError> {
        self.array().map(|bytes| u32::from_le_bytes(*bytes))
    }

    /// Splits off a number of eight bytes.
    #[inline]
    pub fn u64(&mut self) -> Result<u64, SavedHeadError> {
        self.array().map(|bytes| u64::from_le_bytes(*bytes))
    }

    /// Splits off a time in milliseconds, signed.
    #[inline]
    pub fn i64(&mut self) -> Result<i64, SavedHeadError> {
        self.array().map(|bytes| i64::from_le_bytes(*bytes))
    }

    /// Splits off a list of numbers of four bytes, after its length.
    #[inline]
    pub fn u32s(&mut self) -> Result<impl ExactSizeIterator<Item = u32> + use<'a>, SavedHeadError> {
        // The product may exceed the 32 bits that WebAssembly has for lengths.
        let len = (self.u32()? as usize).checked_mul(4).ok_or(SavedHeadError::CutShort)?;
        let (numbers, _) = self.part(len)?.as_chunks::<4>();
        Ok(numbers.iter().map(|bytes| u32::from_le_bytes(*bytes)))
    }

    /// Splits off a text, after its length in bytes.
    pub fn text(&mut self) -> Result<&'a str, SavedHeadError> {
        let len = self.u32()? as usize;
        std::str::from_utf8(self.part(len)?).map_err(|_| damaged("a text is not UTF-8"))
    }
}
