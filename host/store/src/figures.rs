//! What the store counts, and what it tells of its parts.

use super::space::SpaceFigures;
use super::{Store, StoreError};
use std::sync::atomic::AtomicU64;
use std::time::Duration;
use tidepool_disk::wal::{ReplayStats, WalStats};
use tidepool_disk::{OpenFileFigures, QuarantineStats};
use tidepool_runtime::Figures;

/// The counters of the store since it was opened.
#[derive(Default)]
pub struct StoreCounters {
    /// Crashes of the head instance.
    pub head_crashes: AtomicU64,
    /// Starts of the head that failed while the log was replayed.
    pub failed_starts: AtomicU64,
    /// Reads that an instance's crash or limit ended.
    pub query_crashes: AtomicU64,
    /// Blocks cut from the head.
    pub blocks_cut: AtomicU64,
    /// Blocks made of other blocks.
    pub blocks_merged: AtomicU64,
    /// Blocks that retention dropped.
    pub blocks_dropped: AtomicU64,
    /// The dropped blocks that were still to be copied elsewhere.
    pub blocks_dropped_uncopied: AtomicU64,
    /// Blocks found to be damaged.
    pub blocks_damaged: AtomicU64,
    /// Compactions that failed and will be tried again.
    pub compactions_failed: AtomicU64,
}

impl Store {
    /// Figures of the head.
    pub async fn figures(&self) -> Result<Figures, StoreError> {
        self.shared.head.call(|head| head.instance.stats()).await
    }

    /// Time of the newest sample that is stored.
    pub async fn newest_time_ms(&self) -> Result<i64, StoreError> {
        let brief = self.shared.head.call(|head| head.instance.brief_stats()).await?;
        Ok(brief.newest_time_ms)
    }

    /// Whether the system's clock cannot be right, so that the senders' time counts.
    pub fn clock_is_doubted(&self) -> bool {
        self.shared.clock.is_doubted()
    }

    /// Figures of the in-order log, and the bytes it takes on disk.
    pub(super) fn wal_figures(&self) -> Option<(WalStats, u64)> {
        let monitor = self.shared.head.logs_monitor()?.in_order;
        Some((monitor.stats(), monitor.size_bytes().unwrap_or(0)))
    }

    /// The result of the last replay of both logs.
    pub fn replay_figures(&self) -> Option<ReplayStats> {
        Some(self.shared.head.logs_monitor()?.replay())
    }

    /// What was found damaged and quarantined, and the bytes that all that is quarantined takes.
    pub fn quarantine_figures(&self) -> (QuarantineStats, u64) {
        (self.shared.quarantine.stats(), self.shared.quarantine.size_bytes())
    }

    /// Records that the last replay of the logs did not understand.
    pub(super) fn wal_skipped_records(&self) -> u64 {
        self.shared.head.skipped_records()
    }

    /// What is known of the disk's free space.
    pub(super) fn space_figures(&self) -> SpaceFigures {
        self.shared.space.look();
        self.shared.space.figures()
    }

    /// Bytes of the data directory, snapshots left out; `None` if it cannot be looked at.
    pub(super) fn data_bytes(&self) -> Option<u64> {
        self.shared.data.size_bytes().ok()
    }

    /// Whether the last start took the head from a snapshot, and how long it took until the head
    /// was ready; nothing of use before it was.
    pub(super) fn start_figures(&self) -> (bool, Duration) {
        self.shared.head.start_figures()
    }

    /// How many blocks are served, and the bytes that all take on disk.
    pub fn block_figures(&self) -> (u64, u64) {
        let blocks = self.shared.blocks.list().unwrap_or_default();
        let count = blocks.len() as u64 - self.shared.damaged_blocks.count_of(&blocks);
        (count, self.shared.blocks.size_bytes_total().unwrap_or(0))
    }

    /// How many files of blocks are open.
    pub(super) fn open_file_figures(&self) -> OpenFileFigures {
        self.shared.data.open_files().figures()
    }

    /// Bytes of the memory of reads that are taken.
    pub(super) fn reads_bytes(&self) -> usize {
        self.shared.read_memory.pool.used_bytes()
    }

    /// The counters of the store since it was opened.
    pub fn counters(&self) -> &StoreCounters {
        &self.shared.counters
    }
}
