//! The store from which an evaluation reads its series.

use crate::model::{Labels, Samples};
use crate::syntax::Matcher;

/// Series and samples that a scan needs. The store may return more, but not less.
#[derive(Clone, Debug, PartialEq)]
pub struct Selection {
    /// Matchers that must all hold.
    pub matchers: Vec<Matcher>,
    /// Time of the oldest sample that is needed, included.
    pub start_ms: i64,
    /// Time of the newest sample that is needed, included.
    pub end_ms: i64,
    /// Samples and buckets that the store may leave out.
    pub hints: Hints,
}

/// Parts of the answer that a store may leave out or prepare.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    /// Milliseconds between evaluations; 0 if all samples of the selection are used.
    pub step_ms: i64,
    /// Window of each evaluation in milliseconds. The last window ends with the selection, so the
    /// samples that are used are in `(end_ms - k * step_ms - range_ms, end_ms - k * step_ms]`.
    pub range_ms: i64,
    /// Buckets of histograms are not used: count and sum suffice. A store that leaves the buckets
    /// out must state for each histogram whether the counter was reset.
    pub without_buckets: bool,
    /// No sample is used. The store may add series whose samples are only near the selected time.
    pub labels_only: bool,
    /// Start times of counters are used.
    pub start_times: bool,
}

/// Failure of the store. The text is for people; error codes stay inside the store.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct SourceError {
    /// Description of the failure, for people.
    pub text: String,
}

/// A store that can be queried.
pub trait Source {
    /// Announces selections in this range of time, both ends included. All selections must read the
    /// same state of the store, which is fixed at the first selection.
    fn begin(&self, _start_ms: i64, _end_ms: i64) {}

    /// Announces that no more selections follow.
    fn end(&self) {}

    /// Returns the series of a selection by ascending label sets. Several sets may be open at once;
    /// sets borrow nothing, so that an evaluation (`Rc<dyn Source>`) can outlive its caller.
    fn select(&self, selection: &Selection) -> Result<Box<dyn SeriesSet>, SourceError>;
}

/// Iterator over the series of one selection.
pub trait SeriesSet {
    /// Moves to the next series and returns its labels; `None` after the last series.
    fn next(&mut self) -> Result<Option<Labels>, SourceError>;

    /// Appends the next samples of the current series in time order, at most about one chunk.
    /// Returns false if no samples were left.
    fn read(&mut self, samples: &mut Samples) -> Result<bool, SourceError>;

    /// Estimates the number of series, as far as known before series are read.
    fn estimate(&mut self) -> Result<usize, SourceError> {
        Ok(0)
    }

    /// Estimates the memory that the open selection needs, such as compiled expressions.
    fn bytes(&self) -> usize {
        0
    }
}
