//! Where series come from.

use crate::model::{Labels, Samples};
use crate::syntax::Matcher;

/// What a scan needs of the store. The store may give more; it must not give less.
#[derive(Clone, Debug, PartialEq)]
pub struct Selection {
    /// All must hold.
    pub matchers: Vec<Matcher>,
    /// Oldest sample that is needed, included.
    pub start_ms: i64,
    /// Newest sample that is needed, included.
    pub end_ms: i64,
    /// What is done with the samples.
    pub hints: Hints,
}

/// What a store may leave out or prepare.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    /// Milliseconds between evaluations; 0 if all samples of the selection are looked at.
    pub step_ms: i64,
    /// Window of each evaluation in milliseconds. The last one ends with the selection, so the
    /// samples that count are those in `(end_ms - k * step_ms - range_ms, end_ms - k * step_ms]`.
    pub range_ms: i64,
    /// Buckets of histograms are not looked at: count and sum suffice. A store that leaves them out
    /// must say of each histogram whether the counter was reset.
    pub without_buckets: bool,
    /// No sample is looked at: labels suffice. There may be series that have samples near the
    /// selected time only.
    pub labels_only: bool,
    /// Start times of counters are looked at.
    pub start_times: bool,
}

/// Why the store could not go on. The text is for people; the code is the store's own.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct SourceError {
    /// What failed.
    pub text: String,
}

/// A store that is read.
pub trait Source {
    /// Says that the selections that follow lie in this range of time, both ends included. All of
    /// them are to show the store as of one moment, that of the first of them.
    fn begin(&self, _start_ms: i64, _end_ms: i64) {}

    /// Says that no more selections follow.
    fn end(&self) {}

    /// The series of a selection, in ascending order of their label sets. Several scans may be open
    /// at once; they borrow nothing, so that an evaluation (`Rc<dyn Source>`) can outlive its
    /// caller.
    fn select(&self, selection: &Selection) -> Result<Box<dyn SeriesSet>, SourceError>;
}

/// Series of one selection.
pub trait SeriesSet {
    /// Goes on to the next series, and gives its labels; none behind the last one.
    fn next(&mut self) -> Result<Option<Labels>, SourceError>;

    /// Appends samples of the current series in time order, at most about a chunk's, all newer than
    /// those before; false if there were none left.
    fn read(&mut self, samples: &mut Samples) -> Result<bool, SourceError>;

    /// About how many series there are, as far as that is known before they are read.
    fn estimate(&mut self) -> Result<usize, SourceError> {
        Ok(0)
    }

    /// Memory of what was made to open the selection, such as compiled expressions, roughly.
    fn bytes(&self) -> usize {
        0
    }
}
