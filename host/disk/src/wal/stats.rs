//! Figures about the log, which any thread can read while the log is in use.

use crate::error::{Action, Result};
use crate::fs::{Disk, tree_bytes};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Figures of the log since the process started. Counters only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WalStats {
    /// Number of the segment being written, or of the segment that the next append will begin.
    pub segment_current: u32,
    /// Records written, including checkpoints.
    pub records_written: u64,
    /// Bytes written, including checkpoints and framing.
    pub bytes_written: u64,
    pub writes_failed: u64,
    pub fsyncs: u64,
    pub fsyncs_failed: u64,
    /// Time spent in syncs of segments, including failed syncs.
    pub fsync_time: Duration,
    /// Time of the last successful sync of a segment; `None` before the first.
    pub fsynced_at: Option<Instant>,
    pub checkpoints: u64,
    /// Segments deleted after a checkpoint replaced them.
    pub segments_deleted: u64,
    pub replay: ReplayStats,
}

/// Figures of a log's replay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplayStats {
    pub records: u64,
    /// Segments that were read to their end, including segments of the checkpoint.
    pub segments_done: u32,
    /// Segments to read, including segments of the checkpoint.
    pub segments_total: u32,
    /// Lowest number of the segments to read. A checkpoint has the number of its last segment.
    pub segment_min: u32,
    /// Highest number of a segment to read.
    pub segment_max: u32,
    /// Number of the segment that is being read, or was read last.
    pub segment_current: u32,
    pub bytes_done: u64,
    /// Bytes of all segments to read.
    pub bytes_total: u64,
    /// Damaged places inside of segments, which were skipped.
    pub damaged_places: u64,
    /// Bytes in the damaged places.
    pub damaged_bytes: u64,
    /// Torn tails that were cut off. A torn tail is what a crash left of the last batch.
    pub torn_tails: u64,
    /// Bytes in the torn tails.
    pub torn_bytes: u64,
    /// Places where whole segments are missing.
    pub gaps: u64,
}

impl ReplayStats {
    /// Returns whether every record that was written could be read.
    pub fn is_whole(&self) -> bool {
        self.damaged_places == 0 && self.torn_tails == 0 && self.gaps == 0
    }

    /// Bytes read, as a percentage of all bytes to read; 100 for an empty log.
    pub fn percent(&self) -> u64 {
        (self.bytes_done * 100).checked_div(self.bytes_total).unwrap_or(100)
    }

    /// Adds the figures of the log that is read after this log.
    pub(super) fn and_then(self, next: ReplayStats) -> ReplayStats {
        // The logs number their segments independently, so numbers of one log are shown.
        let is_done = self.segments_done == self.segments_total;
        let numbers = if is_done && next.segments_total > 0 { next } else { self };
        ReplayStats {
            records: self.records + next.records,
            segments_done: self.segments_done + next.segments_done,
            segments_total: self.segments_total + next.segments_total,
            segment_min: numbers.segment_min,
            segment_max: numbers.segment_max,
            segment_current: numbers.segment_current,
            bytes_done: self.bytes_done + next.bytes_done,
            bytes_total: self.bytes_total + next.bytes_total,
            damaged_places: self.damaged_places + next.damaged_places,
            damaged_bytes: self.damaged_bytes + next.damaged_bytes,
            torn_tails: self.torn_tails + next.torn_tails,
            torn_bytes: self.torn_bytes + next.torn_bytes,
            gaps: self.gaps + next.gaps,
        }
    }
}

/// A view of the log's figures that outlives the log and can be sent to any thread.
#[derive(Clone)]
pub struct WalMonitor {
    pub(super) counters: Arc<Counters>,
    pub(super) disk: Arc<dyn Disk>,
    pub(super) dir: PathBuf,
}

/// Shared counters. The counters are independent, so relaxed ordering suffices.
#[derive(Default)]
pub(super) struct Counters {
    pub segment_current: AtomicU32,
    pub records_written: AtomicU64,
    pub bytes_written: AtomicU64,
    pub writes_failed: AtomicU64,
    pub fsyncs: AtomicU64,
    pub fsyncs_failed: AtomicU64,
    pub fsync_nanos: AtomicU64,
    pub fsynced_at: Mutex<Option<Instant>>,
    pub checkpoints: AtomicU64,
    pub segments_deleted: AtomicU64,
    pub replayed_records: AtomicU64,
    pub replay_segments_done: AtomicU32,
    pub replay_segments_total: AtomicU32,
    pub replay_segment_min: AtomicU32,
    pub replay_segment_max: AtomicU32,
    pub replay_segment_current: AtomicU32,
    pub replay_bytes_done: AtomicU64,
    pub replay_bytes_total: AtomicU64,
    pub damaged_places: AtomicU64,
    pub damaged_bytes: AtomicU64,
    pub torn_tails: AtomicU64,
    pub torn_bytes: AtomicU64,
    pub gaps: AtomicU64,
}

impl WalMonitor {
    pub fn stats(&self) -> WalStats {
        self.counters.snapshot()
    }

    /// Bytes of the log's directory, checkpoints included. Walks the directory.
    pub fn size_bytes(&self) -> Result<u64> {
        tree_bytes(&*self.disk, &self.dir).map_err(Action::List.failed(&self.dir))
    }
}

impl Counters {
    pub fn snapshot(&self) -> WalStats {
        WalStats {
            segment_current: self.segment_current.load(Relaxed),
            records_written: self.records_written.load(Relaxed),
            bytes_written: self.bytes_written.load(Relaxed),
            writes_failed: self.writes_failed.load(Relaxed),
            fsyncs: self.fsyncs.load(Relaxed),
            fsyncs_failed: self.fsyncs_failed.load(Relaxed),
            fsync_time: Duration::from_nanos(self.fsync_nanos.load(Relaxed)),
            fsynced_at: *self.fsynced_at.lock().unwrap_or_else(PoisonError::into_inner),
            checkpoints: self.checkpoints.load(Relaxed),
            segments_deleted: self.segments_deleted.load(Relaxed),
            replay: ReplayStats {
                records: self.replayed_records.load(Relaxed),
                segments_done: self.replay_segments_done.load(Relaxed),
                segments_total: self.replay_segments_total.load(Relaxed),
                segment_min: self.replay_segment_min.load(Relaxed),
                segment_max: self.replay_segment_max.load(Relaxed),
                segment_current: self.replay_segment_current.load(Relaxed),
                bytes_done: self.replay_bytes_done.load(Relaxed),
                bytes_total: self.replay_bytes_total.load(Relaxed),
                damaged_places: self.damaged_places.load(Relaxed),
                damaged_bytes: self.damaged_bytes.load(Relaxed),
                torn_tails: self.torn_tails.load(Relaxed),
                torn_bytes: self.torn_bytes.load(Relaxed),
                gaps: self.gaps.load(Relaxed),
            },
        }
    }
}
