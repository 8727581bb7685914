//! Access to the head from instances on other threads. The resources that they open on the head
//! have numbers, and each of their calls is a job of the head thread.

use super::handle::{HeadHandle, HeadInstance, HeadState, OpenOnHead};
use super::lock;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tidepool_runtime::{
    CallError, Error, FirstPage, HeadAccess, HeadDeletion, HeadLost, HeadOpened, HeadPage,
    Instance, Label, Lookup, Matcher, StorageError, TimeRange, WithFirst,
};

/// If opening took at most this time, the first content is read in the same job, which stays short.
const FIRST_WITHIN: Duration = Duration::from_micros(500);

/// Approximate size of a first page or a first batch.
const FIRST_BYTES: u32 = 32 * 1024;

/// A first batch with fewer names or values may be complete; then the next batch is read as well.
const FEW_STRINGS: usize = 1024;

/// A resource that was opened on the head, or the reason why it was not.
type Opened = Result<HeadOpened<OpenOnHead>, CallError>;

/// Calls the head: on its thread through the handle, or directly during the replay.
pub(super) trait CallsHead: Send + Sync {
    /// Runs a call and blocks until it is done.
    fn call_now<T: Send + 'static>(
        &self,
        call: impl FnOnce(&mut HeadInstance) -> Result<T, CallError> + Send + 'static,
    ) -> Result<T, Error>;

    /// Closes the resource with this number, at the latest before the next call.
    fn close_unused(&self, number: u64);

    fn state(&self) -> &HeadState;

    /// Opens a resource on the head and returns its number.
    fn open_on_head(
        &self,
        open: impl FnOnce(&mut Instance) -> Opened + Send + 'static,
    ) -> Result<HeadOpened<u64>, Error> {
        let number = self.state().next_number();
        self.call_now(move |head| {
            let opened = open(&mut head.instance)?;
            Ok(opened.map(|opened| {
                head.open.insert(number, opened);
                number
            }))
        })
    }

    /// Opens a resource on the head, and reads its first content by `first`.
    fn open_with<F: Default + Send + 'static>(
        &self,
        open: impl FnOnce(&mut Instance) -> Opened + Send + 'static,
        first: impl FnOnce(&mut Instance, OpenOnHead) -> Result<F, CallError> + Send + 'static,
    ) -> Result<HeadOpened<WithFirst<F>>, Error> {
        let number = self.state().next_number();
        self.call_now(move |head| {
            let begun = Instant::now();
            let opened = match open(&mut head.instance)? {
                HeadOpened::Ready(opened) => opened,
                HeadOpened::Again => return Ok(HeadOpened::Again),
                HeadOpened::TooCostly => return Ok(HeadOpened::TooCostly),
            };
            let taken = match begun.elapsed() < FIRST_WITHIN {
                true => first(&mut head.instance, opened),
                false => Ok(F::default()),
            };
            match taken {
                Ok(taken) => {
                    head.open.insert(number, opened);
                    Ok(HeadOpened::Ready((number, taken)))
                }
                Err(error) => {
                    // If the instance has ended, closing fails as well, which does not matter.
                    let _ = head.close(opened);
                    Err(error)
                }
            }
        })
    }
}

/// Opens a cursor on series.
fn cursor(
    matcher_sets: Vec<Vec<Matcher>>,
    range: TimeRange,
    external_labels: Vec<Label>,
) -> impl FnOnce(&mut Instance) -> Opened + Send + 'static {
    move |head| {
        let opened = head.read_head(&matcher_sets, range, &external_labels)?;
        Ok(opened.map(OpenOnHead::Cursor))
    }
}

/// Opens a list of label names.
fn names(lookup: Lookup) -> impl FnOnce(&mut Instance) -> Opened + Send + 'static {
    move |head| Ok(head.read_head_names(&lookup)?.map(OpenOnHead::Strings))
}

/// Opens a list of label values.
fn values(name: String, lookup: Lookup) -> impl FnOnce(&mut Instance) -> Opened + Send + 'static {
    move |head| Ok(head.read_head_values(&name, &lookup)?.map(OpenOnHead::Strings))
}

/// Returns the first names or values. If they may be complete, also the empty batch at the end.
fn first_strings(head: &mut Instance, open: OpenOnHead) -> Result<Vec<Vec<String>>, CallError> {
    let OpenOnHead::Strings(strings) = open else { return Ok(Vec::new()) };
    let first = head.next_strings(strings, FIRST_BYTES)?;
    let may_be_all = !first.is_empty() && first.len() < FEW_STRINGS;
    let mut batches = vec![first];
    if may_be_all {
        batches.push(head.next_strings(strings, FIRST_BYTES)?);
    }
    Ok(batches)
}

impl CallsHead for HeadHandle {
    fn call_now<T: Send + 'static>(
        &self,
        call: impl FnOnce(&mut HeadInstance) -> Result<T, CallError> + Send + 'static,
    ) -> Result<T, Error> {
        let answered = self.start_call(call)?.blocking_recv().map_err(|_| HeadLost::Stopped)?;
        Ok(answered?)
    }

    fn close_unused(&self, number: u64) {
        lock(&self.state.unused).push(number);
    }

    fn state(&self) -> &HeadState {
        &self.state
    }
}

impl HeadHandle {
    /// Returns the head's interface for instances that own no head.
    pub fn access(&self) -> Arc<dyn HeadAccess> {
        Arc::new(OfHead(Arc::new(self.clone())))
    }
}

/// Makes a caller of the head usable as the interface for other instances.
pub struct OfHead<C>(pub Arc<C>);

impl<C: CallsHead> HeadAccess for OfHead<C> {
    fn open(
        &self,
        matcher_sets: Vec<Vec<Matcher>>,
        range: TimeRange,
        external_labels: Vec<Label>,
    ) -> Result<HeadOpened<u64>, Error> {
        self.0.open_on_head(cursor(matcher_sets, range, external_labels))
    }

    fn label_names(&self, lookup: Lookup) -> Result<HeadOpened<u64>, Error> {
        self.0.open_on_head(names(lookup))
    }

    fn label_values(&self, name: String, lookup: Lookup) -> Result<HeadOpened<u64>, Error> {
        self.0.open_on_head(values(name, lookup))
    }

    fn open_with_first(
        &self,
        matcher_sets: Vec<Vec<Matcher>>,
        range: TimeRange,
        external_labels: Vec<Label>,
        first: FirstPage,
    ) -> Result<HeadOpened<WithFirst<Option<HeadPage>>>, Error> {
        self.0.open_with(cursor(matcher_sets, range, external_labels), move |head, open| {
            match (open, first) {
                (OpenOnHead::Cursor(cursor), FirstPage::Series) => {
                    head.next_of_head(cursor, FIRST_BYTES).map(Some)
                }
                (OpenOnHead::Cursor(cursor), FirstPage::Labels) => {
                    head.labels_of_head(cursor, FIRST_BYTES, true).map(Some)
                }
                _ => Ok(None),
            }
        })
    }

    fn label_names_with_first(
        &self,
        lookup: Lookup,
    ) -> Result<HeadOpened<WithFirst<Vec<Vec<String>>>>, Error> {
        self.0.open_with(names(lookup), first_strings)
    }

    fn label_values_with_first(
        &self,
        name: String,
        lookup: Lookup,
    ) -> Result<HeadOpened<WithFirst<Vec<Vec<String>>>>, Error> {
        self.0.open_with(values(name, lookup), first_strings)
    }

    fn next(&self, cursor: u64, bytes_max: u32) -> Result<HeadPage, Error> {
        self.0.call_now(move |head| {
            let handle = head.cursor(cursor)?;
            head.instance.next_of_head(handle, bytes_max)
        })
    }

    fn labels(&self, cursor: u64, bytes_max: u32, only_in_range: bool) -> Result<HeadPage, Error> {
        self.0.call_now(move |head| {
            let handle = head.cursor(cursor)?;
            head.instance.labels_of_head(handle, bytes_max, only_in_range)
        })
    }

    fn keep(&self, cursor: u64, positions: Vec<u32>) -> Result<(), Error> {
        self.0.call_now(move |head| {
            let handle = head.cursor(cursor)?;
            head.instance.keep_of_head(handle, &positions)
        })
    }

    fn rewind(&self, cursor: u64) -> Result<(), Error> {
        self.0.call_now(move |head| {
            let handle = head.cursor(cursor)?;
            head.instance.rewind_head(handle)
        })
    }

    fn delete(&self, cursor: u64) -> Result<HeadDeletion, Error> {
        self.0.call_now(move |head| {
            let handle = head.cursor(cursor)?;
            let deletion = head.instance.delete_from_head(handle)?;
            // A deletion is acknowledged only when it is durable, whatever the sync policy is.
            if deletion.is_done {
                lock(&head.logs).sync().map_err(|error| {
                    CallError::Refused(Error::Storage(StorageError::Io(error.to_string())))
                })?;
            }
            Ok(deletion)
        })
    }

    fn next_strings(&self, strings: u64, bytes_max: u32) -> Result<Vec<String>, Error> {
        self.0.call_now(move |head| match head.open.get(&strings) {
            Some(OpenOnHead::Strings(handle)) => head.instance.next_strings(*handle, bytes_max),
            // Unknown numbers are of a head that has crashed since.
            _ => Err(CallError::Head(HeadLost::Restarted)),
        })
    }

    fn scan_exemplars(&self, range: TimeRange) -> Result<u64, Error> {
        let number = self.0.state().next_number();
        self.0.call_now(move |head| {
            let scan = head.instance.scan_exemplars(range)?;
            head.open.insert(number, OpenOnHead::Scan(scan));
            Ok(number)
        })
    }

    fn next_exemplars(&self, scan: u64, bytes_max: u32) -> Result<Option<Vec<u8>>, Error> {
        self.0.call_now(move |head| match head.open.get(&scan) {
            Some(OpenOnHead::Scan(handle)) => head.instance.next_of_scan(*handle, bytes_max),
            _ => Err(CallError::Head(HeadLost::Restarted)),
        })
    }

    fn close(&self, number: u64) {
        self.0.close_unused(number);
    }

    fn plan_cut(&self) -> Result<Option<TimeRange>, Error> {
        self.0.call_now(|head| head.instance.plan_cut())
    }

    fn truncate(&self, before_ms: i64) -> Result<bool, Error> {
        self.0.call_now(move |head| head.instance.truncate(before_ms))
    }

    fn deletion_mark(&self) -> Result<u64, Error> {
        self.0.call_now(|head| head.instance.deletion_mark())
    }
}
