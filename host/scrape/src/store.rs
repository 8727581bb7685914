//! What a scrape needs of the store, and what it gives to it.
//!
//! The shape is that of `append` and `series-ref` in the store's interface: rows are columns of
//! numbers, and labels cross only when a series is new. Times are milliseconds since the epoch.

use crate::labels::Labels;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use tidepool_exposition::{MetricType, NativeHistogram};

/// The number by which the store knows a series. It stays valid until the store drops the series;
/// [`StoreError::UnknownSeries`] tells.
pub type SeriesRef = u64;

/// All that one scrape stores. The store takes it in one go: readers see it as a whole or not at
/// all, and other writes come before or after it. The report is stored last, so that all of a
/// scrape is there whose `up` is there. What a crash or a full disk in the midst of it may leave of
/// a batch says [`Store::append`].
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// Row i is sample (`timestamps_ms[i]`, `values[i]`) of `series[i]`. The samples of the target
    /// come first, the report is the end.
    pub series: Vec<SeriesRef>,
    /// Times of the rows.
    pub timestamps_ms: Vec<i64>,
    /// Values of the rows.
    pub values: Vec<f64>,
    /// Series that end: each gets a staleness marker, unless it has a sample at that time or
    /// later. That holds even where the store takes samples out of order.
    pub markers: Vec<SeriesRef>,
    /// The time of all markers.
    pub markers_at_ms: i64,
    /// Native histograms.
    pub histograms: Vec<HistogramRow>,
    /// Exemplars, by ascending time within a series.
    pub exemplars: Vec<ExemplarRow>,
    /// Metadata of metric families that is new or has changed.
    pub metadata: Vec<FamilyMetadata>,
}

/// A native histogram of a series.
#[derive(Clone, Debug, PartialEq)]
pub struct HistogramRow {
    /// The series.
    pub labels: Labels,
    /// Time of the sample.
    pub timestamp_ms: i64,
    /// The sample.
    pub histogram: NativeHistogram,
}

/// An exemplar of a series.
#[derive(Clone, Debug, PartialEq)]
pub struct ExemplarRow {
    /// The series.
    pub series: Labels,
    /// The exemplar's own labels.
    pub labels: Labels,
    /// Its value.
    pub value: f64,
    /// Its own time, or that of its sample.
    pub timestamp_ms: i64,
}

/// What a target says of a metric family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FamilyMetadata {
    /// Name of the family.
    pub family: String,
    /// Its type.
    pub kind: MetricType,
    /// What it counts; may be empty.
    pub help: String,
    /// The unit of its values; may be empty.
    pub unit: String,
}

/// Why the store refuses samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Their series has a sample that is newer by more than the window for samples out of order.
    OutOfOrder,
    /// Their series has another value at their time.
    Duplicate,
    /// They are too old, or too far ahead of the clock.
    OutOfBounds,
    /// Their labels are not valid, or larger than the store allows.
    Labels,
    /// Their series is new, and there are as many as there may be.
    SeriesLimit,
    /// Memory is short.
    Memory,
    /// The disk is full, or fails.
    Disk,
    /// Something else.
    Other,
}

impl Reason {
    /// All of them.
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

    /// The value of the label `reason`.
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

/// How many samples were refused, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refused([u64; Reason::ALL.len()]);

impl Refused {
    /// So many for one reason.
    pub fn new(reason: Reason, count: u64) -> Refused {
        let mut refused = Refused::default();
        refused.add(reason, count);
        refused
    }

    /// Counts more.
    pub fn add(&mut self, reason: Reason, count: u64) {
        self.0[reason as usize] += count;
    }

    /// Counts those of another, too.
    pub fn add_all(&mut self, other: Refused) {
        other.each().for_each(|(reason, count)| self.add(reason, count));
    }

    /// Those of a reason.
    pub fn of(&self, reason: Reason) -> u64 {
        self.0[reason as usize]
    }

    /// All of them.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Reasons and how many were refused for each, also for none.
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

/// What became of a batch. Rows are refused one by one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Appended {
    /// Samples that were refused.
    pub refused: Refused,
    /// What the store says of the first of them for which it says something.
    pub first_refusal: Option<String>,
    /// Exemplars older than the newest one of their series.
    pub exemplars_out_of_order: u64,
    /// Which rows of the columns were refused, ascending, if the store knows.
    pub refused_rows: Vec<u32>,
}

/// Why the store stored nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// A reference of the batch is not valid any more: ask again for all.
    #[error("the store does not know a series of the scrape any more")]
    UnknownSeries,
    /// The store cannot store now.
    #[error("the store refused the scrape: {what}")]
    Unavailable {
        /// Why all samples are refused.
        reason: Reason,
        /// The same in words.
        what: String,
    },
}

impl StoreError {
    /// Why all samples are refused.
    pub fn reason(&self) -> Reason {
        match self {
            StoreError::UnknownSeries => Reason::Other,
            StoreError::Unavailable { reason, .. } => *reason,
        }
    }
}

/// Why the store returns no reference for a label set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the store refused a series: {what}")]
pub struct SeriesRefused {
    /// Why its samples are refused.
    pub reason: Reason,
    /// The same in words.
    pub what: String,
}

/// Where samples go.
pub trait Store: Send + Sync + 'static {
    /// References of label sets, in their order; the series are created if needed.
    fn resolve(
        &self,
        sets: Vec<Labels>,
    ) -> impl Future<Output = Result<Vec<Result<SeriesRef, SeriesRefused>>, StoreError>> + Send;

    /// Stores a batch. `now_ms` is the current time. On an error the report was not stored, and of
    /// the rest nothing either if it is within the store's limit for one record; what was stored of
    /// a larger one may stay.
    fn append(
        &self,
        batch: Arc<Batch>,
        now_ms: i64,
    ) -> impl Future<Output = Result<Appended, StoreError>> + Send;
}
