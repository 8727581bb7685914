//! The compactor thread: looks now and then whether something is due, and does it with an instance
//! that lives just as long.

use super::{Shared, StoreError, now_ms};
use crate::disk::DataDir;
use crate::wasm::{
    CallError, CompactProgress, DeletionReason, Error, HeadAccess, InstanceLimits, InstanceLogs,
    InstanceStorage, Role, Room,
};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// Longest pause between two looks at the head.
const LOOK_EVERY_MAX: Duration = Duration::from_secs(1);

/// Longest pause between two looks at the blocks, as often as Prometheus looks.
const BLOCKS_EVERY: Duration = Duration::from_secs(60);

/// Pause while reads keep the head from forgetting.
const BUSY_PAUSE: Duration = Duration::from_millis(100);

/// Works until the store stops.
pub(super) fn run(shared: &Arc<Shared>, data: &DataDir) {
    let look_every = (shared.config.block_duration / 100).min(LOOK_EVERY_MAX);
    let look_every = look_every.max(Duration::from_millis(100));
    let mut blocks_looked_at: Option<Instant> = None;
    // Blocks that were reported; an instance does not know what the one before it found.
    let mut reported: Vec<String> = Vec::new();
    while !shared.stopping.load(Relaxed) {
        // Closing the store unparks this thread.
        std::thread::park_timeout(look_every);
        if !shared.head.is_ready() {
            continue;
        }
        let blocks_are_due = blocks_looked_at.is_none_or(|at| at.elapsed() >= BLOCKS_EVERY);
        let done = match shared.head.plan_cut() {
            Ok(None) if !blocks_are_due => Ok(()),
            Ok(_) => {
                blocks_looked_at = Some(Instant::now());
                compact(shared, data, &mut reported)
            }
            Err(error) => Err(StoreError::Refused(error)),
        };
        if let Err(error) = done
            && !shared.stopping.load(Relaxed)
        {
            shared.counters.compactions_failed.fetch_add(1, Relaxed);
            tracing::error!(%error, "a compaction failed; it will be tried again");
        }
    }
}

/// Does all that is due.
fn compact(
    shared: &Arc<Shared>,
    data: &DataDir,
    reported: &mut Vec<String>,
) -> Result<(), StoreError> {
    let started = Instant::now();
    let storage = InstanceStorage {
        logs: InstanceLogs::None,
        blocks: shared.blocks.clone(),
        head: Some(Arc::new(shared.head.clone())),
    };
    let memory_bytes_max = shared.config.compactor_memory_bytes_max;
    let limits = InstanceLimits { memory_bytes_max, deadline: None };
    let options = shared.options(Role::Compactor);
    let mut instance = shared.runtime.instantiate(options, storage, limits)?;
    instance.leave(reported)?;
    let room = room(shared, data)?;
    while !shared.stopping.load(Relaxed) {
        match instance.compact(now_ms(), room) {
            Ok(progress) => {
                report(shared, &progress, started);
                let bad = progress.bad.iter().chain(&progress.unmerged);
                reported.extend(bad.map(|bad| block_of(&bad.where_).to_owned()));
                if progress.done {
                    break;
                }
            }
            Err(CallError::Refused(Error::Busy)) => std::thread::sleep(BUSY_PAUSE),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// What the disk has room for, and what else is in the data directory.
fn room(shared: &Shared, data: &DataDir) -> Result<Room, StoreError> {
    let blocks_bytes = shared.blocks.size_bytes_total()?;
    let other_bytes = data.size_bytes()?.saturating_sub(blocks_bytes);
    let memory_bytes = shared.config.compactor_memory_bytes_max as u64;
    Ok(Room { free_bytes: data.free_bytes()?, other_bytes, memory_bytes })
}

fn report(shared: &Shared, progress: &CompactProgress, started: Instant) {
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
        tracing::info!(block = deleted.id, "block dropped: {why}");
    }
    for bad in &progress.bad {
        counters.blocks_damaged.fetch_add(1, Relaxed);
        tracing::error!(
            file = bad.where_,
            offset = bad.offset,
            reason = bad.reason,
            "a block is damaged and left out; all others are served. Restore it from a copy, or \
             move it out of the data directory"
        );
    }
    for left in &progress.unmerged {
        tracing::warn!(
            block = left.where_,
            reason = left.reason,
            "a block cannot be merged with others and stays as it is; its data is served"
        );
    }
}

/// The block in `BLOCK/file` or `BLOCK`.
fn block_of(place: &str) -> &str {
    place.split('/').next().unwrap_or(place)
}
