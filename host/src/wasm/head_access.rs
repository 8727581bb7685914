//! How instances without a head read the head of another instance, and the errors of that.

use super::{
    CallError, Error, HeadDeletion, HeadOpened, HeadPage, Label, Lookup, Matcher, TimeRange,
    in_words,
};

/// Why another instance's head gave nothing.
#[derive(Debug, thiserror::Error)]
pub enum HeadError {
    /// It says no.
    #[error("{}", in_words(.0))]
    Refused(Error),
    /// It cannot answer.
    #[error(transparent)]
    Lost(#[from] HeadLost),
}

/// Why another instance's head cannot answer. Time cures all of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeadLost {
    /// What was open on it is gone.
    #[error("the head was restarted, or ran short of memory, while it was being read; read again")]
    Restarted,
    /// It is not there yet.
    #[error("the head is starting")]
    NotReady,
    /// It is gone for good.
    #[error("the head has stopped")]
    Stopped,
    /// It crashed.
    #[error("the head crashed: {0}")]
    Crashed(String),
    /// It took too long.
    #[error("the head passed its deadline")]
    Deadline,
    /// It has no more memory.
    #[error("the head ran out of memory")]
    OutOfMemory,
}

/// Another instance's head, as the store offers it to query and compactor instances.
pub trait HeadAccess: Send + Sync {
    /// Opens a cursor, of which the series get external labels, and returns its number.
    fn open(
        &self,
        matcher_sets: Vec<Vec<Matcher>>,
        range: TimeRange,
        external_labels: Vec<Label>,
    ) -> Result<HeadOpened<u64>, HeadError>;
    /// Opens a list of label names and returns its number.
    fn label_names(&self, lookup: Lookup) -> Result<HeadOpened<u64>, HeadError>;
    /// Opens a list of label values and returns its number.
    fn label_values(&self, name: String, lookup: Lookup) -> Result<HeadOpened<u64>, HeadError>;
    /// The next series of a cursor.
    fn next(&self, cursor: u64, bytes_max: u32) -> Result<HeadPage, HeadError>;
    /// The labels of the next series of a cursor.
    fn labels(
        &self,
        cursor: u64,
        bytes_max: u32,
        only_in_range: bool,
    ) -> Result<HeadPage, HeadError>;
    /// Keeps series of a cursor's last page of labels.
    fn keep(&self, cursor: u64, positions: Vec<u32>) -> Result<(), HeadError>;
    /// Lets a cursor start again.
    fn rewind(&self, cursor: u64) -> Result<(), HeadError>;
    /// Deletes samples of the next series of a cursor; durable when it is done.
    fn delete(&self, cursor: u64) -> Result<HeadDeletion, HeadError>;
    /// The next names or values of a list.
    fn next_strings(&self, strings: u64, bytes_max: u32) -> Result<Vec<String>, HeadError>;
    /// Opens a scan of exemplars and returns its number.
    fn scan_exemplars(&self, range: TimeRange) -> Result<u64, HeadError>;
    /// The next exemplars of a scan; nothing at the end.
    fn next_exemplars(&self, scan: u64, bytes_max: u32) -> Result<Option<Vec<u8>>, HeadError>;
    /// Closes a cursor, a list or a scan; errors have nowhere to go.
    fn close(&self, number: u64);
    /// As `store.plan-cut` of the head's instance.
    fn plan_cut(&self) -> Result<Option<TimeRange>, HeadError>;
    /// As `store.truncate` of the head's instance.
    fn truncate(&self, before_ms: i64) -> Result<bool, HeadError>;
    /// As `store.deletion-mark` of the head's instance.
    fn deletion_mark(&self) -> Result<u64, HeadError>;
}

impl From<CallError> for HeadError {
    fn from(error: CallError) -> HeadError {
        HeadError::Lost(match error {
            CallError::Refused(error) => return HeadError::Refused(error),
            CallError::Head(lost) => lost,
            CallError::Trap(trap) => HeadLost::Crashed(format!("{trap:#}")),
            CallError::Deadline => HeadLost::Deadline,
            // The head is never cancelled.
            CallError::Cancelled => HeadLost::Stopped,
            CallError::Memory(_) => HeadLost::OutOfMemory,
        })
    }
}
