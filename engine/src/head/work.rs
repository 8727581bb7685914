//! A bound on what one call may cost the head. Nothing is written while the head works for a read,
//! so a call for a reader does a slice of work, and no more.
//!
//! What does not fit into one slice is either finished over several calls ([`NotNow::Again`]), or
//! is not the head's work at all ([`NotNow::TooMuch`]): then the reader walks over all series in
//! slices and applies its matchers itself.

use std::cell::Cell;

/// Work of one slice, in units of about 20 ns: about two milliseconds. Tests of this crate do less
/// at a time, so that they meet what takes several slices.
const SLICE_UNITS: u64 = if cfg!(test) { 200 } else { 100_000 };

/// Items that one slice takes into a sorted list: each is compared about 30 times.
const SLICE_SORTED: usize = if cfg!(test) { 5 } else { 1024 };

/// Units that one label value costs which a matcher tests.
const UNITS_PER_VALUE: u64 = 4;

/// Elements of a list of series that cost one unit.
const ELEMENTS_PER_UNIT: u64 = 4;

/// Bytes of a label value that cost one unit when an expression is held against it.
const BYTES_PER_UNIT: u64 = 16;

/// What is left of a slice.
#[derive(Debug)]
pub struct WorkLeft {
    units: Cell<u64>,
    is_bounded: bool,
}

/// Why the head did not answer within one slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotNow {
    /// A part of the work is done; the same call goes on.
    Again,
    /// The work does not fit into one slice.
    TooMuch,
}

impl WorkLeft {
    /// One slice.
    pub fn slice() -> WorkLeft {
        WorkLeft { units: Cell::new(SLICE_UNITS), is_bounded: true }
    }

    /// Without a bound: where no other call waits for the head.
    pub fn unbounded() -> WorkLeft {
        WorkLeft { units: Cell::new(u64::MAX), is_bounded: false }
    }

    /// Whether there is a bound.
    pub fn is_bounded(&self) -> bool {
        self.is_bounded
    }

    /// Items that may be taken into a sorted list.
    pub fn sorted_max(&self) -> usize {
        if self.is_bounded { SLICE_SORTED } else { usize::MAX }
    }

    /// Counts a value of so many bytes that is tested.
    #[inline]
    pub fn test_value(&self, bytes: usize) -> Result<(), NotNow> {
        self.spend(UNITS_PER_VALUE + bytes as u64 / BYTES_PER_UNIT)
    }

    /// Counts elements of lists that are read or compared.
    #[inline]
    pub fn read_elements(&self, count: usize) -> Result<(), NotNow> {
        self.spend(1 + count as u64 / ELEMENTS_PER_UNIT)
    }

    #[inline]
    fn spend(&self, units: u64) -> Result<(), NotNow> {
        if !self.is_bounded {
            return Ok(());
        }
        let left = self.units.get().checked_sub(units).ok_or(NotNow::TooMuch)?;
        self.units.set(left);
        Ok(())
    }
}
