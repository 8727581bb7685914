//! Starts the head from the logs.
//!
//! A separate thread reads, checks and decompresses the logs while the head applies earlier
//! records. If the logs have more data than a head should, and the head needs much memory,
//! compactor instances cut blocks from it during the replay:
//!
//! ```text
//! replay … cut ─▶ staging/A … cut ─▶ staging/B … the end ─▶ publish A, then B ─▶ logs may shrink
//! ```
//!
//! Until the logs are read to their end, the new blocks are not visible: after a crash nothing
//! remains of them, and the next start cuts them again. Before they are published, the out-of-order
//! log durably has the out-of-order samples of their ranges. A crash during publishing leaves the
//! oldest blocks; the next replay skips their samples in the logs, and reads all others.
//!
//! A deletion in the logs applies to records before it, some of which may already be in new blocks.
//! The replay then starts again, and cuts nothing until it has passed the deletion.

use super::access::{CallsHead, OfHead};
use super::handle::HeadState;
use super::{HeadInstance, HeadThread, Started, lock};
use crate::StoreError;
use crate::starts::{StartError, Starts};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tidepool_disk::Staging;
use tidepool_disk::wal::{Logs, LogsMonitor};
use tidepool_runtime::{
    CallError, Error, HeadAccess, InstanceLimits, InstanceLogs, InstanceStorage, ReplayProgress,
    Role, Room,
};

/// Bytes of the log that one call replays.
const REPLAY_BYTES: u32 = 1024 * 1024;

/// Interval of log lines about the progress.
const REPORT_EVERY: Duration = Duration::from_secs(5);

/// During the replay, blocks are cut if the head needs more memory than this, or than a quarter of
/// its limit. Otherwise cutting waits until writes are accepted again.
const CUT_ABOVE_BYTES: u64 = 256 * 1024 * 1024;
const CUT_ABOVE_PART: u64 = 4;

/// Maximum number of times that a replay starts again for a deletion; the next replay cuts nothing.
const RESTARTS_MAX: u32 = 2;

/// The head during the replay, which only the head thread calls.
pub(super) struct ReplayedHead {
    head: Mutex<HeadInstance>,
    state: Arc<HeadState>,
}

/// Condition for cutting blocks during a replay.
#[derive(Clone, Copy, Default)]
struct CutPolicy {
    restarts: u32,
    /// Number of log records that must be replayed before a block is cut.
    after_records: u64,
}

/// The blocks that were cut during the replay.
struct Cuts {
    staging: Staging,
    /// The head's deletion mark before the first of the blocks was cut.
    deletion_mark: u64,
    /// End of the last block, exclusive.
    end_ms: i64,
    blocks: u64,
    /// Time in the last block's ULID. It ascends from block to block, even if the clock does not.
    created_ms: i64,
}

/// Reason for which a replay ended early.
enum Ended {
    /// A deletion was read after blocks were cut.
    Deletion {
        after_records: u64,
    },
    Start(StartError),
}

impl From<StartError> for Ended {
    fn from(error: StartError) -> Ended {
        Ended::Start(error)
    }
}

impl CallsHead for ReplayedHead {
    fn call_now<T: Send + 'static>(
        &self,
        call: impl FnOnce(&mut HeadInstance) -> Result<T, CallError> + Send + 'static,
    ) -> Result<T, Error> {
        Ok(call(&mut lock(&self.head))?)
    }

    fn close_unused(&self, number: u64) {
        lock(&self.head).close_number(number);
    }

    fn state(&self) -> &HeadState {
        &self.state
    }
}

impl HeadThread {
    /// Creates an instance and replays the logs into it.
    pub(super) fn start_from_logs(&self, starts: &Starts) -> Result<Started, StartError> {
        self.shared.head.state.snapshot_used.store(false, Relaxed);
        let mut policy = CutPolicy::default();
        loop {
            match self.replay(policy, starts) {
                Ok(started) => return Ok(started),
                Err(Ended::Start(error)) => return Err(error),
                Err(Ended::Deletion { after_records }) => {
                    let restarts = policy.restarts + 1;
                    tracing::info!(
                        after_records,
                        "the WAL has a deletion of samples that were already cut; replaying it \
                         again"
                    );
                    policy = CutPolicy { restarts, after_records };
                }
            }
        }
    }

    fn replay(&self, policy: CutPolicy, starts: &Starts) -> Result<Started, Ended> {
        let started = Instant::now();
        let opened = Logs::open(&self.data, self.shared.config.wal);
        let mut logs = opened.map_err(StartError::opening)?;
        logs.read_ahead(REPLAY_BYTES);
        let monitor = logs.monitor();
        let (instance, logs) = self.instantiate(logs).map_err(StartError::Hopeless)?;
        let head = Arc::new(ReplayedHead {
            head: Mutex::new(HeadInstance::new(instance, &logs)),
            state: Arc::clone(&self.shared.head.state),
        });
        let (mut cuts, mut may_cut) = (None, policy.restarts <= RESTARTS_MAX);
        let mut reported = started;
        let mut records = 0;
        loop {
            if self.shared.stopping.load(Relaxed) {
                return Err(StartError::Stopped.into());
            }
            // Recorded before the call, so that a kill during the call is counted at this record.
            starts.replayed(records);
            let failed = |error| StartError::replaying(error, records);
            let progress = lock(&head.head).instance.replay(REPLAY_BYTES).map_err(failed)?;
            // The deletion may apply to samples that are in new blocks, so the replay starts again.
            if let Some(Cuts { deletion_mark, .. }) = &cuts
                && lock(&head.head).instance.deletion_mark().map_err(failed)? != *deletion_mark
            {
                return Err(Ended::Deletion { after_records: progress.records });
            }
            if progress.done {
                self.tell(started, &monitor, &progress);
                break;
            }
            if may_cut
                && progress.records > policy.after_records
                && self.wants_cut(&head).map_err(failed)?
            {
                may_cut = self.cut(&head, &mut cuts).unwrap_or_else(|error| {
                    tracing::warn!(
                        %error,
                        "cannot cut a block during WAL replay; the head loads the whole WAL"
                    );
                    false
                });
            }
            if reported.elapsed() >= REPORT_EVERY {
                reported = Instant::now();
                self.tell_progress(&monitor, &progress);
            }
            records = progress.records;
        }
        let failed = |error| StartError::replaying(error, records);
        // If the only cut failed, there is nothing to publish or truncate.
        if let Some(cuts) = cuts.filter(|cuts| cuts.blocks > 0) {
            self.publish(&head, cuts, &logs, failed)?;
        }
        self.data.retire_head_caches(&mut lock(&logs)).unwrap_or_else(|error| {
            tracing::warn!(
                %error,
                "Prometheus' cache of its head gets out of date and could not be removed; start \
                 again before Prometheus is started here"
            );
        });
        self.take_brief_stats(&mut lock(&head.head).instance).map_err(failed)?;
        // The compactor instances that shared the head have ended.
        let head = Arc::into_inner(head).and_then(|head| head.head.into_inner().ok());
        let lost = || {
            let error = StoreError::Runtime("the head is held by a cut that ended".into());
            StartError::Failed { error, records }
        };
        Ok((head.ok_or_else(lost)?, logs))
    }

    /// Returns whether the head needs so much memory that blocks should be cut.
    fn wants_cut(&self, head: &ReplayedHead) -> Result<bool, CallError> {
        let above = CUT_ABOVE_BYTES.min(self.shared.config.memory.head_bytes / CUT_ABOVE_PART);
        Ok(lock(&head.head).instance.brief_stats()?.memory_used_bytes > above)
    }

    /// Cuts a block if a cut is due; returns whether further cuts may be tried.
    fn cut(&self, head: &Arc<ReplayedHead>, cuts: &mut Option<Cuts>) -> Result<bool, StoreError> {
        let deletion_mark = lock(&head.head).instance.deletion_mark()?;
        let Some(range) = lock(&head.head).instance.plan_cut()? else { return Ok(true) };
        let started = Instant::now();
        let cuts = match cuts {
            Some(cuts) => cuts,
            none => {
                let staging = Staging::new(&self.data)?;
                none.insert(Cuts { staging, deletion_mark, end_ms: 0, blocks: 0, created_ms: 0 })
            }
        };
        cuts.created_ms = self.shared.clock.now_ms().max(cuts.created_ms);
        let source: Arc<dyn HeadAccess> = Arc::new(OfHead(Arc::clone(head)));
        let storage = InstanceStorage {
            logs: InstanceLogs::None,
            blocks: cuts.staging.blocks(),
            head: Some(source),
            memory: None,
        };
        let memory_bytes_max = self.shared.config.memory.compactor_bytes;
        let limits = InstanceLimits { memory_bytes_max: memory_bytes_max as usize, deadline: None };
        // Retention and merging must wait until writes are accepted again.
        let mut options = self.shared.options(Role::Compactor);
        (options.retention_ms, options.retention_bytes) = (0, 0);
        let mut instance = self.shared.runtime.instantiate(options, storage, limits)?;
        let room = Room {
            free_bytes: self.data.free_bytes()?,
            other_bytes: 0,
            memory_bytes: memory_bytes_max,
        };
        let failed = |error: CallError| StoreError::from(error).of_compaction(memory_bytes_max);
        loop {
            // A cut may make several blocks, one in each slice. Each needs a time of its own.
            cuts.created_ms += 1;
            let progress = instance.compact(cuts.created_ms, room).map_err(failed)?;
            if let Some(block) = progress.block {
                cuts.blocks += 1;
                // The range includes its end; `end_ms` is exclusive.
                cuts.end_ms = range.end_ms.saturating_add(1);
                let (samples, seconds) = (block.samples, started.elapsed().as_secs_f64());
                tracing::info!(block = block.id, samples, seconds, "block cut from the log");
                // One more slice makes the head truncate the range.
                instance.compact(cuts.created_ms, room).map_err(failed)?;
                return Ok(true);
            }
            if progress.done {
                return Ok(true);
            }
        }
    }

    /// Makes the new blocks visible, and truncates their samples in the logs.
    fn publish(
        &self,
        head: &ReplayedHead,
        cuts: Cuts,
        logs: &Mutex<Logs>,
        failed: impl Fn(CallError) -> StartError,
    ) -> Result<(), StartError> {
        // Out-of-order samples in the blocks' ranges must be as durable in the log as the blocks.
        let synced = lock(logs).sync();
        let published = synced.and_then(|()| cuts.staging.publish());
        published.map_err(|error| StartError::Passing(error.into()))?;
        self.shared.counters.blocks_cut.fetch_add(cuts.blocks, Relaxed);
        loop {
            match lock(&head.head).instance.truncate(cuts.end_ms) {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err(error) if error.is_end() => return Err(failed(error)),
                Err(error) => {
                    tracing::warn!(%error, "WAL truncation failed; the next cut retries it");
                    return Ok(());
                }
            }
        }
    }

    fn tell(&self, started: Instant, monitor: &LogsMonitor, progress: &ReplayProgress) {
        let found = monitor.replay();
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
        self.shared.head.state.skipped_records.store(progress.skipped_records, Relaxed);
        if progress.skipped_records > 0 {
            tracing::warn!(
                skipped_records = progress.skipped_records,
                "the WAL has records that do not decode or whose types are unknown to this \
                 version; they were skipped"
            );
        }
    }

    fn tell_progress(&self, monitor: &LogsMonitor, progress: &ReplayProgress) {
        let found = monitor.replay();
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
