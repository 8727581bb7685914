//! Takes numbers, strings and chunks off the front of a piece. Numbers are little-endian: that is
//! how WebAssembly has them in memory.

use super::{SavedHeadError, damaged};

/// What is left of a piece.
#[derive(Clone, Copy, Debug)]
pub struct Bytes<'a>(pub &'a [u8]);

impl<'a> Bytes<'a> {
    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A part of fixed length.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<&'a [u8; N], SavedHeadError> {
        let (array, rest) = self.0.split_first_chunk::<N>().ok_or(SavedHeadError::CutShort)?;
        self.0 = rest;
        Ok(array)
    }

    /// A part of any length.
    #[inline]
    pub fn part(&mut self, len: usize) -> Result<&'a [u8], SavedHeadError> {
        let (part, rest) = self.0.split_at_checked(len).ok_or(SavedHeadError::CutShort)?;
        self.0 = rest;
        Ok(part)
    }

    /// A byte.
    #[inline]
    pub fn u8(&mut self) -> Result<u8, SavedHeadError> {
        self.array::<1>().map(|[byte]| *byte)
    }

    /// Yes or no.
    pub fn flag(&mut self) -> Result<bool, SavedHeadError> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(damaged("a flag is neither yes nor no")),
        }
    }

    /// A number of four bytes.
    #[inline]
    pub fn u32(&mut self) -> Result<u32, SavedHeadError> {
        self.array().map(|bytes| u32::from_le_bytes(*bytes))
    }

    /// A number of eight bytes.
    #[inline]
    pub fn u64(&mut self) -> Result<u64, SavedHeadError> {
        self.array().map(|bytes| u64::from_le_bytes(*bytes))
    }

    /// A time.
    #[inline]
    pub fn i64(&mut self) -> Result<i64, SavedHeadError> {
        self.array().map(|bytes| i64::from_le_bytes(*bytes))
    }

    /// A list of numbers of four bytes: their number, then they.
    #[inline]
    pub fn u32s(&mut self) -> Result<impl ExactSizeIterator<Item = u32> + use<'a>, SavedHeadError> {
        let len = (self.u32()? as usize).checked_mul(4).ok_or(SavedHeadError::CutShort)?;
        let (numbers, _) = self.part(len)?.as_chunks::<4>();
        Ok(numbers.iter().map(|bytes| u32::from_le_bytes(*bytes)))
    }

    /// A text: its length, then its bytes.
    pub fn text(&mut self) -> Result<&'a str, SavedHeadError> {
        let len = self.u32()? as usize;
        std::str::from_utf8(self.part(len)?).map_err(|_| damaged("a text is not UTF-8"))
    }
}
