//! Counters of the store, and figures of its parts.

use super::space::SpaceFigures;
use super::{Store, StoreError};
use std::sync::atomic::AtomicU64;
use std::time::Duration;
use tidepool_disk::wal::{ReplayStats, WalStats};
use tidepool_disk::{OpenFileFigures, QuarantineStats};
use tidepool_runtime::Figures;

/// Counters of the store since it was opened.
#[derive(Default)]
pub struct StoreCounters {
    pub head_crashes: AtomicU64,
    /// Starts of the head that failed during the replay of the log.
    pub failed_starts: AtomicU64,
    /// Reads that ended because their instance crashed or exceeded a limit.
    pub query_crashes: AtomicU64,
    /// Blocks cut from the head.
    pub blocks_cut: AtomicU64,
    /// Blocks merged from other blocks.
    pub blocks_merged: AtomicU64,
    /// Blocks dropped by retention, for age or size.
    pub blocks_dropped: AtomicU64,
    /// Blocks dropped by retention that were not yet copied elsewhere.
    pub blocks_dropped_uncopied: AtomicU64,
    pub blocks_damaged: AtomicU64,
    /// Failed compactions, which are retried.
    pub compactions_failed: AtomicU64,
}

impl Store {
    pub async fn figures(&self) -> Result<Figures, StoreError> {
        self.shared.head.call(|head| head.instance.stats()).await
    }

    /// Returns the time of the newest stored sample.
    pub async fn newest_time_ms(&self) -> Result<i64, StoreError> {
        let brief = self.shared.head.call(|head| head.instance.brief_stats()).await?;
        Ok(brief.newest_time_ms)
    }

    /// Returns whether the system's clock is known to be wrong; senders' timestamps are used then.
    pub fn clock_is_doubted(&self) -> bool {
        self.shared.clock.is_doubted()
    }

    /// Returns the time of the newest sample as the last write left it; `i64::MIN` without a
    /// sample, or before the log is replayed.
    pub fn newest_written_ms(&self) -> i64 {
        self.shared.clock.newest_ms()
    }

    /// Returns the time of the newest sample of earlier runs, once the log is replayed.
    pub fn newest_at_start_ms(&self) -> Option<i64> {
        self.shared.clock.at_start_ms()
    }

    /// Returns the figures of the in-order log, and its size on disk.
    pub(super) fn wal_figures(&self) -> Option<(WalStats, u64)> {
        let monitor = self.shared.head.logs_monitor()?.in_order;
        Some((monitor.stats(), monitor.size_bytes().unwrap_or(0)))
    }

    /// Returns the result of the last replay of both logs.
    pub fn replay_figures(&self) -> Option<ReplayStats> {
        Some(self.shared.head.logs_monitor()?.replay())
    }

    /// Returns the figures of quarantined damage, and the size of the whole quarantine.
    pub fn quarantine_figures(&self) -> (QuarantineStats, u64) {
        (self.shared.quarantine.stats(), self.shared.quarantine.size_bytes())
    }

    /// Returns the number of records that the last replay did not understand.
    pub(super) fn wal_skipped_records(&self) -> u64 {
        self.shared.head.skipped_records()
    }

    /// Returns the figures of the disk's free space, after checking the disk if that is due.
    pub(super) fn space_figures(&self) -> SpaceFigures {
        self.shared.space.look();
        self.shared.space.figures()
    }

    /// Returns the size of the data directory without snapshots; `None` if it cannot be read.
    pub(super) fn data_bytes(&self) -> Option<u64> {
        self.shared.data.size_bytes().ok()
    }

    /// Returns whether the last start loaded a head snapshot, and the time until the head was
    /// ready. The values are meaningless before the head is ready.
    pub(super) fn start_figures(&self) -> (bool, Duration) {
        self.shared.head.start_figures()
    }

    /// Returns the number of served blocks, and the size of all blocks on disk.
    pub fn block_figures(&self) -> (u64, u64) {
        let blocks = self.shared.blocks.list().unwrap_or_default();
        // Cannot underflow, because `count_of` counts only blocks of this list.
        let count = blocks.len() as u64 - self.shared.damaged_blocks.count_of(&blocks);
        (count, self.shared.blocks.size_bytes_total().unwrap_or(0))
    }

    /// Returns the figures of the open block files.
    pub(super) fn open_file_figures(&self) -> OpenFileFigures {
        self.shared.data.open_files().figures()
    }

    /// Returns the number of bytes that reads use of their memory.
    pub(super) fn reads_bytes(&self) -> usize {
        self.shared.read_memory.pool.used_bytes()
    }

    pub fn counters(&self) -> &StoreCounters {
        &self.shared.counters
    }
}
