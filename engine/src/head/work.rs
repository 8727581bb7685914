//! A bound on the work of one call. Writes wait while the head works for a read, so a read does at
//! most one slice of work in a call.
//!
//! Work beyond a slice is either finished over several calls ([`NotNow::Again`]), or not done by
//! the head at all ([`NotNow::TooMuch`]): then the reader walks over all series in slices and
//! applies its matchers itself.

use std::cell::Cell;

/// Work of one slice, in units of about 20 ns: about two milliseconds. Tests of this crate use
/// smaller slices, so that they cover work of several slices.
const SLICE_UNITS: u64 = if cfg!(test) { 200 } else { 100_000 };

/// Items that one slice sorts into a list; each item is compared about 30 times.
const SLICE_SORTED: usize = if cfg!(test) { 5 } else { 1024 };

/// Units that the test of a label value costs, in addition to its length.
const UNITS_PER_VALUE: u64 = 4;

/// Elements of a list of series that cost one unit.
const ELEMENTS_PER_UNIT: u64 = 4;

/// Bytes of a label value that cost one unit when a matcher tests the value.
const BYTES_PER_UNIT: u64 = 16;

/// Remaining work of a slice.
#[derive(Debug)]
pub struct WorkLeft {
    units: Cell<u64>,
    is_bounded: bool,
}

/// Reason why the head did not answer within one slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotNow {
    /// A part of the work is done; the same call continues it.
    Again,
    /// The work does not fit into one slice.
    TooMuch,
}

impl WorkLeft {
    /// Returns the work of one slice.
    pub fn slice() -> WorkLeft {
        WorkLeft { units: Cell::new(SLICE_UNITS), is_bounded: true }
    }

    /// Returns unbounded work, for when no other call waits for the head.
    pub fn unbounded() -> WorkLeft {
        WorkLeft { units: Cell::new(u64::MAX), is_bounded: false }
    }

    /// Returns whether the work is bounded.
    pub fn is_bounded(&self) -> bool {
        self.is_bounded
    }

    /// Number of items that may be sorted into a list.
    pub fn sorted_max(&self) -> usize {
        if self.is_bounded { SLICE_SORTED } else { usize::MAX }
    }

    /// Counts the test of a value of this length.
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
