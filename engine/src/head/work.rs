//! A bound on what matchers may cost in the head. Nothing is written while the head looks for the
//! series that a read wants, so a read whose matchers would keep it busy is refused.

use std::cell::Cell;

/// Most label values that the matchers of one read are held against: less than half a second.
pub const VALUES_TESTED_MAX: u64 = 1_000_000;

/// What is left of the bound.
#[derive(Debug)]
pub struct WorkLeft(Cell<u64>);

/// A read's matchers cost more than they may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the matchers test more than {VALUES_TESTED_MAX} label values of the head")]
pub struct TooMuchWork;

impl WorkLeft {
    /// Of a read that has just begun.
    pub fn of_a_read() -> WorkLeft {
        WorkLeft(Cell::new(VALUES_TESTED_MAX))
    }

    /// Without a bound.
    pub fn unbounded() -> WorkLeft {
        WorkLeft(Cell::new(u64::MAX))
    }

    /// Counts a value that is tested.
    #[inline]
    pub fn test_value(&self) -> Result<(), TooMuchWork> {
        let left = self.0.get().checked_sub(1).ok_or(TooMuchWork)?;
        self.0.set(left);
        Ok(())
    }
}
