//! The compactor thread: checks regularly whether work is due, and does it by an instance that
//! exists only for that work. It also runs requested tasks (`requested`).
//!
//! Everything that changes blocks runs on this one thread. Deletions may run between two slices of
//! other work: a slice that commits a block first checks that nothing was deleted from its input
//! meanwhile, so no deletion is lost. All other tasks wait until the work is done.

mod requested;

pub use requested::snapshot_name;

use super::blocks::block_of;
use super::pinned::{PinConfig, Waiting};
use super::tasks::TaskQueue;
use super::{CompactionSettings, Shared, SpaceFigures, StoreError, millis};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use tidepool_disk::{BlockDirs, DataDir};
use tidepool_runtime::{
    CallError, CompactProgress, Damage, DeletionReason, Error, Instance, InstanceLimits,
    InstanceLogs, InstanceStorage, NewBlock, Role, Room,
};

/// Maximum pause between two checks of the head.
const LOOK_EVERY_MAX: Duration = Duration::from_secs(1);

/// Maximum pause between two checks of the blocks; Prometheus has the same interval.
const BLOCKS_EVERY: Duration = Duration::from_secs(60);

/// Maximum pause between two checks while the disk is nearly full, since retention frees space.
const BLOCKS_EVERY_IF_FULL: Duration = Duration::from_secs(5);

/// Maximum milliseconds by which a ULID of this node can be ahead of the node's clock.
pub const BLOCK_AHEAD_MS_MAX: i64 = 24 * 3_600_000;

/// Maximum pause after consecutive failed compactions.
const FAILED_PAUSE_MAX: Duration = Duration::from_secs(60);

/// Pause after a lack of disk space, unless space is freed: attempts wear out the disk.
const NO_ROOM_PAUSE: Duration = Duration::from_secs(300);

/// Maximum number of halvings of the planned memory, each after a compaction ran out of memory.
const HALVINGS_MAX: u32 = 3;

/// Pause while reads prevent the head from truncating.
const BUSY_PAUSE: Duration = Duration::from_millis(100);

struct Pause {
    until: Instant,
    /// Number of consecutive failed compactions so far.
    failures: u32,
    /// Free space at the begin of the pause; much more free space ends it early.
    free_bytes: u64,
}

pub(super) struct Compactor {
    pub(super) shared: Arc<Shared>,
    pub(super) data: DataDir,
    pub(super) tasks: TaskQueue,
    /// Blocks that earlier instances left out. A new instance must be told to exclude them.
    pub(super) reported: Vec<String>,
    /// Blocks that wait to be copied elsewhere.
    pub(super) waiting: Waiting,
    /// Blocks with a ULID ahead of the clock that were already reported.
    pub(super) ahead: Vec<String>,
    /// Whether `compaction.json` is written. Commands without a server need the file.
    pub(super) has_saved_settings: bool,
    /// Number of times that the planned memory was halved after an instance ran out of memory. With
    /// a smaller plan a cut makes smaller blocks, and a merge gives up in time.
    pub(super) halvings: u32,
}

impl Compactor {
    /// Works until the store stops.
    pub fn run(mut self) {
        self.save_settings();
        let look_every = (self.shared.config.block_duration / 100).min(LOOK_EVERY_MAX);
        let look_every = look_every.max(Duration::from_millis(100));
        let mut blocks_looked_at: Option<Instant> = None;
        let mut retention = self.shared.live().retention();
        let mut pause: Option<Pause> = None;
        while !self.is_stopping() {
            // Closing the store sends a task, which wakes this thread.
            if let Some(task) = self.tasks.next(look_every) {
                self.do_task(task);
                continue;
            }
            // Before the pause is checked, because more free space ends it early.
            self.shared.space.look();
            let space = self.shared.space.figures();
            if !self.shared.head.is_ready() || pause.as_ref().is_some_and(|p| p.lasts(space)) {
                continue;
            }
            let blocks_every = if space.is_paused { BLOCKS_EVERY_IF_FULL } else { BLOCKS_EVERY };
            // After a reload with a shorter retention, blocks are dropped immediately.
            let retention_before =
                std::mem::replace(&mut retention, self.shared.live().retention());
            let blocks_are_due = retention != retention_before
                || blocks_looked_at.is_none_or(|at| at.elapsed() >= blocks_every);
            // The call of the head is cheap; an instance is made only if work is due.
            let done = match self.shared.head.access().plan_cut() {
                Ok(None) if !blocks_are_due => Ok(()),
                Ok(_) => {
                    blocks_looked_at = Some(Instant::now());
                    self.compact()
                }
                Err(error) => Err(error.into()),
            };
            let failures = pause.take().map_or(0, |pause| pause.failures);
            // A stop ends the work with an error, but is not a failure.
            if let Err(error) = done
                && !self.is_stopping()
            {
                self.shared.counters.compactions_failed.fetch_add(1, Relaxed);
                tracing::error!(%error, "compaction failed; it will be retried");
                // The files of the attempt are deleted by now, so the free space is checked again.
                self.shared.space.look_again();
                pause = Some(Pause::after(failures + 1, &error, self.shared.space.figures()));
            }
        }
    }

    /// Cuts, merges and drops all blocks for which this is due.
    fn compact(&mut self) -> Result<(), StoreError> {
        self.save_settings();
        let blocks = self.blocks_to_change();
        self.report_blocks_ahead()?;
        let mut instance = self.instance(blocks)?;
        instance.exclude(&self.reported)?;
        instance.pin(&self.waiting.pinned)?;
        let mut left_out = Vec::new();
        let done = self.work_in_slices(instance, Instance::compact, &mut left_out);
        // Only a lack of memory halves the plan, because other failures have other causes.
        self.halvings = match &done {
            Ok(()) => 0,
            Err(StoreError::CompactorMemory { .. }) => (self.halvings + 1).min(HALVINGS_MAX),
            Err(_) => self.halvings,
        };
        // The next instance must not fail because of the same blocks.
        self.reported.extend(left_out.iter().map(|bad| block_of(&bad.where_).to_owned()));
        done
    }

    /// Returns the blocks that may be merged and dropped, and updates the pinned blocks. Without
    /// the list of copied blocks, existing blocks are hidden, and the head can only be cut.
    fn blocks_to_change(&mut self) -> BlockDirs {
        let shared = &self.shared;
        let Some(config) = &shared.config.pin else { return shared.blocks.clone() };
        let is_full = shared.space.figures().is_paused;
        let retention_ms = millis(shared.live().retention);
        match config.waiting(&shared.blocks, retention_ms, is_full) {
            Ok(waiting) => {
                self.waiting = waiting;
                shared.blocks.clone()
            }
            Err(error) => {
                tracing::error!(
                    %error,
                    "the list of uploaded blocks cannot be read; no block is merged or dropped \
                     until it can"
                );
                shared.blocks.new_only()
            }
        }
    }

    /// Pins a new block if blocks of its level are to be copied.
    fn hold_new(&mut self, instance: &mut Instance, block: &NewBlock) -> Result<(), StoreError> {
        let is_pinned = |config: &PinConfig| config.pins_new(block.level);
        if self.shared.config.pin.as_ref().is_some_and(is_pinned) {
            self.waiting.add(&block.id);
            instance.pin(&self.waiting.pinned)?;
        }
        Ok(())
    }

    /// Warns once of each block whose ULID is ahead: its samples replace samples of later blocks.
    fn report_blocks_ahead(&mut self) -> Result<(), StoreError> {
        let latest_ms = self.shared.clock.now_ms().saturating_add(BLOCK_AHEAD_MS_MAX);
        let mut ahead = self.shared.blocks.times_ms()?;
        ahead.retain(|(_, time_ms)| *time_ms > latest_ms);
        let ahead: Vec<String> = ahead.into_iter().map(|(block, _)| block).collect();
        for block in ahead.iter().filter(|block| !self.ahead.contains(block)) {
            tracing::warn!(
                %block,
                "the ULID of this block is more than a day ahead of this node's clock. Its samples \
                 replace those that later blocks have of the same series and time. If the clock is \
                 right, make the block again where it comes from"
            );
        }
        self.ahead = ahead;
        Ok(())
    }

    /// Writes `compaction.json`. A failure is only logged, so that a node can start on a full disk.
    fn save_settings(&mut self) {
        if !self.has_saved_settings {
            let saved = CompactionSettings::of(&self.shared.config).save(&self.data);
            if let Err(error) = &saved {
                tracing::warn!(
                    %error,
                    "the settings of compaction could not be saved; trying again at the next \
                     compaction. Until then do not run `tidepool tsdb compact`"
                );
            }
            self.has_saved_settings = saved.is_ok();
        }
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.shared.stopping.load(Relaxed)
    }

    /// Works on blocks slice by slice, with deletions between the slices.
    pub(super) fn work_in_slices(
        &mut self,
        mut instance: Instance,
        slice: impl Fn(&mut Instance, i64, Room) -> Result<CompactProgress, CallError>,
        left_out: &mut Vec<Damage>,
    ) -> Result<(), StoreError> {
        let started = Instant::now();
        let room = room(&self.shared, &self.data)?;
        let room = Room { memory_bytes: room.memory_bytes >> self.halvings, ..room };
        while !self.is_stopping() {
            self.shared.space.look();
            match slice(&mut instance, self.shared.clock.now_ms(), room) {
                Ok(progress) => {
                    // A deleted file needs space until all readers have closed it.
                    self.shared.drop_outdated_readers();
                    if progress.block.is_some()
                        || !progress.deleted.is_empty()
                        || !progress.bad.is_empty()
                    {
                        self.shared.ledger.changed();
                    }
                    report(&self.shared, &progress, &self.waiting.all, started);
                    if let Some(block) = &progress.block {
                        self.hold_new(&mut instance, block)?;
                    }
                    left_out.extend(progress.bad);
                    left_out.extend(progress.unmerged);
                    if progress.done {
                        return Ok(());
                    }
                }
                Err(CallError::Refused(Error::Busy)) => {
                    let shared = &self.shared;
                    // Reads prevent truncation by the head; if memory is short, they are ended.
                    if shared.read_memory.is_head_short(shared.head.memory_used_bytes()) {
                        shared.head.end_reads();
                    }
                    std::thread::sleep(BUSY_PAUSE);
                }
                Err(error) => {
                    // The slice may have changed blocks before its failure.
                    self.shared.ledger.changed();
                    let limit_bytes = self.shared.config.memory.compactor_bytes;
                    return Err(StoreError::from(error).of_compaction(limit_bytes));
                }
            }
            // Deletions need not wait for the end of a merge, which may take long.
            while let Some(deletion) = self.tasks.next_deletion() {
                self.do_task(deletion);
            }
        }
        Err(StoreError::Stopped)
    }

    /// Creates an instance that works on these blocks.
    pub(super) fn instance(&self, blocks: BlockDirs) -> Result<Instance, StoreError> {
        let shared = &self.shared;
        let head = Some(shared.head.access());
        let storage = InstanceStorage { logs: InstanceLogs::None, blocks, head, memory: None };
        let memory_bytes_max = shared.config.memory.compactor_bytes as usize;
        // Without a deadline, because a merge may take long; a stop is possible between slices.
        let limits = InstanceLimits { memory_bytes_max, deadline: None };
        Ok(shared.runtime.instantiate(shared.options(Role::Compactor), storage, limits)?)
    }
}

impl Pause {
    fn after(failures: u32, error: &StoreError, space: SpaceFigures) -> Pause {
        let no_space = matches!(
            error,
            StoreError::Refused(Error::Storage(tidepool_runtime::StorageError::NoSpace(_)))
        );
        let doubled = LOOK_EVERY_MAX.saturating_mul(1 << (failures.clamp(1, 10) - 1));
        let pause = match (no_space, space.is_paused) {
            (true, _) => NO_ROOM_PAUSE,
            // An error of the head does not reveal whether its log lacked space.
            (false, true) => FAILED_PAUSE_MAX,
            (false, false) => doubled.min(FAILED_PAUSE_MAX),
        };
        Pause { until: Instant::now() + pause, failures, free_bytes: space.free_bytes }
    }

    /// Returns whether the pause continues. An eighth more free space ends it early.
    fn lasts(&self, space: SpaceFigures) -> bool {
        let is_roomier = space.free_bytes > self.free_bytes.saturating_add(self.free_bytes / 8);
        Instant::now() < self.until && !is_roomier
    }
}

/// Returns the free space of the disk, and the size of the other files of the data directory.
fn room(shared: &Shared, data: &DataDir) -> Result<Room, StoreError> {
    let blocks_bytes = shared.blocks.size_bytes_total();
    let other_bytes = blocks_bytes.and_then(|blocks| Ok(data.size_bytes()?.saturating_sub(blocks)));
    // Without the size the head must still be cut, so only a warning is logged.
    let other_bytes = other_bytes.unwrap_or_else(|error| {
        tracing::warn!(%error, "--retention-size counts blocks alone: the directory is not known");
        0
    });
    let memory_bytes = shared.config.memory.compactor_bytes;
    Ok(Room { free_bytes: data.free_bytes()?, other_bytes, memory_bytes })
}

fn report(shared: &Shared, progress: &CompactProgress, waiting: &[String], started: Instant) {
    let counters = &shared.counters;
    if let Some(block) = &progress.block {
        let (counter, what) = match block.level {
            1 => (&counters.blocks_cut, "block cut from the head"),
            _ => (&counters.blocks_merged, "blocks merged"),
        };
        counter.fetch_add(1, Relaxed);
        tracing::info!(
            block = block.id,
            level = block.level,
            samples = block.samples,
            seconds = started.elapsed().as_secs_f64(),
            "{what}"
        );
    }
    for deleted in &progress.deleted {
        let why = match deleted.reason {
            DeletionReason::Merged => {
                tracing::debug!(block = deleted.id, "deleted: a merged block holds it");
                continue;
            }
            DeletionReason::Age => "it is older than --retention-time",
            DeletionReason::Size => "the data directory exceeds --retention-size",
        };
        counters.blocks_dropped.fetch_add(1, Relaxed);
        if waiting.contains(&deleted.id) {
            counters.blocks_dropped_uncopied.fetch_add(1, Relaxed);
            tracing::error!(
                block = deleted.id,
                "block dropped before it was uploaded: {why}. Its samples are missing in object \
                 storage"
            );
            continue;
        }
        tracing::info!(block = deleted.id, "block dropped: {why}");
    }
    for bad in &progress.bad {
        shared.report_damaged(bad);
    }
    for left in &progress.unmerged {
        tracing::warn!(
            block = left.where_,
            reason = left.reason,
            "block is excluded from merging; its data is served. If the reason is memory, raise \
             --compactor-memory-limit"
        );
    }
}
