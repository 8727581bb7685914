//! What the head counts.

use super::RefusalReason;

/// Counts since the head was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeadCounters {
    /// Series that came to be.
    pub series_created: u64,
    /// Series that were dropped.
    pub series_removed: u64,
    /// Samples stored.
    pub samples_appended: u64,
    /// Of those, the ones that came out of order.
    pub samples_out_of_order: u64,
    /// Samples that were there already.
    pub samples_duplicate: u64,
    /// Refused: another value is stored at this time.
    pub samples_refused_duplicate: u64,
    /// Refused: older than the newest sample of the series.
    pub samples_refused_out_of_order: u64,
    /// Refused: older than the window.
    pub samples_refused_too_old: u64,
    /// Refused: too far ahead of the clock.
    pub samples_refused_in_future: u64,
}

impl HeadCounters {
    /// Counts a sample that the rules of time refuse.
    pub(super) fn count_refused(&mut self, reason: RefusalReason) {
        *match reason {
            RefusalReason::DuplicateSample => &mut self.samples_refused_duplicate,
            RefusalReason::TooOld => &mut self.samples_refused_too_old,
            RefusalReason::TooFarInFuture => &mut self.samples_refused_in_future,
            _ => &mut self.samples_refused_out_of_order,
        } += 1;
    }
}
