//! The handle of the head thread, and the jobs that are sent through it.

use super::lock;
use crate::shortage::Shortage;
use crate::{Body, BodyRoom, StoreError};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use tidepool_disk::wal::{Logs, LogsMonitor};
use tidepool_runtime::{
    CallError, Columns, HeadCursorHandle, HeadLost, Instance, RefusedRow, RemoteWriteVersion,
    ScanHandle, StringsHandle, WalkHandle, WriteOutcome,
};
use tokio::sync::oneshot;

/// A job of the head thread.
pub(crate) enum Job {
    /// Stores rows, and replies once they are in the log.
    Append {
        rows: Rows,
        reply: oneshot::Sender<Result<Stored, StoreError>>,
        /// Memory of the rows, released after the job.
        room: BodyRoom,
    },
    Call(Call),
    Stop,
}

pub(crate) enum Rows {
    /// A decompressed body of remote write.
    RemoteWrite { version: RemoteWriteVersion, body: Body },
    /// Rows of a scrape, mostly as columns.
    Scrape(ScrapeRows),
}

/// Everything that one scrape stores.
pub struct ScrapeRows {
    /// Histograms, exemplars and metadata as remote-write bodies, because they have no columns.
    pub bodies: Vec<(RemoteWriteVersion, Body)>,
    /// Start of the head that assigned the series numbers.
    pub generation: u64,
    /// Number of rows that `rows` can return.
    pub count: usize,
    /// Returns columns of a range of rows: all at once could be large. The scrape's report is last.
    pub rows: Box<dyn Fn(Range<usize>) -> Columns + Send>,
    /// Numbers of series that end, except series with values at `ended_at_ms` or later.
    pub ended: Vec<u64>,
    /// Timestamp of the staleness markers of ended series.
    pub ended_at_ms: i64,
}

/// Counts and refusals of stored rows.
#[derive(Debug)]
pub(crate) struct Stored {
    pub written: WriteOutcome,
    /// Rows of columns that were refused, one by one.
    pub refused_rows: Vec<RefusedRow>,
}

impl From<WriteOutcome> for Stored {
    fn from(written: WriteOutcome) -> Stored {
        Stored { written, refused_rows: Vec::new() }
    }
}

/// A call of the head, run on its thread.
pub(super) type Call = Box<dyn FnOnce(&mut HeadInstance) + Send>;

/// The head instance, and the resources that other threads have open on it.
pub(crate) struct HeadInstance {
    pub instance: Instance,
    pub(super) open: HashMap<u64, OpenOnHead>,
    pub(super) crashed: Option<String>,
    pub(super) logs: Arc<Mutex<Logs>>,
}

/// A resource that another thread has open on the head.
#[derive(Clone, Copy)]
pub(super) enum OpenOnHead {
    Cursor(HeadCursorHandle),
    Strings(StringsHandle),
    Scan(ScanHandle),
    Walk(WalkHandle),
}

/// Sends jobs to the head thread.
#[derive(Clone)]
pub(crate) struct HeadHandle {
    jobs: Sender<Job>,
    pub(super) state: Arc<HeadState>,
}

/// State of the head that can be read without a call.
#[derive(Default)]
pub(super) struct HeadState {
    pub ready: AtomicBool,
    /// Number of heads started so far. Numbers assigned by one head are invalid for the next.
    pub generation: AtomicU64,
    /// Memory that the head used after the last write or call.
    pub memory_used_bytes: AtomicU64,
    /// Records of the log that the last replay did not understand.
    pub skipped_records: AtomicU64,
    pub logs_monitor: Mutex<Option<LogsMonitor>>,
    /// Reason why the log was not replayed, while an empty head is ready.
    pub shortage: Mutex<Option<Shortage>>,
    /// Whether the last start loaded a head snapshot.
    pub snapshot_used: AtomicBool,
    /// Duration of the last start.
    pub start_nanos: AtomicU64,
    /// Last number assigned to a resource on a head. Numbers are never reused, so the numbers of a
    /// crashed head are unknown to the next head.
    pub last_number: Mutex<u64>,
    /// Numbers of resources to close before the next call. Until then no one notices that they are
    /// open, and the head thread need not be woken.
    pub unused: Mutex<Vec<u64>>,
}

impl HeadState {
    /// Returns a number for something that is to be opened on the head.
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

    /// Returns the number of the running head.
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

    /// Closes the resource with this number after the calls that were sent before.
    pub(super) fn close_in_turn(&self, number: u64) {
        // A head that has ended has closed all of its resources.
        let _ = self.send(Job::Call(Box::new(move |head| head.close_number(number))));
    }

    /// Closes all resources on the head, which ends reads, so that the head can truncate.
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
        // A head that has ended has closed all of its resources.
        let _ = self.send(ended);
    }

    /// Returns which memory was too short for the replay; `None` if the log was replayed.
    pub fn shortage(&self) -> Option<Shortage> {
        *lock(&self.state.shortage)
    }

    pub fn skipped_records(&self) -> u64 {
        self.state.skipped_records.load(Relaxed)
    }

    /// Returns the figures of the logs, once they were opened.
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

    pub(super) fn start_call<T: Send + 'static>(
        &self,
        call: impl FnOnce(&mut HeadInstance) -> Result<T, CallError> + Send + 'static,
    ) -> Result<oneshot::Receiver<Result<T, CallError>>, HeadLost> {
        // A head that is replaying its log does no jobs, and the caller must not wait for the end.
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

impl HeadInstance {
    pub(super) fn new(instance: Instance, logs: &Arc<Mutex<Logs>>) -> HeadInstance {
        HeadInstance { instance, open: HashMap::new(), crashed: None, logs: Arc::clone(logs) }
    }

    /// Returns the cursor with this number.
    pub(super) fn cursor(&self, number: u64) -> Result<HeadCursorHandle, CallError> {
        match self.open.get(&number) {
            Some(OpenOnHead::Cursor(handle)) => Ok(*handle),
            _ => Err(CallError::Head(HeadLost::Restarted)),
        }
    }

    /// Closes the resource with this number, if it is still open.
    pub(super) fn close_number(&mut self, number: u64) {
        let Some(open) = self.open.remove(&number) else { return };
        let closed = self.close(open);
        let _ = self.noting_crash(closed);
    }

    pub(super) fn close(&mut self, open: OpenOnHead) -> Result<(), CallError> {
        match open {
            OpenOnHead::Cursor(handle) => self.instance.close_head_cursor(handle),
            OpenOnHead::Strings(handle) => self.instance.close_strings(handle),
            OpenOnHead::Scan(handle) => self.instance.close_scan(handle),
            OpenOnHead::Walk(handle) => self.instance.close_walk(handle),
        }
    }

    /// Records that the instance cannot be used any more, if a result shows that.
    pub(super) fn noting_crash<T>(&mut self, result: Result<T, CallError>) -> Result<T, CallError> {
        if let Err(end) = &result
            && end.is_end()
        {
            self.crashed = Some(end.to_string());
        }
        result
    }
}
