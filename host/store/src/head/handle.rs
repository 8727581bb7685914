//! The handle of the head thread: the jobs that it takes, and their senders.

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

/// Something for the head thread to do.
pub(crate) enum Job {
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
pub(crate) enum Rows {
    /// A decompressed body of remote write.
    RemoteWrite { version: RemoteWriteVersion, body: Body },
    /// What a scrape stores.
    Scrape(ScrapeRows),
}

/// All that a scrape stores.
pub struct ScrapeRows {
    /// What has no columns.
    pub bodies: Vec<(RemoteWriteVersion, Body)>,
    /// Which start of the head gave the numbers.
    pub generation: u64,
    /// How many samples there are.
    pub count: usize,
    /// Makes columns of some of them: a copy of all would be as large as what is scraped. The
    /// report is their end.
    pub rows: Box<dyn Fn(Range<usize>) -> Columns + Send>,
    /// Series that end, unless they have values at that time or later.
    pub ended: Vec<u64>,
    /// The time of their markers.
    pub ended_at_ms: i64,
}

/// What became of rows.
#[derive(Debug)]
pub(crate) struct Stored {
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
pub(crate) struct HeadInstance {
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
pub(crate) struct HeadHandle {
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
    /// Why the log is not replayed, while the head that is ready has nothing of it.
    pub shortage: Mutex<Option<Shortage>>,
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

    /// Which memory was short when the log should have been replayed; `None` if it was.
    pub fn shortage(&self) -> Option<Shortage> {
        *lock(&self.state.shortage)
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

    pub(super) fn start_call<T: Send + 'static>(
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

impl HeadInstance {
    pub(super) fn new(instance: Instance, logs: &Arc<Mutex<Logs>>) -> HeadInstance {
        HeadInstance { instance, open: HashMap::new(), crashed: None, logs: Arc::clone(logs) }
    }

    /// The cursor that has this number.
    pub(super) fn cursor(&self, number: u64) -> Result<HeadCursorHandle, CallError> {
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

    pub(super) fn close(&mut self, open: OpenOnHead) -> Result<(), CallError> {
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
