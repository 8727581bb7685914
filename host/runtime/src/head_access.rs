//! How instances without a head read the head of another instance, and the errors of that.

use super::{
    CallError, Error, HeadDeletion, HeadLost, HeadOpened, HeadPage, Label, Lookup, Matcher,
    TimeRange,
};

/// What is asked first of a cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstPage {
    /// Series.
    Series,
    /// Labels of series that have samples in the range.
    Labels,
}

/// Something that is open by its number, and the first of its content, if that was at hand.
pub type WithFirst<T> = (u64, T);

/// Another instance's head, as the store offers it to query and compactor instances.
pub trait HeadAccess: Send + Sync {
    /// Opens a cursor, of which the series get external labels, and returns its number.
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
    /// As [`HeadAccess::open`], and takes the first page of what will be asked for: each call has
    /// to wait for its turn.
    fn open_with_first(
        &self,
        matcher_sets: Vec<Vec<Matcher>>,
        range: TimeRange,
        external_labels: Vec<Label>,
        _first: FirstPage,
    ) -> Result<HeadOpened<WithFirst<Option<HeadPage>>>, Error> {
        Ok(self.open(matcher_sets, range, external_labels)?.map(|number| (number, None)))
    }
    /// As [`HeadAccess::label_names`], and takes the first batches.
    fn label_names_with_first(
        &self,
        lookup: Lookup,
    ) -> Result<HeadOpened<WithFirst<Vec<Vec<String>>>>, Error> {
        Ok(self.label_names(lookup)?.map(|number| (number, Vec::new())))
    }
    /// As [`HeadAccess::label_values`], and takes the first batches.
    fn label_values_with_first(
        &self,
        name: String,
        lookup: Lookup,
    ) -> Result<HeadOpened<WithFirst<Vec<Vec<String>>>>, Error> {
        Ok(self.label_values(name, lookup)?.map(|number| (number, Vec::new())))
    }
    /// The next series of a cursor.
    fn next(&self, cursor: u64, bytes_max: u32) -> Result<HeadPage, Error>;
    /// The labels of the next series of a cursor.
    fn labels(&self, cursor: u64, bytes_max: u32, only_in_range: bool) -> Result<HeadPage, Error>;
    /// Keeps series of a cursor's last page of labels.
    fn keep(&self, cursor: u64, positions: Vec<u32>) -> Result<(), Error>;
    /// Lets a cursor start again.
    fn rewind(&self, cursor: u64) -> Result<(), Error>;
    /// Deletes samples of the next series of a cursor; durable when it is done.
    fn delete(&self, cursor: u64) -> Result<HeadDeletion, Error>;
    /// The next names or values of a list.
    fn next_strings(&self, strings: u64, bytes_max: u32) -> Result<Vec<String>, Error>;
    /// Opens a scan of exemplars and returns its number.
    fn scan_exemplars(&self, range: TimeRange) -> Result<u64, Error>;
    /// The next exemplars of a scan; nothing at the end.
    fn next_exemplars(&self, scan: u64, bytes_max: u32) -> Result<Option<Vec<u8>>, Error>;
    /// Closes a cursor, a list or a scan; errors have nowhere to go.
    fn close(&self, number: u64);
    /// As `store.plan-cut` of the head's instance.
    fn plan_cut(&self) -> Result<Option<TimeRange>, Error>;
    /// As `store.truncate` of the head's instance.
    fn truncate(&self, before_ms: i64) -> Result<bool, Error>;
    /// As `store.deletion-mark` of the head's instance.
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

/// The answer of a call of the head, for the instance that reads it.
impl From<CallError> for Error {
    fn from(error: CallError) -> Error {
        Error::HeadLost(match error {
            CallError::Refused(error) => return error,
            CallError::Head(lost) => lost,
            CallError::Trap(trap) => HeadLost::Crashed(format!("{trap:#}")),
            CallError::Deadline => HeadLost::Deadline,
            // The head is never cancelled.
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
