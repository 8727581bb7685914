//! The handle of the head thread: the calls that it takes, and their callers.

use super::lock;
use crate::disk::wal::{Logs, LogsMonitor};
use crate::store::{Body, BodyRoom, ScrapeRows, StoreError};
use crate::wasm::{
    CallError, Error, FirstPage, HeadAccess, HeadCursorHandle, HeadDeletion, HeadLost, HeadOpened,
    HeadPage, Instance, Label, Lookup, Matcher, RefusedRow, RemoteWriteVersion, ScanHandle,
    StorageError, StringsHandle, TimeRange, WalkHandle, WithFirst, WriteOutcome,
};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// What was opened gives its first content in the same turn if it was opened so quickly: no turn
/// takes much longer than a slice of work.
const FIRST_WITHIN: Duration = Duration::from_micros(500);

/// About as many bytes are a first page, or a first batch.
const FIRST_BYTES: u32 = 32 * 1024;

/// A first batch of fewer names or values may be all of them; then the end is taken, too.
const FEW_STRINGS: usize = 1024;

/// Something for the head thread to do.
pub(in crate::store) enum Job {
    /// Store rows and answer once the log has them.
    Append {
        rows: Rows,
        reply: oneshot::Sender<Result<Stored, StoreError>>,
        /// Room for them, given back when the job is done.
        room: BodyRoom,
    },
    /// Any other call.
    Call(Call),
    /// Finish.
    Stop,
}

/// Rows to be stored.
pub(in crate::store) enum Rows {
    /// A decompressed body of remote write.
    RemoteWrite { version: RemoteWriteVersion, body: Body },
    /// What a scrape stores.
    Scrape(ScrapeRows),
}

/// What became of rows.
#[derive(Debug)]
pub(in crate::store) struct Stored {
    pub written: WriteOutcome,
    /// Which rows of columns were refused.
    pub refused_rows: Vec<RefusedRow>,
}

impl From<WriteOutcome> for Stored {
    fn from(written: WriteOutcome) -> Stored {
        Stored { written, refused_rows: Vec::new() }
    }
}

/// Something to be done with the head.
pub(super) type Call = Box<dyn FnOnce(&mut HeadInstance) + Send>;

/// The head instance and the cursors that others hold on it.
pub(in crate::store) struct HeadInstance {
    pub instance: Instance,
    pub(super) open: HashMap<u64, OpenOnHead>,
    pub(super) crashed: Option<String>,
    pub(super) logs: Arc<Mutex<Logs>>,
}

/// Cursors that other threads have open on the head.
#[derive(Clone, Copy)]
pub(super) enum OpenOnHead {
    Cursor(HeadCursorHandle),
    Strings(StringsHandle),
    Scan(ScanHandle),
    Walk(WalkHandle),
}

/// The way to the head thread.
#[derive(Clone)]
pub(in crate::store) struct HeadHandle {
    jobs: Sender<Job>,
    pub(super) state: Arc<HeadState>,
}

/// The state of the head that is known without a call.
#[derive(Default)]
pub(super) struct HeadState {
    pub ready: AtomicBool,
    /// How many heads there were: what one of them has numbers for means nothing to the next.
    pub generation: AtomicU64,
    /// Bytes of memory that the head had in use when it was last looked at.
    pub memory_used_bytes: AtomicU64,
    /// Records of the log that the last replay did not understand.
    pub skipped_records: AtomicU64,
    pub logs_monitor: Mutex<Option<LogsMonitor>>,
    /// Whether the last start took the head from a snapshot.
    pub snapshot_used: AtomicBool,
    /// How long the last start took.
    pub start_nanos: AtomicU64,
    /// Last number of what was opened on a head. Never given twice, so that what was open on a
    /// crashed head means nothing to the next one.
    pub last_number: Mutex<u64>,
    /// Numbers of what is of no use any more. It is closed before the next call: nobody can tell
    /// the difference, and the head thread need not be woken for it.
    pub unused: Mutex<Vec<u64>>,
}

impl HeadState {
    /// A number for something that is to be opened on the head.
    pub fn next_number(&self) -> u64 {
        let mut last = lock(&self.last_number);
        *last += 1;
        *last
    }
}

impl HeadHandle {
    pub fn new() -> (HeadHandle, Receiver<Job>) {
        let (jobs, receiver) = channel();
        (HeadHandle { jobs, state: Arc::default() }, receiver)
    }

    pub fn is_ready(&self) -> bool {
        self.state.ready.load(Relaxed)
    }

    /// The number of the head that is running.
    pub fn generation(&self) -> u64 {
        self.state.generation.load(Relaxed)
    }

    pub fn check_ready(&self) -> Result<(), StoreError> {
        if self.is_ready() { Ok(()) } else { Err(StoreError::NotReady) }
    }

    pub fn send(&self, job: Job) -> Result<(), StoreError> {
        self.jobs.send(job).map_err(|_| StoreError::Stopped)
    }

    pub fn memory_used_bytes(&self) -> u64 {
        self.state.memory_used_bytes.load(Relaxed)
    }

    /// Closes what has this number in its turn: after the calls that came before.
    pub(super) fn close_in_turn(&self, number: u64) {
        // A head that is gone has closed what was open on it.
        let _ = self.send(Job::Call(Box::new(move |head| head.close_number(number))));
    }

    /// Ends everything that is open on the head, so that it can truncate.
    pub fn end_reads(&self) {
        let ended = Job::Call(Box::new(|head| {
            let open: Vec<OpenOnHead> = head.open.drain().map(|(_, open)| open).collect();
            if !open.is_empty() {
                tracing::warn!(reads = open.len(), "reads were cancelled because memory is short");
            }
            for open in open {
                let closed = head.close(open);
                let _ = head.noting_crash(closed);
            }
        }));
        // A head that is gone has closed what was open on it.
        let _ = self.send(ended);
    }

    pub fn skipped_records(&self) -> u64 {
        self.state.skipped_records.load(Relaxed)
    }

    /// Figures of the logs, once they were opened.
    pub fn logs_monitor(&self) -> Option<LogsMonitor> {
        lock(&self.state.logs_monitor).clone()
    }

    /// Runs a call on the head thread.
    pub async fn call<T: Send + 'static>(
        &self,
        call: impl FnOnce(&mut HeadInstance) -> Result<T, CallError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let answered = self.start_call(call)?.await.map_err(|_| StoreError::Stopped)?;
        answered.map_err(|error| StoreError::from(error).of_head())
    }

    fn start_call<T: Send + 'static>(
        &self,
        call: impl FnOnce(&mut HeadInstance) -> Result<T, CallError> + Send + 'static,
    ) -> Result<oneshot::Receiver<Result<T, CallError>>, HeadLost> {
        if !self.is_ready() {
            return Err(HeadLost::NotReady);
        }
        let (reply, answer) = oneshot::channel();
        let sent = self.send(Job::Call(Box::new(move |head| {
            let result = call(head);
            // The receiver may be dropped: the caller was cancelled.
            let _ = reply.send(head.noting_crash(result));
        })));
        sent.map_err(|_| HeadLost::Stopped)?;
        Ok(answer)
    }
}

/// A way to call the head.
pub(super) trait CallsHead: Send + Sync {
    /// Runs a call and blocks until it is done.
    fn call_now<T: Send + 'static>(
        &self,
        call: impl FnOnce(&mut HeadInstance) -> Result<T, CallError> + Send + 'static,
    ) -> Result<T, Error>;

    /// Closes what has this number, before the next call at the latest.
    fn close_unused(&self, number: u64);

    /// The known state of the head.
    fn state(&self) -> &HeadState;

    /// Opens something on the head and returns its number.
    fn open_on_head(
        &self,
        open: impl FnOnce(&mut Instance) -> Result<HeadOpened<OpenOnHead>, CallError> + Send + 'static,
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

    /// The same, and what `first` takes of it.
    fn open_with<F: Default + Send + 'static>(
        &self,
        open: impl FnOnce(&mut Instance) -> Result<HeadOpened<OpenOnHead>, CallError> + Send + 'static,
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
                    // If the instance has ended, this fails, too.
                    let _ = head.close(opened);
                    Err(error)
                }
            }
        })
    }
}

/// The first names or values, and the end if that may be next.
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

impl<C: CallsHead> HeadAccess for C {
    fn open(
        &self,
        matcher_sets: Vec<Vec<Matcher>>,
        range: TimeRange,
        external_labels: Vec<Label>,
    ) -> Result<HeadOpened<u64>, Error> {
        self.open_on_head(move |head| {
            let opened = head.read_head(&matcher_sets, range, &external_labels)?;
            Ok(opened.map(OpenOnHead::Cursor))
        })
    }

    fn label_names(&self, lookup: Lookup) -> Result<HeadOpened<u64>, Error> {
        self.open_on_head(move |head| Ok(head.read_head_names(&lookup)?.map(OpenOnHead::Strings)))
    }

    fn label_values(&self, name: String, lookup: Lookup) -> Result<HeadOpened<u64>, Error> {
        self.open_on_head(move |head| {
            Ok(head.read_head_values(&name, &lookup)?.map(OpenOnHead::Strings))
        })
    }

    fn open_with_first(
        &self,
        matcher_sets: Vec<Vec<Matcher>>,
        range: TimeRange,
        external_labels: Vec<Label>,
        first: FirstPage,
    ) -> Result<HeadOpened<WithFirst<Option<HeadPage>>>, Error> {
        self.open_with(
            move |head| {
                let opened = head.read_head(&matcher_sets, range, &external_labels)?;
                Ok(opened.map(OpenOnHead::Cursor))
            },
            move |head, open| match (open, first) {
                (OpenOnHead::Cursor(cursor), FirstPage::Series) => {
                    head.next_of_head(cursor, FIRST_BYTES).map(Some)
                }
                (OpenOnHead::Cursor(cursor), FirstPage::Labels) => {
                    head.labels_of_head(cursor, FIRST_BYTES, true).map(Some)
                }
                _ => Ok(None),
            },
        )
    }

    fn label_names_with_first(
        &self,
        lookup: Lookup,
    ) -> Result<HeadOpened<WithFirst<Vec<Vec<String>>>>, Error> {
        let open =
            move |head: &mut Instance| Ok(head.read_head_names(&lookup)?.map(OpenOnHead::Strings));
        self.open_with(open, first_strings)
    }

    fn label_values_with_first(
        &self,
        name: String,
        lookup: Lookup,
    ) -> Result<HeadOpened<WithFirst<Vec<Vec<String>>>>, Error> {
        let open = move |head: &mut Instance| {
            Ok(head.read_head_values(&name, &lookup)?.map(OpenOnHead::Strings))
        };
        self.open_with(open, first_strings)
    }

    fn next(&self, cursor: u64, bytes_max: u32) -> Result<HeadPage, Error> {
        self.call_now(move |head| {
            let handle = head.cursor(cursor)?;
            head.instance.next_of_head(handle, bytes_max)
        })
    }

    fn labels(&self, cursor: u64, bytes_max: u32, only_in_range: bool) -> Result<HeadPage, Error> {
        self.call_now(move |head| {
            let handle = head.cursor(cursor)?;
            head.instance.labels_of_head(handle, bytes_max, only_in_range)
        })
    }

    fn keep(&self, cursor: u64, positions: Vec<u32>) -> Result<(), Error> {
        self.call_now(move |head| {
            let handle = head.cursor(cursor)?;
            head.instance.keep_of_head(handle, &positions)
        })
    }

    fn rewind(&self, cursor: u64) -> Result<(), Error> {
        self.call_now(move |head| {
            let handle = head.cursor(cursor)?;
            head.instance.rewind_head(handle)
        })
    }

    fn delete(&self, cursor: u64) -> Result<HeadDeletion, Error> {
        self.call_now(move |head| {
            let handle = head.cursor(cursor)?;
            let deletion = head.instance.delete_from_head(handle)?;
            if deletion.is_done {
                lock(&head.logs).sync().map_err(|error| {
                    CallError::Refused(Error::Storage(StorageError::Io(error.to_string())))
                })?;
            }
            Ok(deletion)
        })
    }

    fn next_strings(&self, strings: u64, bytes_max: u32) -> Result<Vec<String>, Error> {
        self.call_now(move |head| match head.open.get(&strings) {
            Some(OpenOnHead::Strings(handle)) => head.instance.next_strings(*handle, bytes_max),
            _ => Err(CallError::Head(HeadLost::Restarted)),
        })
    }

    fn scan_exemplars(&self, range: TimeRange) -> Result<u64, Error> {
        let number = self.state().next_number();
        self.call_now(move |head| {
            let scan = head.instance.scan_exemplars(range)?;
            head.open.insert(number, OpenOnHead::Scan(scan));
            Ok(number)
        })
    }

    fn next_exemplars(&self, scan: u64, bytes_max: u32) -> Result<Option<Vec<u8>>, Error> {
        self.call_now(move |head| match head.open.get(&scan) {
            Some(OpenOnHead::Scan(handle)) => head.instance.next_of_scan(*handle, bytes_max),
            _ => Err(CallError::Head(HeadLost::Restarted)),
        })
    }

    fn close(&self, number: u64) {
        self.close_unused(number);
    }

    fn plan_cut(&self) -> Result<Option<TimeRange>, Error> {
        self.call_now(|head| head.instance.plan_cut())
    }

    fn truncate(&self, before_ms: i64) -> Result<bool, Error> {
        self.call_now(move |head| head.instance.truncate(before_ms))
    }

    fn deletion_mark(&self) -> Result<u64, Error> {
        self.call_now(|head| head.instance.deletion_mark())
    }
}

impl HeadInstance {
    pub(super) fn new(instance: Instance, logs: &Arc<Mutex<Logs>>) -> HeadInstance {
        HeadInstance { instance, open: HashMap::new(), crashed: None, logs: Arc::clone(logs) }
    }

    /// The cursor that has this number.
    fn cursor(&self, number: u64) -> Result<HeadCursorHandle, CallError> {
        match self.open.get(&number) {
            Some(OpenOnHead::Cursor(handle)) => Ok(*handle),
            _ => Err(CallError::Head(HeadLost::Restarted)),
        }
    }

    /// Closes what has this number, if it is open.
    pub(super) fn close_number(&mut self, number: u64) {
        let Some(open) = self.open.remove(&number) else { return };
        let closed = self.close(open);
        let _ = self.noting_crash(closed);
    }

    fn close(&mut self, open: OpenOnHead) -> Result<(), CallError> {
        match open {
            OpenOnHead::Cursor(handle) => self.instance.close_head_cursor(handle),
            OpenOnHead::Strings(handle) => self.instance.close_strings(handle),
            OpenOnHead::Scan(handle) => self.instance.close_scan(handle),
            OpenOnHead::Walk(handle) => self.instance.close_walk(handle),
        }
    }

    /// Remembers that the instance is of no further use, if that is what a result says.
    pub(super) fn noting_crash<T>(&mut self, result: Result<T, CallError>) -> Result<T, CallError> {
        if let Err(end) = &result
            && end.is_end()
        {
            self.crashed = Some(end.to_string());
        }
        result
    }
}
