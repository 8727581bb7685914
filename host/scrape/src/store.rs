//! The store as scrapes use it: takes batches, returns series references and refusals.
//!
//! Follows `append` and `series-ref` in the store's interface: rows are columns of numbers, and
//! labels are passed only for new series. Times are milliseconds since the epoch.

use crate::labels::Labels;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use tidepool_exposition::{MetricType, NativeHistogram};

/// Number of a series in the store. It is valid until the store drops the series; then
/// [`Store::append`] fails with [`StoreError::UnknownSeries`].
pub type SeriesRef = u64;

/// All rows of one scrape, stored as one unit: readers see all or none of them, and other writes
/// come before or after. The report is stored last, so a stored `up` shows that the scrape is
/// complete. [`Store::append`] states what a crash or a full disk may leave of a batch.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// Row i is sample (`timestamps_ms[i]`, `values[i]`) of `series[i]`. The samples of the target
    /// precede the rows of the report.
    pub series: Vec<SeriesRef>,
    pub timestamps_ms: Vec<i64>,
    pub values: Vec<f64>,
    /// Ended series. Each gets a staleness marker, unless the series has a sample at or after
    /// `markers_at_ms`, even if the store accepts out-of-order samples.
    pub markers: Vec<SeriesRef>,
    /// The time of all markers.
    pub markers_at_ms: i64,
    pub histograms: Vec<HistogramRow>,
    /// Exemplars, by ascending time within a series.
    pub exemplars: Vec<ExemplarRow>,
    /// Metadata of metric families that is new or has changed.
    pub metadata: Vec<FamilyMetadata>,
}

/// A native histogram of a series.
#[derive(Clone, Debug, PartialEq)]
pub struct HistogramRow {
    pub labels: Labels,
    pub timestamp_ms: i64,
    pub histogram: NativeHistogram,
}

/// An exemplar of a series.
#[derive(Clone, Debug, PartialEq)]
pub struct ExemplarRow {
    pub series: Labels,
    /// Labels of the exemplar itself.
    pub labels: Labels,
    pub value: f64,
    /// Timestamp of the exemplar; if it has none, the timestamp of its sample.
    pub timestamp_ms: i64,
}

/// Metadata of a metric family, as a target exposes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FamilyMetadata {
    pub family: String,
    pub kind: MetricType,
    /// Description of the family; may be empty.
    pub help: String,
    /// Unit of the values; may be empty.
    pub unit: String,
}

/// Reasons why the store refuses samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The series has a sample that is newer by more than the out-of-order window.
    OutOfOrder,
    /// The series has another value at the sample's time.
    Duplicate,
    /// The sample is too old, or too far ahead of the clock.
    OutOfBounds,
    /// The labels are not valid, or larger than the store allows.
    Labels,
    /// The series is new, and the limit of series is reached.
    SeriesLimit,
    Memory,
    /// The disk is full or faulty.
    Disk,
    Other,
}

impl Reason {
    pub const ALL: [Reason; 8] = [
        Reason::OutOfOrder,
        Reason::Duplicate,
        Reason::OutOfBounds,
        Reason::Labels,
        Reason::SeriesLimit,
        Reason::Memory,
        Reason::Disk,
        Reason::Other,
    ];

    /// Returns the value of the label `reason`.
    pub fn as_str(self) -> &'static str {
        match self {
            Reason::OutOfOrder => "out_of_order",
            Reason::Duplicate => "duplicate",
            Reason::OutOfBounds => "out_of_bounds",
            Reason::Labels => "labels",
            Reason::SeriesLimit => "series_limit",
            Reason::Memory => "memory",
            Reason::Disk => "disk",
            Reason::Other => "other",
        }
    }

    fn in_words(self) -> &'static str {
        match self {
            Reason::OutOfOrder => "out of order",
            Reason::Duplicate => "with another value than their series has at their time",
            Reason::OutOfBounds => "too old or too far ahead of the clock",
            Reason::Labels => "with labels that are not valid or too large",
            Reason::SeriesLimit => "of series beyond the limit of series",
            Reason::Memory => "for want of memory",
            Reason::Disk => "for want of space on the disk",
            Reason::Other => "for other reasons",
        }
    }
}

/// Numbers of refused samples, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refused([u64; Reason::ALL.len()]);

impl Refused {
    /// Creates a count of `count` samples for one reason.
    pub fn new(reason: Reason, count: u64) -> Refused {
        let mut refused = Refused::default();
        refused.add(reason, count);
        refused
    }

    pub fn add(&mut self, reason: Reason, count: u64) {
        // The variants have the order of `ALL`, which [`Refused::each`] relies on.
        self.0[reason as usize] += count;
    }

    /// Adds the counts of another value.
    pub fn add_all(&mut self, other: Refused) {
        other.each().for_each(|(reason, count)| self.add(reason, count));
    }

    pub fn of(&self, reason: Reason) -> u64 {
        self.0[reason as usize]
    }

    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Yields each reason with its count, including zeros.
    pub fn each(&self) -> impl Iterator<Item = (Reason, u64)> {
        Reason::ALL.into_iter().zip(self.0)
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let some = self.each().filter(|(_, count)| *count > 0);
        for (at, (reason, count)) in some.enumerate() {
            let comma = if at > 0 { ", " } else { "" };
            write!(f, "{comma}{count} {}", reason.in_words())?;
        }
        Ok(())
    }
}

/// Outcome of a stored batch; each row is accepted or refused separately.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Appended {
    pub refused: Refused,
    /// The store's first explanation of a refusal, if it has any.
    pub first_refusal: Option<String>,
    /// Number of exemplars older than the newest exemplar of their series.
    pub exemplars_out_of_order: u64,
    /// Indexes of refused rows, ascending; empty if the store does not report rows.
    pub refused_rows: Vec<u32>,
}

/// Reasons why the store does not store a batch, or resolves no series.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The store has dropped a series of the batch: all references have to be requested again.
    #[error("the store does not know a series of the scrape any more")]
    UnknownSeries,
    /// The store cannot store anything now.
    #[error("the store refused the scrape: {what}")]
    Unavailable {
        /// Reason that is reported for all samples.
        reason: Reason,
        /// Description for logs and the API.
        what: String,
    },
}

impl StoreError {
    /// Returns the reason that is reported for all samples.
    pub fn reason(&self) -> Reason {
        match self {
            StoreError::UnknownSeries => Reason::Other,
            StoreError::Unavailable { reason, .. } => *reason,
        }
    }
}

/// Reason why the store returns no reference for a label set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the store refused a series: {what}")]
pub struct SeriesRefused {
    /// Reason that is reported for the samples of the series.
    pub reason: Reason,
    pub what: String,
}

/// The store: resolves series to references, and appends batches.
pub trait Store: Send + Sync + 'static {
    /// Returns references of label sets, in their order; creates series if needed.
    fn resolve(
        &self,
        sets: Vec<Labels>,
    ) -> impl Future<Output = Result<Vec<Result<SeriesRef, SeriesRefused>>, StoreError>> + Send;

    /// Stores a batch. `now_ms` is the current time. After an error the report is not stored. If
    /// the batch fits into one record of the store's log, no row is stored; of a larger batch, some
    /// rows may be stored.
    fn append(
        &self,
        batch: Arc<Batch>,
        now_ms: i64,
    ) -> impl Future<Output = Result<Appended, StoreError>> + Send;
}
