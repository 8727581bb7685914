//! The compactor thread: looks now and then whether a block is due, and cuts it with an instance
//! that lives just as long.

use super::{Shared, StoreError, now_ms};
use crate::wasm::{CallError, Error, HeadAccess, InstanceLimits, InstanceStorage, Role};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// Longest pause between two looks.
const LOOK_EVERY_MAX: Duration = Duration::from_secs(15);

/// Pause while reads keep the head from forgetting.
const BUSY_PAUSE: Duration = Duration::from_millis(100);

/// Works until the store stops.
pub(super) fn run(shared: &Arc<Shared>) {
    let look_every = (shared.config.block_duration / 100).min(LOOK_EVERY_MAX);
    let look_every = look_every.max(Duration::from_millis(100));
    while !shared.stopping.load(Relaxed) {
        // Closing the store unparks this thread.
        std::thread::park_timeout(look_every);
        if !shared.head.is_ready() {
            continue;
        }
        let done = match shared.head.plan_cut() {
            Ok(None) => Ok(()),
            Ok(Some(_)) => cut(shared),
            Err(error) => Err(StoreError::Refused(error)),
        };
        if let Err(error) = done
            && !shared.stopping.load(Relaxed)
        {
            shared.counters.cuts_failed.fetch_add(1, Relaxed);
            tracing::error!(%error, "a block could not be cut; it will be tried again");
        }
    }
}

/// Cuts the blocks that are due.
fn cut(shared: &Arc<Shared>) -> Result<(), StoreError> {
    let started = Instant::now();
    let storage = InstanceStorage {
        logs: None,
        blocks: shared.blocks.clone(),
        head: Some(Arc::new(shared.head.clone())),
    };
    let memory_bytes_max = shared.config.compactor_memory_bytes_max;
    let limits = InstanceLimits { memory_bytes_max, deadline: None };
    let options = shared.options(Role::Compactor);
    let mut instance = shared.runtime.instantiate(options, storage, limits)?;
    while !shared.stopping.load(Relaxed) {
        match instance.compact(now_ms()) {
            Ok(progress) => {
                if let Some(block) = progress.block {
                    shared.counters.blocks_cut.fetch_add(1, Relaxed);
                    tracing::info!(
                        block,
                        samples = progress.samples,
                        seconds = started.elapsed().as_secs_f64(),
                        "block cut from the head"
                    );
                }
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
