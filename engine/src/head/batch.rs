//! One batch on its way into the head: checked row by row, logged as a whole, then applied.
//!
//! Nothing of a batch is visible before it is applied. Series that it created are removed if the
//! log refuses it, so that a batch either reaches the log or leaves no trace.

use super::exemplars::Exemplar;
use super::label_budget::LabelBudget;
use super::series::{NO_ROW, Slot};
use crate::model::{Sample, Value};
use rustc_hash::FxHashMap;

/// Largest number of refusals that are described as text.
pub const REFUSALS_DESCRIBED_MAX: usize = 10;

/// Longest description of one refusal, in bytes.
pub const REFUSAL_DETAIL_BYTES_MAX: usize = 512;

/// Reason why a row is not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalReason {
    /// The series has another value at this time.
    DuplicateSample,
    /// Older than the newest sample of its series.
    OutOfOrder,
    /// Older than the window in which samples are accepted.
    TooOld,
    /// Further ahead of the clock than allowed.
    TooFarInFuture,
    /// The labels are not a valid label set.
    InvalidLabels,
    /// A reference points outside the request's symbols.
    InvalidSymbolRef,
    /// The series has neither samples nor histograms.
    NoSamples,
    /// The series is new, and the head has reached its limit of series.
    SeriesLimit,
    /// The series is new, and memory is short.
    MemoryLimit,
    /// A histogram whose parts contradict each other.
    InvalidHistogram,
    /// The labels of the exemplar or of its series are too long.
    InvalidExemplar,
    /// Exemplars are disabled in this head.
    ExemplarsOff,
}

impl RefusalReason {
    /// Returns whether the row may be accepted when it is sent again.
    fn may_clear(self) -> bool {
        matches!(self, RefusalReason::SeriesLimit | RefusalReason::MemoryLimit)
    }
}

/// One refused row in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The rule that refused the row.
    pub reason: RefusalReason,
    /// Text that names the series and explains the refusal.
    pub detail: String,
    /// Time of the row, or 0 for a whole series.
    pub timestamp_ms: i64,
}

/// Result of a batch: rows written and rows refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteOutcome {
    /// Floats stored, exact duplicates of stored ones included.
    pub samples_written: u64,
    /// Native histograms stored, duplicates included.
    pub histograms_written: u64,
    /// Exemplars that were stored, duplicates included.
    pub exemplars_written: u64,
    /// Samples and histograms that were stored already; they also count as written.
    pub samples_duplicate: u64,
    /// Rows (or whole series) refused.
    pub refused: u64,
    /// Descriptions of the first refusals.
    pub refusals: Vec<Refusal>,
}

impl WriteOutcome {
    /// Counts a refusal; describes it if it is among the first few or the first that may clear.
    pub(super) fn refuse(
        &mut self,
        reason: RefusalReason,
        timestamp_ms: i64,
        rows: u64,
        detail: impl FnOnce() -> String,
    ) {
        self.refused += rows;
        if self.refusals.len() >= REFUSALS_DESCRIBED_MAX {
            // A refusal that may clear tells the sender to retry, so one such must be described.
            if !reason.may_clear() || self.refusals.iter().any(|other| other.reason.may_clear()) {
                return;
            }
            self.refusals.pop();
        }
        // The text is made only now, as most refusals are counted without one.
        let mut detail = detail();
        detail.truncate(detail.floor_char_boundary(REFUSAL_DETAIL_BYTES_MAX));
        self.refusals.push(Refusal { reason, detail, timestamp_ms });
    }

    /// Counts a row as written: a new row, or a duplicate of a stored one.
    #[inline]
    pub(super) fn count_written(&mut self, value: &Value) {
        match value {
            Value::Float(_) => self.samples_written += 1,
            _ => self.histograms_written += 1,
        }
    }
}

/// A row that passed the checks. Most rows are floats, so histograms are stored separately.
#[derive(Clone, Copy)]
pub(super) struct Row {
    pub slot: Slot,
    /// Number by which the log refers to the series.
    pub series_ref: u64,
    /// Previous row of the series in this batch, or `NO_ROW`; out of order only if it is the first.
    pub previous: u32,
    /// Time and value; if the row is a histogram, only the time is valid.
    pub sample: Sample,
    /// Index into [`Batch::histograms`], or [`IS_FLOAT`].
    pub histogram: u32,
    pub is_out_of_order: bool,
}

/// Value of [`Row::histogram`] for a float.
pub(super) const IS_FLOAT: u32 = u32::MAX;

/// The batch in progress; its buffers are reused by the next batch.
#[derive(Default)]
pub struct Batch {
    pub(super) rows: Vec<Row>,
    pub(super) histograms: Vec<Value>,
    pub(super) exemplars: Vec<(Slot, Exemplar)>,
    pub(super) created: Vec<Slot>,
    /// Row numbers by series and time, of all rows if `is_indexed`, else of out-of-order rows only.
    pub(super) by_time: FxHashMap<(Slot, i64), u32>,
    /// Whether `by_time` has all rows.
    pub(super) is_indexed: bool,
    /// Oldest and newest time, both included, at which a float newer than its series is in order.
    pub(super) in_order_ms: (i64, i64),
    pub(super) outcome: WriteOutcome,
    pub(super) label_budget: LabelBudget,
    /// Reason of the last refusal since [`Batch::take_refused`] was last called.
    refused: Option<RefusalReason>,
}

impl Batch {
    pub(super) fn begin(&mut self) {
        self.clear();
        self.outcome = WriteOutcome::default();
        self.label_budget = LabelBudget::default();
        self.refused = None;
    }

    pub(super) fn clear(&mut self) {
        self.rows.clear();
        self.histograms.clear();
        self.exemplars.clear();
        self.created.clear();
        self.by_time.clear();
        self.is_indexed = false;
    }

    pub(super) fn index_by_time(&mut self) {
        let rows = self.rows.iter().zip(0..);
        self.by_time.extend(rows.map(|(row, place)| ((row.slot, row.sample.timestamp_ms), place)));
        self.is_indexed = true;
    }

    #[inline]
    pub(super) fn push(
        &mut self,
        (slot, series_ref): (Slot, u64),
        previous: u32,
        timestamp_ms: i64,
        value: Value,
        is_out_of_order: bool,
    ) {
        let (value, histogram) = match value {
            Value::Float(value) => (value, IS_FLOAT),
            histogram => {
                self.histograms.push(histogram);
                (0.0, self.histograms.len() as u32 - 1)
            }
        };
        // Until the batch is indexed, in-order rows are found by following `Row::previous`.
        if is_out_of_order || self.is_indexed {
            self.by_time.insert((slot, timestamp_ms), self.rows.len() as u32);
        }
        let sample = Sample { timestamp_ms, value };
        self.rows.push(Row { slot, series_ref, previous, sample, histogram, is_out_of_order });
    }

    /// Adds a float that is in order and the first row of its series.
    #[inline]
    pub(super) fn push_float(&mut self, slot: Slot, series_ref: u64, sample: Sample) {
        let (previous, histogram, is_out_of_order) = (NO_ROW, IS_FLOAT, false);
        self.rows.push(Row { slot, series_ref, previous, sample, histogram, is_out_of_order });
    }

    #[inline]
    pub(super) fn value(&self, row: &Row) -> Value {
        // [`IS_FLOAT`] exceeds all histogram indices, so the look-up fails for floats only.
        match self.histograms.get(row.histogram as usize) {
            None => Value::Float(row.sample.value),
            Some(histogram) => histogram.clone(),
        }
    }

    /// Counts a refusal; describes it if it is among the first few or the first that may clear.
    pub(crate) fn refuse(
        &mut self,
        reason: RefusalReason,
        timestamp_ms: i64,
        rows: u64,
        detail: impl FnOnce() -> String,
    ) {
        self.refused = Some(reason);
        self.outcome.refuse(reason, timestamp_ms, rows, detail);
    }

    /// Returns the reason of the last refusal since the previous call, if any.
    pub fn take_refused(&mut self) -> Option<RefusalReason> {
        self.refused.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_that_may_clear_is_always_described() {
        let mut outcome = WriteOutcome::default();
        for _ in 0..REFUSALS_DESCRIBED_MAX * 2 {
            outcome.refuse(RefusalReason::InvalidLabels, 0, 1, String::new);
        }
        for number in 0..2 {
            outcome.refuse(RefusalReason::SeriesLimit, 0, 1, || format!("{number}"));
        }
        assert_eq!(outcome.refused, 22);
        assert_eq!(outcome.refusals.len(), REFUSALS_DESCRIBED_MAX);
        let clears: Vec<&str> = outcome
            .refusals
            .iter()
            .filter(|refusal| refusal.reason.may_clear())
            .map(|refusal| refusal.detail.as_str())
            .collect();
        assert_eq!(clears, ["0"]);
    }
}
