//! Limits on the time of calls, by kind of machine code.

use super::ticker::Ticks;
use super::watch::Watch;
use super::watchdog::EPOCH_TICK;
use std::time::Duration;

/// The means by which calls that take too long are ended.
pub(super) enum Ends {
    /// Epoch ticks, which end the instance.
    Instance(Ticks),
    /// Reports to the owner, who ends the process: this machine code cannot be interrupted.
    Process(Watch),
}

/// Number of ticks until a deadline, rounded up; without one, more than will ever pass.
pub(super) fn epoch_ticks(deadline: Option<Duration>) -> u64 {
    let ticks = |deadline: Duration| deadline.as_millis().div_ceil(EPOCH_TICK.as_millis());
    // Not `u64::MAX`, because the runtime adds the number to the current epoch.
    deadline.map_or(u64::MAX / 2, |deadline| ticks(deadline) as u64)
}
