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
    /// Milliseconds between evaluations; 0 for one evaluation.
    pub step_ms: i64,
    /// Window of each evaluation in milliseconds.
    pub range_ms: i64,
    /// Buckets of histograms are not looked at: count and sum suffice. A store that leaves them out
    /// must say of each histogram whether the counter was reset.
    pub without_buckets: bool,
    /// No sample is looked at: labels suffice.
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
}
