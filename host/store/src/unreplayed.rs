//! Handles a log whose replay needs more memory than there is: the log stays unchanged, the node
//! serves its blocks, and errors say how much memory is needed.
//!
//! Until then nothing is written: the empty head does not have the series and times of the log, so
//! new records would not be consistent with it.

use super::memory::MemorySplit;
use super::{Shared, Shortage, Store, StoreError};
use tidepool_disk::wal::ReplayStats;

const MIB: u64 = 1024 * 1024;

/// Estimated limits are multiples of this size.
const STEP_BYTES: u64 = 32 * MIB;

/// Maximum limit that an estimate returns.
const LIMIT_BYTES_MAX: u64 = 64 * 1024 * MIB;

impl Shortage {
    /// Estimates the memory for a head that ran out of memory at this progress of the replay.
    pub(super) fn of_head(split: &MemorySplit, found: ReplayStats) -> Shortage {
        let (done, total) = (found.bytes_done.min(found.bytes_total), found.bytes_total);
        let replayed_percent = found.percent();
        // The part that was read filled the memory. A quarter more: tables double, batches wait.
        let per_log = u128::from(total.max(1)) * 5 / 4;
        // At least a hundredth of the log counts as read, which limits the estimate.
        let needed =
            u128::from(split.head_bytes) * per_log / u128::from(done.max(total / 100).max(1));
        let needed = u64::try_from(needed).unwrap_or(u64::MAX);
        let needed_bytes = needed.max(split.head_bytes / 2 * 3);
        let is_share = MemorySplit::of(split.limit_bytes).head_bytes == split.head_bytes;
        let (limit_bytes, head_bytes) = match is_share {
            true => (limit_with_head(split.limit_bytes, needed_bytes), None),
            false => {
                let head_bytes = in_steps(needed_bytes);
                let more_bytes = head_bytes.saturating_sub(split.head_bytes);
                let needed_bytes = split.needed_bytes().saturating_add(more_bytes);
                (in_steps(needed_bytes.max(split.limit_bytes)), Some(head_bytes))
            }
        };
        Shortage::Head { replayed_percent, limit_bytes, head_bytes }
    }
}

/// Returns the smallest limit, in whole steps, with which the head gets `head_bytes`.
fn limit_with_head(limit_bytes: u64, head_bytes: u64) -> u64 {
    let mut limit_bytes = in_steps(limit_bytes.saturating_add(1));
    while limit_bytes < LIMIT_BYTES_MAX && MemorySplit::of(limit_bytes).head_bytes < head_bytes {
        limit_bytes += STEP_BYTES;
    }
    limit_bytes
}

fn in_steps(bytes: u64) -> u64 {
    bytes.div_ceil(STEP_BYTES).saturating_mul(STEP_BYTES)
}

impl Shared {
    /// Returns an error if the log was not replayed: nothing may be stored or deleted in that case.
    pub(super) fn check_replayed(&self) -> Result<(), StoreError> {
        match self.head.shortage() {
            None => Ok(()),
            Some(shortage) => Err(StoreError::NotReplayed(shortage)),
        }
    }
}

impl Store {
    /// Returns which memory was too short for the replay; `None` if the log was replayed.
    pub fn shortage(&self) -> Option<Shortage> {
        self.shared.head.shortage()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(bytes_done: u64, bytes_total: u64) -> ReplayStats {
        ReplayStats { bytes_done, bytes_total, ..ReplayStats::default() }
    }

    #[test]
    fn the_limit_that_is_named_gives_the_head_what_it_needs() {
        for (limit_mib, done, total) in
            [(96, 50, 100), (96, 100, 100), (256, 10, 1000), (1024, 999, 1000), (96, 0, 0)]
        {
            let split = MemorySplit::of(limit_mib * MIB);
            let shortage = Shortage::of_head(&split, found(done, total));
            let limit_bytes = shortage.limit_bytes();
            assert!(limit_bytes > split.limit_bytes, "{shortage}");
            let head_bytes = MemorySplit::of(limit_bytes).head_bytes;
            let share = done.max(1) as f64 / total.max(1) as f64;
            let needed = split.head_bytes as f64 / share;
            let is_enough = head_bytes as f64 >= needed || limit_bytes >= LIMIT_BYTES_MAX;
            assert!(is_enough, "{limit_mib} MiB, {done} of {total}: {shortage}");
            let text = format!("--memory-limit={}MiB", limit_bytes / MIB);
            assert!(shortage.to_string().contains(&text), "{shortage}");
        }
    }

    #[test]
    fn a_head_with_a_limit_of_its_own_gets_more_beside_the_others() {
        let split = MemorySplit { head_bytes: 8 * MIB, ..MemorySplit::of(1024 * MIB) };
        let shortage = Shortage::of_head(&split, found(25, 100));
        let Shortage::Head { limit_bytes, head_bytes: Some(head_bytes), .. } = shortage else {
            panic!("{shortage:?}");
        };
        assert!(head_bytes >= 40 * MIB, "{shortage}");
        let chosen = MemorySplit { limit_bytes, head_bytes, ..split };
        assert!(chosen.check().is_ok(), "{chosen:?}");
        assert!(shortage.to_string().contains("--head-memory-limit=64MiB"), "{shortage}");
    }
}
