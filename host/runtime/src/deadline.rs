//! What ends calls that take too long.

use super::ticker::Ticks;
use super::watch::Watch;
use super::watchdog::EPOCH_TICK;
use std::time::Duration;

/// What ends calls of an instance that take too long.
pub(super) enum Ends {
    /// Ticks end the instance.
    Instance(Ticks),
    /// Its machine code has no place where it could end. Whoever made it ends the process.
    Process(Watch),
}

/// A deadline in ticks, rounded up; without one, more than there will ever be.
pub(super) fn epoch_ticks(deadline: Option<Duration>) -> u64 {
    let ticks = |deadline: Duration| deadline.as_millis().div_ceil(EPOCH_TICK.as_millis());
    deadline.map_or(u64::MAX / 2, |deadline| ticks(deadline) as u64)
}
