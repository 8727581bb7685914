//! Access to the head of another instance, and the errors of that access.

use super::{
    CallError, Error, HeadDeletion, HeadLost, HeadOpened, HeadPage, Label, Lookup, Matcher,
    TimeRange,
};

/// The kind of page that the opener of a cursor reads first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstPage {
    Series,
    /// Labels of series that have samples in the range.
    Labels,
}

/// Number of an open resource, with the first part of its content if it came with the number.
pub type WithFirst<T> = (u64, T);

/// The head of another instance, as the store offers it to query and compactor instances.
pub trait HeadAccess: Send + Sync {
    /// Opens a cursor, whose series get the external labels, and returns its number.
    fn open(
        &self,
        matcher_sets: Vec<Vec<Matcher>>,
        range: TimeRange,
        external_labels: Vec<Label>,
    ) -> Result<HeadOpened<u64>, Error>;
    /// Opens a list of label names and returns its number.
    fn label_names(&self, lookup: Lookup) -> Result<HeadOpened<u64>, Error>;
    /// Opens a list of label values and returns its number.
    fn label_values(&self, name: String, lookup: Lookup) -> Result<HeadOpened<u64>, Error>;
    /// [`HeadAccess::open`] and the first page of the given kind in one call, because each call has
    /// to wait for the head's thread.
    fn open_with_first(
        &self,
        matcher_sets: Vec<Vec<Matcher>>,
        range: TimeRange,
        external_labels: Vec<Label>,
        _first: FirstPage,
    ) -> Result<HeadOpened<WithFirst<Option<HeadPage>>>, Error> {
        // `None` makes the caller request the first page itself.
        Ok(self.open(matcher_sets, range, external_labels)?.map(|number| (number, None)))
    }
    /// [`HeadAccess::label_names`], together with the first batches of names.
    fn label_names_with_first(
        &self,
        lookup: Lookup,
    ) -> Result<HeadOpened<WithFirst<Vec<Vec<String>>>>, Error> {
        Ok(self.label_names(lookup)?.map(|number| (number, Vec::new())))
    }
    /// [`HeadAccess::label_values`], together with the first batches of values.
    fn label_values_with_first(
        &self,
        name: String,
        lookup: Lookup,
    ) -> Result<HeadOpened<WithFirst<Vec<Vec<String>>>>, Error> {
        Ok(self.label_values(name, lookup)?.map(|number| (number, Vec::new())))
    }
    /// Returns the next series of a cursor.
    fn next(&self, cursor: u64, bytes_max: u32) -> Result<HeadPage, Error>;
    /// Returns the labels of the next series of a cursor.
    fn labels(&self, cursor: u64, bytes_max: u32, only_in_range: bool) -> Result<HeadPage, Error>;
    /// Keeps only the series at these positions in a cursor's last page of labels.
    fn keep(&self, cursor: u64, positions: Vec<u32>) -> Result<(), Error>;
    /// Moves a cursor back to its start.
    fn rewind(&self, cursor: u64) -> Result<(), Error>;
    /// Deletes samples of the next series of a cursor; durable once the result has `is_done`.
    fn delete(&self, cursor: u64) -> Result<HeadDeletion, Error>;
    /// Returns the next names or values of a list.
    fn next_strings(&self, strings: u64, bytes_max: u32) -> Result<Vec<String>, Error>;
    /// Opens a scan of exemplars and returns its number.
    fn scan_exemplars(&self, range: TimeRange) -> Result<u64, Error>;
    /// Returns the next exemplars of a scan; `None` at the end.
    fn next_exemplars(&self, scan: u64, bytes_max: u32) -> Result<Option<Vec<u8>>, Error>;
    /// Closes a cursor, a list or a scan. Errors are not reported.
    fn close(&self, number: u64);
    /// `store.plan-cut` of the head's instance.
    fn plan_cut(&self) -> Result<Option<TimeRange>, Error>;
    /// `store.truncate` of the head's instance.
    fn truncate(&self, before_ms: i64) -> Result<bool, Error>;
    /// `store.deletion-mark` of the head's instance.
    fn deletion_mark(&self) -> Result<u64, Error>;
}

impl std::fmt::Display for HeadLost {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str(match self {
            HeadLost::Restarted => {
                "the head was restarted, or ran short of memory, while it was being read; read again"
            }
            HeadLost::NotReady => "the head is starting",
            HeadLost::Stopped => "the head has stopped",
            HeadLost::Crashed(why) => return write!(to, "the head crashed: {why}"),
            HeadLost::Deadline => "the head passed its deadline",
            HeadLost::OutOfMemory => "the head ran out of memory",
        })
    }
}

impl std::error::Error for HeadLost {}

/// Error of a call of the head, as the instance that reads the head receives it.
impl From<CallError> for Error {
    fn from(error: CallError) -> Error {
        Error::HeadLost(match error {
            // The head works and has refused the call, so the reader gets the reason unchanged.
            CallError::Refused(error) => return error,
            CallError::Head(lost) => lost,
            CallError::Trap(trap) => HeadLost::Crashed(format!("{trap:#}")),
            CallError::Deadline => HeadLost::Deadline,
            // Only queries are cancelled, never the head.
            CallError::Cancelled => HeadLost::Stopped,
            CallError::Memory(_) => HeadLost::OutOfMemory,
        })
    }
}

impl From<HeadLost> for Error {
    fn from(lost: HeadLost) -> Error {
        Error::HeadLost(lost)
    }
}
