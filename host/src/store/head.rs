//! The head thread: it alone calls the head instance, job by job.
//!
//! Writes come first: reads, cuts and questions take their turns between groups of them, one each.
//! Group commit: when the log is to be synced before answering, the jobs that wait are done first,
//! then one sync serves them all.

mod snapshot;

use super::starts::{StartError, Starts};
use super::{BodyRoom, Shared, StoreError};
use crate::disk::wal::{Logs, LogsMonitor};
use crate::disk::{DataDir, DiskError};
use crate::wasm::{
    CallError, CursorHandle, Deletion, Error, FrameFormat, HeadAccess, Instance, InstanceLimits,
    InstanceLogs, InstanceStorage, Label, Lookup, Matcher, RemoteWriteVersion, Role, Selection,
    StorageError, TextsHandle, TimeRange, WriteOutcome,
};
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Most writes that share one sync.
const GROUP_WRITES_MAX: usize = 256;

/// Bytes of log that are replayed in one call.
const REPLAY_BYTES: u32 = 1024 * 1024;

/// How often a replay tells how far it is.
const REPLAY_REPORT_EVERY: Duration = Duration::from_secs(5);

/// How long to wait before a crashed head is started again.
const RESTART_PAUSE: Duration = Duration::from_secs(1);

/// Something for the head thread to do.
pub(super) enum Job {
    /// Store a body and answer once the log has it.
    Append {
        version: RemoteWriteVersion,
        body: Vec<u8>,
        reply: oneshot::Sender<Result<WriteOutcome, StoreError>>,
        /// Room for the body, given back when the job is done.
        room: BodyRoom,
    },
    /// Any other call.
    Call(Call),
    /// Finish.
    Stop,
}

/// Something to be done with the head.
type Call = Box<dyn FnOnce(&mut HeadInstance) + Send>;

/// The head instance and the cursors that others hold on it.
pub(super) struct HeadInstance {
    pub instance: Instance,
    open: HashMap<u64, OpenOnHead>,
    crashed: Option<String>,
    logs: Arc<Mutex<Logs>>,
}

/// What others have open on the head.
#[derive(Clone, Copy)]
enum OpenOnHead {
    Cursor(CursorHandle),
    Texts(TextsHandle),
}

/// The way to the head thread.
#[derive(Clone)]
pub(super) struct HeadHandle {
    jobs: Sender<Job>,
    state: Arc<HeadState>,
}

#[derive(Default)]
struct HeadState {
    ready: AtomicBool,
    /// Bytes of memory that the head had in use when it was last looked at.
    memory_used_bytes: AtomicU64,
    /// Records of the log that the last replay did not understand.
    skipped_records: AtomicU64,
    logs_monitor: Mutex<Option<LogsMonitor>>,
    /// Whether the last start took the head from a snapshot.
    snapshot_used: AtomicBool,
    /// How long the last start took.
    start_nanos: AtomicU64,
    /// Last number of what was opened on a head. Never given twice, so that what was open on a
    /// crashed head means nothing to the next one.
    last_number: Mutex<u64>,
}

impl HeadHandle {
    pub fn new() -> (HeadHandle, Receiver<Job>) {
        let (jobs, receiver) = channel();
        (HeadHandle { jobs, state: Arc::default() }, receiver)
    }

    pub fn is_ready(&self) -> bool {
        self.state.ready.load(Relaxed)
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

    /// Ends everything that is open on the head, so that it can forget.
    pub fn end_reads(&self) {
        let ended = Job::Call(Box::new(|head| {
            let open: Vec<OpenOnHead> = head.open.drain().map(|(_, open)| open).collect();
            if !open.is_empty() {
                tracing::warn!(reads = open.len(), "reads were ended since memory is short");
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
        self.start_call(call)?.await.map_err(|_| StoreError::Stopped)?
    }

    /// Runs a call on the head thread and blocks until it is done.
    fn call_blocking<T: Send + 'static>(
        &self,
        call: impl FnOnce(&mut HeadInstance) -> Result<T, CallError> + Send + 'static,
    ) -> Result<T, Error> {
        let answer = self.start_call(call);
        let answer = answer.and_then(|a| a.blocking_recv().map_err(|_| StoreError::Stopped)?);
        answer.map_err(|error| match error {
            StoreError::Refused(error) => error,
            other => Error::Storage(StorageError::Io(other.to_string())),
        })
    }

    /// Deletes samples of the head, and blocks until that is durable.
    pub fn delete(
        &self,
        selectors: Vec<Vec<Matcher>>,
        range: TimeRange,
    ) -> Result<Deletion, StoreError> {
        let answer = self.start_call(move |head| {
            let deletion = head.instance.delete(&selectors, range)?;
            Ok((deletion, lock(&head.logs).sync()))
        })?;
        let (deletion, synced) = answer.blocking_recv().map_err(|_| StoreError::Stopped)??;
        synced.map_err(|error| StoreError::NotDurable(error.to_string()))?;
        Ok(deletion)
    }

    fn start_call<T: Send + 'static>(
        &self,
        call: impl FnOnce(&mut HeadInstance) -> Result<T, CallError> + Send + 'static,
    ) -> Result<oneshot::Receiver<Result<T, StoreError>>, StoreError> {
        self.check_ready()?;
        let (reply, answer) = oneshot::channel();
        self.send(Job::Call(Box::new(move |head| {
            let result = call(head);
            // Nobody waits any more if the caller went away.
            let _ = reply.send(head.noting_crash(result));
        })))?;
        Ok(answer)
    }
}

impl HeadHandle {
    /// Opens something on the head and gives its number.
    fn open_on_head(
        &self,
        open: impl FnOnce(&mut Instance) -> Result<OpenOnHead, CallError> + Send + 'static,
    ) -> Result<u64, Error> {
        let number = {
            let mut last = lock(&self.state.last_number);
            *last += 1;
            *last
        };
        self.call_blocking(move |head| {
            let opened = open(&mut head.instance)?;
            head.open.insert(number, opened);
            Ok(number)
        })
    }
}

impl HeadAccess for HeadHandle {
    fn open(
        &self,
        matchers: Vec<Matcher>,
        range: TimeRange,
        external_labels: Vec<Label>,
    ) -> Result<u64, Error> {
        self.open_on_head(move |head| {
            let cursor = head.select(&Selection {
                matchers,
                range,
                format: FrameFormat::ChunkedSeries,
                query_index: 0,
                frame_bytes_max: 0,
                samples_max: 0,
                external_labels,
            })?;
            Ok(OpenOnHead::Cursor(cursor))
        })
    }

    fn series(&self, lookup: Lookup) -> Result<u64, Error> {
        self.open_on_head(move |head| head.series(&lookup).map(OpenOnHead::Cursor))
    }

    fn label_names(&self, lookup: Lookup) -> Result<u64, Error> {
        self.open_on_head(move |head| head.label_names(&lookup).map(OpenOnHead::Texts))
    }

    fn label_values(&self, name: String, lookup: Lookup) -> Result<u64, Error> {
        self.open_on_head(move |head| head.label_values(&name, &lookup).map(OpenOnHead::Texts))
    }

    fn next(&self, cursor: u64, bytes_max: u32) -> Result<Vec<u8>, Error> {
        self.call_blocking(move |head| match head.open.get(&cursor) {
            Some(OpenOnHead::Cursor(handle)) => head.instance.next_frames(*handle, bytes_max),
            _ => Err(CallError::Refused(head_restarted())),
        })
    }

    fn rewind(&self, cursor: u64) -> Result<(), Error> {
        self.call_blocking(move |head| match head.open.get(&cursor) {
            Some(OpenOnHead::Cursor(handle)) => head.instance.rewind(*handle),
            _ => Err(CallError::Refused(head_restarted())),
        })
    }

    fn next_texts(&self, texts: u64, bytes_max: u32) -> Result<Vec<String>, Error> {
        self.call_blocking(move |head| match head.open.get(&texts) {
            Some(OpenOnHead::Texts(handle)) => head.instance.next_texts(*handle, bytes_max),
            _ => Err(CallError::Refused(head_restarted())),
        })
    }

    fn close(&self, number: u64) {
        // A head that is gone has closed what was open on it.
        let _ = self.send(Job::Call(Box::new(move |head| {
            let Some(open) = head.open.remove(&number) else { return };
            let closed = head.close(open);
            let _ = head.noting_crash(closed);
        })));
    }

    fn plan_cut(&self) -> Result<Option<TimeRange>, Error> {
        self.call_blocking(|head| head.instance.plan_cut())
    }

    fn forget(&self, before_ms: i64) -> Result<bool, Error> {
        self.call_blocking(move |head| head.instance.forget(before_ms))
    }

    fn deletion_mark(&self) -> Result<u64, Error> {
        self.call_blocking(|head| head.instance.deletion_mark())
    }
}

impl HeadInstance {
    fn new(instance: Instance, logs: &Arc<Mutex<Logs>>) -> HeadInstance {
        HeadInstance { instance, open: HashMap::new(), crashed: None, logs: Arc::clone(logs) }
    }

    fn close(&mut self, open: OpenOnHead) -> Result<(), CallError> {
        match open {
            OpenOnHead::Cursor(handle) => self.instance.close_cursor(handle),
            OpenOnHead::Texts(handle) => self.instance.close_texts(handle),
        }
    }

    /// Remembers that the instance is of no further use, if that is what a result says.
    fn noting_crash<T>(&mut self, result: Result<T, CallError>) -> Result<T, StoreError> {
        if let Err(end) = &result
            && end.is_end()
        {
            self.crashed = Some(end.to_string());
        }
        result.map_err(Into::into)
    }
}

fn head_restarted() -> Error {
    let why = "the head was restarted, or ran short of memory, while it was being read; read again";
    Error::Storage(StorageError::Io(why.into()))
}

/// What the head thread works with.
pub(super) struct HeadThread {
    shared: Arc<Shared>,
    data: DataDir,
}

/// A write that is in the log and waits for its group's sync.
type Written = (oneshot::Sender<Result<WriteOutcome, StoreError>>, WriteOutcome, BodyRoom);

impl HeadThread {
    pub fn new(shared: Arc<Shared>, data: DataDir) -> HeadThread {
        HeadThread { shared, data }
    }

    /// Works until it is told to stop. `fail` hears why the head could not start at all.
    pub fn run(self, jobs: &Receiver<Job>, fail: oneshot::Sender<StoreError>) {
        let mut fail = Some(fail);
        let mut starts = Starts::new(self.data.clone(), self.shared.config.failed_starts_max);
        loop {
            starts.begin();
            let started = Instant::now();
            let (mut head, logs) = match self.start(starts.have_failed()) {
                Ok(started) => started,
                Err(StartError::Stopped) => {
                    starts.not_counted();
                    return;
                }
                Err(StartError::Hopeless(error)) => {
                    starts.not_counted();
                    if let Some(fail) = fail.take() {
                        // The process ends with this; nobody else is left to be told.
                        let _ = fail.send(error);
                        return;
                    }
                    tracing::error!(%error, "the head could not be restarted; trying again");
                    std::thread::sleep(RESTART_PAUSE);
                    continue;
                }
                Err(StartError::Failed(error)) => {
                    starts.failed();
                    self.shared.counters.failed_starts.fetch_add(1, Relaxed);
                    tracing::error!(%error, "the log could not be replayed; trying again");
                    std::thread::sleep(RESTART_PAUSE);
                    continue;
                }
            };
            starts.ready();
            // From here on a failure is met by starting again, not by ending the process.
            fail = None;
            let state = &self.shared.head.state;
            state.start_nanos.store(started.elapsed().as_nanos() as u64, Relaxed);
            state.ready.store(true, Relaxed);
            let stopped = self.work(&mut head, &logs, jobs);
            self.shared.head.state.ready.store(false, Relaxed);
            if stopped {
                return;
            }
            let reason = head.crashed.unwrap_or_default();
            self.shared.counters.head_crashes.fetch_add(1, Relaxed);
            tracing::error!(reason, "the head instance crashed; it is made anew from the log");
            std::thread::sleep(RESTART_PAUSE);
            self.write_out(&logs);
        }
    }

    /// Writes what the log has gathered: the next head is made of what is written. Waits as long as
    /// that cannot be done.
    fn write_out(&self, logs: &Mutex<Logs>) {
        while let Err(error) = lock(logs).sync() {
            if lock(logs).unwritten_bytes() == 0 || self.shared.stopping.load(Relaxed) {
                break;
            }
            tracing::error!(%error, "the head waits until the log can be written; trying again");
            std::thread::sleep(RESTART_PAUSE);
        }
        self.shared.space.set_unwritten_bytes(lock(logs).unwritten_bytes());
    }

    /// An instance that owns the logs, with an empty head.
    fn instantiate(&self, logs: Logs) -> Result<(Instance, Arc<Mutex<Logs>>), StoreError> {
        *lock(&self.shared.head.state.logs_monitor) = Some(logs.monitor());
        let logs = Arc::new(Mutex::new(logs));
        let storage = InstanceStorage {
            logs: InstanceLogs::Owned(Arc::clone(&logs)),
            blocks: self.shared.blocks.clone(),
            head: None,
            memory: None,
        };
        let memory_bytes_max = self.shared.config.memory.head_bytes as usize;
        let limits = InstanceLimits { memory_bytes_max, deadline: None };
        let options = self.shared.options(Role::Head);
        let instance = self.shared.runtime.instantiate(options, storage, limits)?;
        Ok((instance, logs))
    }

    /// Makes an instance with what was there at the last stop.
    /// If starts have failed, that is taken from the logs, lest they pay for a bad snapshot.
    fn start(&self, have_failed: bool) -> Result<(HeadInstance, Arc<Mutex<Logs>>), StartError> {
        if have_failed && let Err(error) = self.data.remove_head_snapshot() {
            tracing::warn!(%error, "the head snapshot could not be removed");
        }
        match self.start_from_snapshot()? {
            Some(started) => Ok(started),
            None => self.start_from_logs(),
        }
    }

    /// Makes an instance and replays the log into it.
    fn start_from_logs(&self) -> Result<(HeadInstance, Arc<Mutex<Logs>>), StartError> {
        let started = Instant::now();
        self.shared.head.state.snapshot_used.store(false, Relaxed);
        let logs = Logs::open(&self.data, self.shared.config.wal).map_err(StartError::opening)?;
        let monitor = logs.monitor();
        let (mut instance, logs) = self.instantiate(logs).map_err(StartError::Hopeless)?;
        let mut reported = started;
        loop {
            if self.shared.stopping.load(Relaxed) {
                return Err(StartError::Stopped);
            }
            let progress = instance.replay(REPLAY_BYTES);
            let progress = progress.map_err(|error| StartError::Failed(error.into()))?;
            let found = monitor.replay();
            if progress.done {
                tracing::info!(
                    segments = found.segments_done,
                    records = progress.records,
                    samples = progress.samples,
                    skipped_records = progress.skipped_records,
                    torn_bytes = found.torn_bytes,
                    damaged_bytes = found.damaged_bytes,
                    seconds = started.elapsed().as_secs_f64(),
                    "log replayed; the store is ready"
                );
                let state = &self.shared.head.state;
                state.skipped_records.store(progress.skipped_records, Relaxed);
                if progress.skipped_records > 0 {
                    tracing::warn!(
                        skipped_records = progress.skipped_records,
                        "the log has records of types that this version does not know, or that do \
                         not decode; they were skipped, all others were replayed"
                    );
                }
                self.data.retire_head_caches(&mut lock(&logs)).unwrap_or_else(|error| {
                    tracing::warn!(
                        %error,
                        "Prometheus' cache of its head gets out of date and could not be removed; \
                         start again before Prometheus is started here"
                    );
                });
                break;
            }
            if reported.elapsed() >= REPLAY_REPORT_EVERY {
                reported = Instant::now();
                tracing::info!(
                    segment = progress.segment,
                    segment_max = found.segment_max,
                    percent = found.percent(),
                    bytes = found.bytes_done,
                    bytes_total = found.bytes_total,
                    samples = progress.samples,
                    "replaying the log"
                );
            }
        }
        let pulse = self.take_pulse(&mut instance);
        pulse.map_err(|error| StartError::Failed(error.into()))?;
        Ok((HeadInstance::new(instance, &logs), logs))
    }

    /// Looks at what changes with every write.
    fn take_pulse(&self, instance: &mut Instance) -> Result<(), CallError> {
        let pulse = instance.pulse()?;
        self.shared.head.state.memory_used_bytes.store(pulse.memory_used_bytes, Relaxed);
        self.shared.clock.stored(pulse.newest_time_ms);
        Ok(())
    }

    /// Stores a body. If the clock cannot be right, the body tells the time as well.
    fn append(
        &self,
        instance: &mut Instance,
        version: RemoteWriteVersion,
        body: &[u8],
    ) -> Result<WriteOutcome, CallError> {
        let clock = &self.shared.clock;
        if clock.is_doubted()
            && let Some(time_ms) = instance.sample_time(version, body)?
        {
            clock.heard(time_ms);
        }
        instance.append_remote_write(version, body, clock.now_ms())
    }

    /// Does jobs until it is told to stop (true) or the instance crashes (false).
    fn work(&self, head: &mut HeadInstance, logs: &Mutex<Logs>, jobs: &Receiver<Job>) -> bool {
        let mut group: Vec<Written> = Vec::new();
        // Whether it was told that records wait in memory because they cannot be written.
        let mut held = false;
        let mut calls: VecDeque<Call> = VecDeque::new();
        loop {
            let due_at = lock(logs).sync_due_at();
            let next = match due_at {
                _ if !calls.is_empty() => jobs.try_recv().map_err(|_| RecvTimeoutError::Timeout),
                None => jobs.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(due_at) => jobs.recv_timeout(due_at.saturating_duration_since(Instant::now())),
            };
            let mut stop = matches!(next, Err(RecvTimeoutError::Disconnected));
            let mut next = next.ok();
            while let Some(job) = next.take() {
                head.instance.set_deadline(Some(self.shared.config.head_timeout));
                match job {
                    Job::Append { version, body, reply, room } => {
                        // The queue may hold more than the disk has room for.
                        let stored = self.shared.space.check().and_then(|()| {
                            let stored = self.append(&mut head.instance, version, &body);
                            head.noting_crash(stored).map_err(StoreError::of_write)
                        });
                        match stored {
                            Ok(outcome) => group.push((reply, outcome, room)),
                            Err(error) => answer(reply, Err(error)),
                        }
                    }
                    Job::Call(call) => calls.push_back(call),
                    Job::Stop => stop = true,
                }
                if head.crashed.is_none() && !stop && group.len() < GROUP_WRITES_MAX {
                    next = jobs.try_recv().ok();
                }
            }
            self.finish_group(&mut group, logs, &mut held);
            // After all writes that wait, one call: writes wait for one of them at most.
            if head.crashed.is_none()
                && let Some(call) = calls.pop_front()
            {
                head.instance.set_deadline(Some(self.shared.config.head_timeout));
                call(head);
            }
            if head.crashed.is_none() {
                let looked = self.take_pulse(&mut head.instance);
                let _ = head.noting_crash(looked);
            }
            if stop {
                let synced = lock(logs).sync();
                match synced {
                    Ok(()) => self.save_snapshot(head),
                    Err(error) => {
                        tracing::error!(%error, "the log could not be synced at the end");
                    }
                }
                return true;
            }
            if head.crashed.is_some() {
                return false;
            }
        }
    }

    /// Syncs if it is time to, then answers the writes of a group.
    fn finish_group(&self, group: &mut Vec<Written>, logs: &Mutex<Logs>, held: &mut bool) {
        let mut logs = lock(logs);
        let synced = logs.sync_if_due(Instant::now(), !group.is_empty());
        self.shared.space.set_unwritten_bytes(logs.unwritten_bytes());
        drop(logs);
        let is_synced = matches!(synced, Ok(true));
        let failure = synced.err().map(|error| {
            // What is held in memory is tried again every second; once is enough to be told.
            match matches!(error, DiskError::WalHeld { .. }) && std::mem::replace(held, true) {
                true => tracing::debug!(%error, "the log could still not be written"),
                false => tracing::error!(%error, "the log could not be synced"),
            }
            error.to_string()
        });
        if is_synced && std::mem::take(held) {
            tracing::info!("the log could be written again; nothing was lost");
        }
        let always = self.shared.config.wal.sync == crate::disk::SyncPolicy::Always;
        for (reply, outcome, room) in group.drain(..) {
            match &failure {
                Some(reason) if always => {
                    answer(reply, Err(StoreError::NotDurable(reason.clone())))
                }
                _ => answer(reply, Ok(outcome)),
            }
            drop(room);
        }
    }
}

fn answer(
    reply: oneshot::Sender<Result<WriteOutcome, StoreError>>,
    result: Result<WriteOutcome, StoreError>,
) {
    // A sender that went away gets no answer, and needs none.
    let _ = reply.send(result);
}

/// Locks; a panic of another holder left nothing half-done that matters here.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
