//! The head thread: it alone calls the head instance, job by job.
//!
//! Writes come first: reads, cuts and questions take their turns between groups of them, one each.
//! Group commit: when the log is to be synced before answering, the jobs that wait are done first,
//! then one sync serves them all.

mod access;
mod handle;
mod overdue;
mod replay;
mod scrape;
mod snapshot;
mod walk;

pub use handle::ScrapeRows;
pub(super) use handle::{HeadHandle, HeadInstance, Job, Rows, Stored};
pub(super) use walk::OnHead;

use super::starts::{StartError, Starts};
use super::{BodyRoom, Shared, Shortage, StopError, StoreError};
use handle::Call;
use scrape::{LongScrape, OpenScrape};
use std::collections::VecDeque;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tidepool_disk::wal::Logs;
use tidepool_disk::{DataDir, DiskError, RecordFormat, SyncPolicy};
use tidepool_runtime::{
    CallError, CallLimit, Instance, InstanceLimits, InstanceLogs, InstanceStorage,
    RemoteWriteVersion, Role, WriteOutcome,
};
use tokio::sync::oneshot;

/// Most writes that share one sync.
const GROUP_WRITES_MAX: usize = 256;

/// How long to wait before a crashed head is started again.
const RESTART_PAUSE: Duration = Duration::from_secs(1);

/// The state of the head thread.
pub(super) struct HeadThread {
    shared: Arc<Shared>,
    data: DataDir,
}

/// A head, and the logs that it owns.
type Started = (HeadInstance, Arc<Mutex<Logs>>);

/// A write that is in the log and waits for its group's sync.
type Written = (oneshot::Sender<Result<Stored, StoreError>>, Stored, BodyRoom);

impl HeadThread {
    pub fn new(shared: Arc<Shared>, data: DataDir) -> HeadThread {
        HeadThread { shared, data }
    }

    /// Works until it is stopped. `fail` gets the reason why the head could not start at all.
    pub fn run(
        self,
        jobs: &Receiver<Job>,
        fail: oneshot::Sender<StoreError>,
    ) -> Result<(), StopError> {
        let mut fail = Some(fail);
        let mut starts = Starts::new(self.data.clone(), self.shared.config.failed_starts_max);
        loop {
            let begun = starts.begin();
            let started = Instant::now();
            *lock(&self.shared.head.state.shortage) = None;
            let replayed = begun.and_then(|()| self.start(&starts));
            let started_head = match replayed {
                Err(StartError::ShortOfMemory(shortage)) => self.start_unreplayed(shortage),
                other => other,
            };
            let (mut head, logs) = match started_head {
                Ok(started) => started,
                Err(StartError::Stopped) => {
                    starts.ended();
                    return Ok(());
                }
                Err(StartError::Hopeless(error)) => {
                    starts.ended();
                    if let Some(fail) = fail.take() {
                        // The process ends with this; the receiver may be dropped.
                        let _ = fail.send(error);
                        return Ok(());
                    }
                    tracing::error!(%error, "could not restart the head; retrying");
                    std::thread::sleep(RESTART_PAUSE);
                    continue;
                }
                Err(StartError::ShortOfMemory(_)) => {
                    starts.ended();
                    std::thread::sleep(RESTART_PAUSE);
                    continue;
                }
                Err(StartError::Passing(error)) => {
                    starts.ended();
                    self.shared.counters.failed_starts.fetch_add(1, Relaxed);
                    tracing::error!(%error, "could not read or write the WAL; retrying");
                    std::thread::sleep(RESTART_PAUSE);
                    continue;
                }
                Err(StartError::Failed { error, records }) => {
                    starts.failed(records);
                    self.shared.counters.failed_starts.fetch_add(1, Relaxed);
                    tracing::error!(
                        %error, records,
                        "WAL replay stopped after this many records; retrying"
                    );
                    std::thread::sleep(RESTART_PAUSE);
                    continue;
                }
            };
            starts.ready();
            // From here on a failure is met by starting again, not by ending the process.
            fail = None;
            let state = &self.shared.head.state;
            state.start_nanos.store(started.elapsed().as_nanos() as u64, Relaxed);
            state.generation.fetch_add(1, Relaxed);
            self.shared.ledger.changed();
            state.ready.store(true, Relaxed);
            let stopped = self.work(&mut head, &logs, jobs);
            self.shared.head.state.ready.store(false, Relaxed);
            if let Some(stopped) = stopped {
                return stopped;
            }
            let reason = head.crashed.unwrap_or_default();
            self.shared.counters.head_crashes.fetch_add(1, Relaxed);
            tracing::error!(reason, "head instance crashed; restarting it from the WAL");
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
            tracing::error!(%error, "the WAL cannot be written; writes wait, retrying");
            std::thread::sleep(RESTART_PAUSE);
        }
        self.shared.space.set_unwritten_bytes(lock(logs).unwritten_bytes());
    }

    /// An instance that owns the logs, with an empty head.
    fn instantiate(&self, logs: Logs) -> Result<(Instance, Arc<Mutex<Logs>>), StoreError> {
        *lock(&self.shared.head.state.logs_monitor) = Some(logs.monitor());
        let logs = Arc::new(Mutex::new(logs));
        let mut instance = self.instantiate_with(InstanceLogs::Owned(Arc::clone(&logs)))?;
        let kept = Arc::clone(&logs);
        instance.on_overdue(move |overdue| overdue::end_process(overdue, &kept));
        if self.shared.record_format == RecordFormat::Columns {
            instance.log_by_columns()?;
        }
        Ok((instance, logs))
    }

    fn instantiate_with(&self, logs: InstanceLogs) -> Result<Instance, StoreError> {
        let storage =
            InstanceStorage { logs, blocks: self.shared.blocks.clone(), head: None, memory: None };
        let memory_bytes_max = self.shared.config.memory.head_bytes as usize;
        let limits = InstanceLimits { memory_bytes_max, deadline: None };
        let options = self.shared.options(Role::Head);
        Ok(self.shared.runtime.instantiate(options, storage, limits)?)
    }

    /// An empty head beside logs that there is too little memory for, so that blocks are served.
    fn start_unreplayed(&self, shortage: Option<Shortage>) -> Result<Started, StartError> {
        let split = &self.shared.config.memory;
        let found = self.shared.head.logs_monitor().map(|monitor| monitor.replay());
        let shortage = shortage.unwrap_or(Shortage::of_head(split, found.unwrap_or_default()));
        tracing::error!(
            "{shortage}. Until then blocks are served alone and writes are refused; the WAL is \
             kept as it is"
        );
        let opened = Logs::open(&self.data, self.shared.config.wal);
        let logs = Arc::new(Mutex::new(opened.map_err(StartError::opening)?));
        let started = self.instantiate_with(InstanceLogs::Unread).and_then(|mut instance| {
            while !instance.replay(1)?.done {}
            self.take_brief_stats(&mut instance)?;
            Ok((HeadInstance::new(instance, &logs), logs))
        });
        let started = started.map_err(StartError::Hopeless)?;
        *lock(&self.shared.head.state.shortage) = Some(shortage);
        Ok(started)
    }

    /// How long calls for such a purpose may take together.
    fn limit(&self, what: &'static str) -> Option<CallLimit> {
        Some(CallLimit { what, time: self.shared.config.head_timeout })
    }

    /// Makes an instance with what was there at the last stop.
    /// If starts have failed, that is taken from the logs, lest they pay for a bad snapshot.
    fn start(&self, starts: &Starts) -> Result<Started, StartError> {
        if starts.have_failed()
            && let Err(error) = self.data.remove_head_snapshot()
        {
            tracing::warn!(%error, "could not delete the head snapshot");
        }
        match self.start_from_snapshot()? {
            Some(started) => Ok(started),
            None => self.start_from_logs(starts),
        }
    }

    /// Looks at what changes with every write.
    fn take_brief_stats(&self, instance: &mut Instance) -> Result<(), CallError> {
        let brief = instance.brief_stats()?;
        self.shared.head.state.memory_used_bytes.store(brief.memory_used_bytes, Relaxed);
        self.shared.clock.stored(brief.newest_time_ms);
        if brief.oldest_stored_ms < i64::MAX {
            self.shared.ledger.stored(brief.oldest_stored_ms);
        }
        Ok(())
    }

    /// Stores rows.
    fn append(&self, head: &mut HeadInstance, rows: Rows) -> Result<Stored, StoreError> {
        match rows {
            Rows::RemoteWrite { version, body } => {
                head.instance.set_limit(self.limit("a write"));
                let stored = self.append_body(&mut head.instance, version, &body);
                let stored = head.noting_crash(stored);
                stored.map(Stored::from).map_err(|error| StoreError::from(error).of_head())
            }
            Rows::Scrape(rows) => self.append_scrape(head, OpenScrape::new(rows)),
        }
    }

    /// Stores a body. If the clock cannot be right, the body tells the time as well.
    fn append_body(
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

    fn never_syncs(&self) -> bool {
        self.shared.config.wal.sync == SyncPolicy::Off
    }

    /// Does jobs until it is stopped, and says whether the log has all, or until the instance
    /// crashes (`None`).
    fn work(
        &self,
        head: &mut HeadInstance,
        logs: &Mutex<Logs>,
        jobs: &Receiver<Job>,
    ) -> Option<Result<(), StopError>> {
        let mut group: Vec<Written> = Vec::new();
        // Whether the log says that records wait in memory because they cannot be written.
        let mut held = false;
        let mut calls: VecDeque<Call> = VecDeque::new();
        let mut scrapes: VecDeque<LongScrape> = VecDeque::new();
        loop {
            let due_at = lock(logs).sync_due_at();
            let next = match due_at {
                _ if !calls.is_empty() || !scrapes.is_empty() => {
                    jobs.try_recv().map_err(|_| RecvTimeoutError::Timeout)
                }
                None => jobs.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(due_at) => jobs.recv_timeout(due_at.saturating_duration_since(Instant::now())),
            };
            let mut stop = matches!(next, Err(RecvTimeoutError::Disconnected));
            let mut is_changed = false;
            let mut next = next.ok();
            while let Some(job) = next.take() {
                match job {
                    Job::Append { rows: Rows::Scrape(rows), reply, room }
                        if OpenScrape::is_long(&rows) =>
                    {
                        scrapes.push_back((OpenScrape::new(rows), reply, room));
                    }
                    Job::Append { rows, reply, room } => {
                        let stored = self.check_writable();
                        let stored = stored.and_then(|()| self.append(head, rows));
                        is_changed = true;
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
            // After the writes that wait, a part of one scrape; before a stop, all of them.
            while head.crashed.is_none() && !scrapes.is_empty() {
                is_changed = true;
                self.go_on_with_scrape(head, &mut scrapes, &mut group);
                if !stop {
                    break;
                }
            }
            // Before its senders are answered, and before anything can read what is new.
            if std::mem::take(&mut is_changed) && head.crashed.is_none() {
                let looked = self.take_brief_stats(&mut head.instance);
                let _ = head.noting_crash(looked);
            }
            self.finish_group(&mut group, logs, &mut held);
            self.close_unused(head);
            // After all writes that wait, one call: writes wait for one of them at most. None sees
            // a part of a scrape.
            let is_whole = !scrapes.front().is_some_and(|(scrape, ..)| scrape.is_begun());
            if head.crashed.is_none()
                && is_whole
                && let Some(call) = calls.pop_front()
            {
                head.instance.set_limit(self.limit("a read, a cut or a deletion"));
                call(head);
                is_changed = true;
            }
            if head.crashed.is_none() {
                if is_changed {
                    let looked = self.take_brief_stats(&mut head.instance);
                    let _ = head.noting_crash(looked);
                }
                // Until the next job, which may be long.
                head.instance.set_limit(None);
            }
            if stop {
                let mut logs = lock(logs);
                // Once more: the next process knows nothing of what is left.
                let synced = logs.sync().or_else(|_| logs.sync());
                let unwritten_bytes = logs.unwritten_bytes();
                drop(logs);
                return Some(match synced {
                    Ok(()) => {
                        self.save_snapshot(head);
                        Ok(())
                    }
                    // Nothing was promised, and a sync that a deletion asked for was answered.
                    Err(error) if unwritten_bytes == 0 && self.never_syncs() => {
                        tracing::warn!(%error, "could not sync the WAL at the stop");
                        Ok(())
                    }
                    Err(error) if unwritten_bytes == 0 => Err(StopError::Unsynced(error)),
                    Err(error) => Err(StopError::Unwritten { unwritten_bytes, error }),
                });
            }
            if head.crashed.is_some() {
                for (_, reply, _) in scrapes {
                    answer(reply, Err(StoreError::SeriesGone));
                }
                return None;
            }
        }
    }

    /// Whether the store takes writes now: the queue may hold more than the disk has room for.
    fn check_writable(&self) -> Result<(), StoreError> {
        self.shared.check_replayed()?;
        self.shared.space.check()
    }

    /// Closes what readers have no use for any more, before a call that may depend on it.
    fn close_unused(&self, head: &mut HeadInstance) {
        let unused = std::mem::take(&mut *lock(&self.shared.head.state.unused));
        if unused.is_empty() || head.crashed.is_some() {
            return;
        }
        head.instance.set_limit(self.limit("the end of a read"));
        for number in unused {
            head.close_number(number);
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
            // The write is retried every second; only the first failure is logged as an error.
            match matches!(error, DiskError::WalHeld { .. }) && std::mem::replace(held, true) {
                true => tracing::debug!(%error, "the log could still not be written"),
                false => tracing::error!(%error, "could not sync the WAL"),
            }
            error.to_string()
        });
        if is_synced && std::mem::take(held) {
            tracing::info!("the WAL is writable again; no data was lost");
        }
        let always = self.shared.config.wal.sync == SyncPolicy::Always;
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

fn answer(reply: oneshot::Sender<Result<Stored, StoreError>>, result: Result<Stored, StoreError>) {
    // A sender that went away gets no answer, and needs none.
    let _ = reply.send(result);
}

/// Locks; a panic of another holder left nothing half-done that matters here.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
