//! The head thread. Only this thread calls the head instance, one job at a time.
//!
//! Writes have priority: between two groups of writes, one other call (a read, a cut, a deletion)
//! runs. If the log must be synced before writes are answered, all waiting writes share one sync.

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

/// Maximum number of writes that share one sync.
const GROUP_WRITES_MAX: usize = 256;

/// Pause before a crashed head is started again.
const RESTART_PAUSE: Duration = Duration::from_secs(1);

pub(super) struct HeadThread {
    shared: Arc<Shared>,
    data: DataDir,
}

/// A head, and the logs that it writes to.
type Started = (HeadInstance, Arc<Mutex<Logs>>);

/// A write that is in the log and waits for its group's sync: reply, result and memory.
type Written = (oneshot::Sender<Result<Stored, StoreError>>, Stored, BodyRoom);

impl HeadThread {
    pub fn new(shared: Arc<Shared>, data: DataDir) -> HeadThread {
        HeadThread { shared, data }
    }

    /// Works until the store stops. If the head cannot start at all, sends the reason to `fail`.
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
                        // The process ends for this reason, and may have dropped the receiver.
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
            // From here on a failure restarts the head instead of ending the process.
            fail = None;
            let state = &self.shared.head.state;
            // Cannot overflow: 64 bits of nanoseconds are 584 years.
            state.start_nanos.store(started.elapsed().as_nanos() as u64, Relaxed);
            // Before calls are accepted, because numbers of an earlier head are invalid.
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

    /// Writes the buffered records of the log, because the next head replays only written records.
    /// Retries as long as writing fails.
    fn write_out(&self, logs: &Mutex<Logs>) {
        while let Err(error) = lock(logs).sync() {
            // If all records are written, only the sync failed, which the replay does not need.
            if lock(logs).unwritten_bytes() == 0 || self.shared.stopping.load(Relaxed) {
                break;
            }
            tracing::error!(%error, "the WAL cannot be written; writes wait, retrying");
            std::thread::sleep(RESTART_PAUSE);
        }
        self.shared.space.set_unwritten_bytes(lock(logs).unwritten_bytes());
    }

    /// Creates an instance that owns the logs, with an empty head.
    fn instantiate(&self, logs: Logs) -> Result<(Instance, Arc<Mutex<Logs>>), StoreError> {
        *lock(&self.shared.head.state.logs_monitor) = Some(logs.monitor());
        let logs = Arc::new(Mutex::new(logs));
        let mut instance = self.instantiate_with(InstanceLogs::Owned(Arc::clone(&logs)))?;
        // The watchdog syncs the logs while this thread is stuck in a call.
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

    /// Starts an empty head, since the logs do not fit into memory, so that blocks are served.
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
            // The replay of this instance reads nothing; it only makes the instance ready.
            while !instance.replay(1)?.done {}
            self.take_brief_stats(&mut instance)?;
            Ok((HeadInstance::new(instance, &logs), logs))
        });
        let started = started.map_err(StartError::Hopeless)?;
        *lock(&self.shared.head.state.shortage) = Some(shortage);
        Ok(started)
    }

    /// Returns the limit on the total time of calls for one purpose.
    fn limit(&self, what: &'static str) -> Option<CallLimit> {
        Some(CallLimit { what, time: self.shared.config.head_timeout })
    }

    /// Starts the head from the snapshot of the last stop, otherwise from the logs. After a failed
    /// start the snapshot is deleted, so that a bad one is not counted as a failure of the logs.
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

    /// Records the head's figures that change with every write.
    fn take_brief_stats(&self, instance: &mut Instance) -> Result<(), CallError> {
        let brief = instance.brief_stats()?;
        self.shared.head.state.memory_used_bytes.store(brief.memory_used_bytes, Relaxed);
        self.shared.clock.stored(brief.newest_time_ms);
        // `i64::MAX` means that nothing was stored since the last call.
        if brief.oldest_stored_ms < i64::MAX {
            self.shared.ledger.stored(brief.oldest_stored_ms);
        }
        Ok(())
    }

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

    /// Stores a body. While the clock is doubted, its samples also provide the time.
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

    /// Does jobs until a stop; returns whether the log has all, or `None` if the instance crashed.
    fn work(
        &self,
        head: &mut HeadInstance,
        logs: &Mutex<Logs>,
        jobs: &Receiver<Job>,
    ) -> Option<Result<(), StopError>> {
        let mut group: Vec<Written> = Vec::new();
        // Whether the log has reported buffered records that cannot be written.
        let mut held = false;
        let mut calls: VecDeque<Call> = VecDeque::new();
        let mut scrapes: VecDeque<LongScrape> = VecDeque::new();
        loop {
            let due_at = lock(logs).sync_due_at();
            let next = match due_at {
                // With calls or scrapes to do, the thread must not wait for a job.
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
                    // A long scrape is stored in parts, so that writes need not wait for all of it.
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
            // One part of a scrape per round, after the waiting writes; before a stop, all parts.
            while head.crashed.is_none() && !scrapes.is_empty() {
                is_changed = true;
                self.go_on_with_scrape(head, &mut scrapes, &mut group);
                if !stop {
                    break;
                }
            }
            // Before senders are answered, and before a read can see the new samples.
            if std::mem::take(&mut is_changed) && head.crashed.is_none() {
                let looked = self.take_brief_stats(&mut head.instance);
                let _ = head.noting_crash(looked);
            }
            self.finish_group(&mut group, logs, &mut held);
            self.close_unused(head);
            // One call per round, after the waiting writes, and not while a scrape is incomplete.
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
                // The limit is for calls only; waiting for the next job may take long.
                head.instance.set_limit(None);
            }
            if stop {
                let mut logs = lock(logs);
                // Retried once, because records that are not written are lost with the process.
                let synced = logs.sync().or_else(|_| logs.sync());
                let unwritten_bytes = logs.unwritten_bytes();
                drop(logs);
                return Some(match synced {
                    Ok(()) => {
                        self.save_snapshot(head);
                        Ok(())
                    }
                    // The policy promises no durability; deletions were synced before their answer.
                    Err(error) if unwritten_bytes == 0 && self.never_syncs() => {
                        tracing::warn!(%error, "could not sync the WAL at the stop");
                        Ok(())
                    }
                    Err(error) if unwritten_bytes == 0 => Err(StopError::Unsynced(error)),
                    Err(error) => Err(StopError::Unwritten { unwritten_bytes, error }),
                });
            }
            if head.crashed.is_some() {
                // The numbers end with the head; scrapers request new numbers and send again.
                for (_, reply, _) in scrapes {
                    answer(reply, Err(StoreError::SeriesGone));
                }
                return None;
            }
        }
    }

    /// Checks whether writes are accepted now, since the disk may fill while jobs are queued.
    fn check_writable(&self) -> Result<(), StoreError> {
        self.shared.check_replayed()?;
        self.shared.space.check()
    }

    /// Closes the resources that readers no longer use, before a call that may need them closed.
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

    /// Syncs the log if a sync is due, then answers the writes of a group.
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
                // Only the policy `always` promises that an acknowledged write is durable.
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
    // The receiver is dropped if its client has disconnected.
    let _ = reply.send(result);
}

/// Locks a mutex. A panic of another thread that held it leaves no half-changed state that matters.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
