//! Counters that the head keeps.

use super::RefusalReason;

/// Counts since the head was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeadCounters {
    /// Number of series that were created.
    pub series_created: u64,
    /// Number of series that were dropped.
    pub series_removed: u64,
    /// Number of new samples that were stored.
    pub samples_appended: u64,
    /// New out-of-order samples that were stored; part of `samples_appended`.
    pub samples_out_of_order: u64,
    /// Samples that were stored already.
    pub samples_duplicate: u64,
    /// Refused: another value is stored at this time.
    pub samples_refused_duplicate: u64,
    /// Refused: older than the newest sample of the series.
    pub samples_refused_out_of_order: u64,
    /// Refused: older than the window.
    pub samples_refused_too_old: u64,
    /// Refused: too far ahead of the clock.
    pub samples_refused_in_future: u64,
    /// Refused: the labels of their series are not valid, or too large.
    pub samples_refused_labels: u64,
    /// Refused: their series is new, and the limit is reached.
    pub samples_refused_series_limit: u64,
    /// Refused: their series is new, and memory is short.
    pub samples_refused_memory: u64,
    /// Refused: histograms whose parts contradict each other.
    pub samples_refused_histogram: u64,
}

impl HeadCounters {
    /// Counts refused samples. Refusals of exemplars or of series without samples are not counted.
    pub(crate) fn count_refused(&mut self, reason: RefusalReason, samples: u64) {
        *match reason {
            RefusalReason::DuplicateSample => &mut self.samples_refused_duplicate,
            RefusalReason::OutOfOrder => &mut self.samples_refused_out_of_order,
            RefusalReason::TooOld => &mut self.samples_refused_too_old,
            RefusalReason::TooFarInFuture => &mut self.samples_refused_in_future,
            RefusalReason::InvalidLabels | RefusalReason::InvalidSymbolRef => {
                &mut self.samples_refused_labels
            }
            RefusalReason::SeriesLimit => &mut self.samples_refused_series_limit,
            RefusalReason::MemoryLimit => &mut self.samples_refused_memory,
            RefusalReason::InvalidHistogram => &mut self.samples_refused_histogram,
            RefusalReason::NoSamples
            | RefusalReason::InvalidExemplar
            | RefusalReason::ExemplarsOff => return,
        } += samples;
    }
}
