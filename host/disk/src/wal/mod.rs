//! The write-ahead log: numbered segments of records, read once at start, then appended to.
//!
//! ```text
//! open ──▶ replay_batch … None ──▶ append / sync / cut_segment / checkpoint
//! ```
//!
//! This module does not interpret records. Bytes and names are upstream's
//! (`tsdb/docs/format/wal.md` and `tsdb/wlog` in prometheus/prometheus), so either program can read
//! the other's log.
//! Invariants: a segment of an earlier run is never written to, except to cut a torn tail off the
//! last segment. A segment that is damaged, or has Prometheus' marks, may be replaced by another
//! (see `repair`, `rewrite`). Damaged bytes are never deleted, but quarantined. A batch is in one
//! segment as a whole or not at all. A failed sync is reported, and no later sync makes its records
//! durable.
//!
//! Read on in `page` (framing), `pack` (compression), `segment` (names), `writer`, `gather`
//! (buffering in memory), `reader`, `replay`, `ahead` (replay on a thread), `repair`, `look` and
//! `newest` (reading without a replay), `checkpoint`, `removal`, `held` (segments moved instead of
//! deleted), `behind` (a new log), `committed` and `follow` (reading while the log is written),
//! `rewrite`, `sync` (policy), `stats` (figures).

mod ahead;
mod behind;
mod checkpoint;
mod committed;
mod follow;
mod gather;
mod held;
mod logs;
mod look;
mod newest;
mod pack;
mod page;
mod plan;
mod position;
mod reader;
mod records;
mod removal;
mod repair;
mod replay;
mod rewrite;
mod segment;
mod stats;
mod sync;
#[cfg(test)]
mod tests;
mod unsynced;
mod writer;
mod zstandard;

pub use checkpoint::CheckpointWriter;
pub use committed::CommittedLogs;
pub use follow::{Followed, LogFollower, SeriesFiles};
pub use held::{FORWARD_DIR, HeldSegments, Holding, POSITION_SUFFIX};
pub use logs::{LogKind, Logs, LogsMonitor};
pub use look::{LogPiece, LogReader, wal_bytes};
pub use newest::newest_record;
pub use pack::RECORD_BYTES_MAX;
pub use page::{Compression, DamageCause};
pub use plan::Oddity;
pub use position::position;
pub use reader::DamagedPlace;
pub use records::Records;
pub use replay::ReplayBatch;
pub use stats::{ReplayStats, WalMonitor, WalStats};
pub use sync::{BATCH_INTERVAL_DEFAULT, SYNC_INTERVAL_DEFAULT, SyncPolicy};

pub(super) use behind::begin_behind;
pub(super) use segment::is_unfinished_checkpoint;

use super::DataDir;
use super::error::{Action, DiskError, Result};
use super::fs::{Disk, Lock};
use super::quarantine::Quarantine;
use super::write_accounts::WrittenFor;
use ahead::ReadAhead;
use checkpoint::BusyFlag;
use committed::Committed;
use page::PAGE_BYTES;
use removal::Removal;
use replay::Replay;
use segment::WalListing;
use stats::Counters;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use sync::SyncClock;
use writer::{SegmentWriter, WriterOptions};

/// Upstream's segment length. A batch at the end of a segment may exceed it.
pub const SEGMENT_BYTES_DEFAULT: u64 = 128 * 1024 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WalOptions {
    /// Length at which a segment ends, a multiple of 32 KiB. Only a batch to which the segment was
    /// promised may exceed the length.
    pub segment_bytes_max: u64,
    pub compression: Compression,
    pub sync: SyncPolicy,
}

/// The write-ahead log of one data directory.
pub struct Wal {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    options: WalOptions,
    /// `Some` until the log is read to its end.
    replay: Option<ReadAhead>,
    writer: SegmentWriter,
    clock: SyncClock,
    is_checkpointing: Arc<AtomicBool>,
    removal: Arc<Removal>,
    counters: Arc<Counters>,
    lock: Lock,
}

impl Default for WalOptions {
    fn default() -> WalOptions {
        WalOptions {
            segment_bytes_max: SEGMENT_BYTES_DEFAULT,
            compression: Compression::default(),
            sync: SyncPolicy::default(),
        }
    }
}

impl Wal {
    /// Opens the in-order log for replay. Neither another `Wal` nor a checkpoint writer of the log
    /// may exist.
    pub fn open(data: &DataDir, options: WalOptions) -> Result<Wal> {
        Wal::open_in(data, LogKind::InOrder, options)
    }

    /// Opens the out-of-order log for replay. No other `Wal` of the log may exist.
    pub fn open_out_of_order(data: &DataDir, options: WalOptions) -> Result<Wal> {
        let dir = LogKind::OutOfOrder.dir(data);
        data.disk().create_dir(&dir).map_err(Action::Create.failed(&dir))?;
        // The name of the directory must be as durable as the records that are synced in it.
        data.disk().sync_dir(data.path()).map_err(Action::Sync.failed(data.path()))?;
        Wal::open_in(data, LogKind::OutOfOrder, options)
    }

    fn open_in(data: &DataDir, log: LogKind, options: WalOptions) -> Result<Wal> {
        let dir = log.dir(data);
        let bytes = options.segment_bytes_max;
        if bytes == 0 || !bytes.is_multiple_of(PAGE_BYTES as u64) {
            return Err(DiskError::SegmentSize { bytes, page_bytes: PAGE_BYTES as u64 });
        }
        let disk = data.disk_for(WrittenFor::Log);
        rewrite::sweep(&*disk, &dir);
        let listing = without_strays(&*disk, &dir, data.quarantine())?;
        let counters = Arc::new(Counters::default());
        let quarantine = data.quarantine().clone();
        let checkpoint_disk = data.disk_for(WrittenFor::Checkpoint);
        let holding = data.holding().clone();
        let removal = Removal::new(checkpoint_disk, quarantine, holding, Arc::clone(&counters));
        let sync_last = options.sync != SyncPolicy::Off;
        let replay = Replay::plan(Arc::clone(&disk), &listing, sync_last, Arc::clone(&counters))?;
        // Always a new segment, because no earlier segment is written to: the last one may have a
        // torn tail.
        let first = listing.number_max.map_or(Some(0), |number| number.checked_add(1));
        counters.segment_current.store(first.unwrap_or(u32::MAX), Ordering::Relaxed);
        let mut writer_options = options.writer(sync_last, &counters);
        writer_options.gathered_bytes_max = options.sync.gathered_bytes_max();
        writer_options.writes_again = sync_last;
        writer_options.committed = data.committed().of(log).clone();
        // Readers that follow the writer must not see the new segment before it has a whole record.
        writer_options.committed.begin(first.unwrap_or(u32::MAX));
        let writer = SegmentWriter::new(Arc::clone(&disk), dir.clone(), first, writer_options);
        Ok(Wal {
            disk,
            dir,
            options,
            replay: Some(ReadAhead::new(replay)),
            writer,
            clock: SyncClock::new(options.sync),
            is_checkpointing: Arc::default(),
            removal: Arc::new(removal),
            counters,
            lock: data.lock(),
        })
    }

    /// Returns the next batch of records of earlier runs, about `bytes_max` long; `None` at the
    /// end. The log must be replayed to its end before the first append.
    pub fn replay_batch(&mut self, bytes_max: u32) -> Result<Option<ReplayBatch>> {
        let Some(replay) = &mut self.replay else { return Ok(None) };
        let batch = replay.next(bytes_max)?;
        if batch.is_none()
            && let Some(replay) = self.replay.take()
        {
            // Only at the end: a repair replaces files that the replay reads.
            self.repair(replay.ended(Replay::take_damaged));
        }
        Ok(batch)
    }

    /// Starts a thread that reads, checks and decompresses the batches of
    /// [`replay_batch`](Wal::replay_batch), each of about `bytes_max`.
    pub fn read_ahead(&mut self, bytes_max: u32) {
        if let Some(replay) = &mut self.replay {
            replay.start(bytes_max);
        }
    }

    /// Skips the replay, for a log whose records are known from a head snapshot. The log must be as
    /// a clean stop left it.
    pub fn skip_replay(&mut self) {
        self.replay = None;
        self.counters.replay_segments_total.store(0, Ordering::Relaxed);
        self.counters.replay_bytes_total.store(0, Ordering::Relaxed);
    }

    /// Appends all records or none, and returns the number of the segment that has them all. From
    /// then on they survive a crash of the process (under [`SyncPolicy::Batch`]: after a sync), and
    /// after a sync also a power cut.
    pub fn append<R: AsRef<[u8]>>(&mut self, records: &[R]) -> Result<u32> {
        self.check_replayed()?;
        let segment = self.writer.append(records)?;
        self.counters.segment_current.store(segment, Ordering::Relaxed);
        if !records.is_empty() {
            self.clock.written(Instant::now());
        }
        Ok(segment)
    }

    /// Returns the time at which the policy requires the next [`sync`](Wal::sync). Under
    /// [`SyncPolicy::Always`] this is at once, for a group of appends. `None` while no sync is due.
    pub fn sync_due_at(&self) -> Option<Instant> {
        self.clock.due_at()
    }

    /// Makes every record appended so far survive a power cut. After an error, records since the
    /// last sync may be lost: the log continues in a new segment, which begins with their copies.
    /// If buffered records could not be written, nothing is lost, and another sync may succeed.
    pub fn sync(&mut self) -> Result<()> {
        let synced = self.writer.sync();
        match &synced {
            // Nothing is lost yet, so the clock makes another sync due without an append.
            Err(DiskError::WalHeld { .. }) => self.clock.held(Instant::now()),
            _ => self.clock.synced(),
        }
        synced
    }

    /// Returns whether appending these records may write buffered records. `false` is certain,
    /// `true` is an estimate.
    pub(super) fn may_write<R: AsRef<[u8]>>(&self, records: &[R]) -> bool {
        self.writer.may_write(records)
    }

    /// Writes buffered records without syncing them. After an error they stay buffered.
    pub(super) fn write_gathered(&mut self) -> Result<()> {
        self.writer.flush()
    }

    /// Bytes of records that exist only in this process's memory; zero except under
    /// [`SyncPolicy::Batch`].
    pub fn unwritten_bytes(&self) -> u64 {
        self.writer.unwritten_bytes()
    }

    /// Ends the open segment, so that a checkpoint can cover it, and returns the segment's number.
    pub fn cut_segment(&mut self) -> Result<u32> {
        self.check_replayed()?;
        let ended = self.writer.cut_segment()?;
        self.counters.segment_current.store(ended.saturating_add(1), Ordering::Relaxed);
        Ok(ended)
    }

    /// Deletes all segments up to `last_segment`, inclusive, except the segment being written.
    pub fn truncate(&mut self, last_segment: u32) -> Result<()> {
        self.check_replayed()?;
        let current = self.writer.open_segment()?;
        let last_segment = last_segment.min(current.saturating_sub(1));
        // Synced one by one: after a power cut, an older sample must not remain without the newer
        // sample for the same time that followed it.
        for found in WalListing::read(&*self.disk, &self.dir)?.segments {
            if found.number <= last_segment {
                self.removal.remove_segment(&found.path)?;
                self.disk.sync_dir(&self.dir).map_err(Action::Sync.failed(&self.dir))?;
            }
        }
        Ok(())
    }

    /// Begins a checkpoint that will replace all segments up to `last_segment`, inclusive. The log
    /// can be written to meanwhile. If an earlier commit gave this checkpoint its name and then
    /// failed, the existing checkpoint is kept and finished.
    pub fn checkpoint(&mut self, last_segment: u32) -> Result<CheckpointWriter> {
        self.check_replayed()?;
        let busy = BusyFlag::raise(&self.is_checkpointing)?;
        // At least one segment must stay: otherwise upstream restarts at number 0, and then treats
        // its new records as older than the checkpoint.
        let current_segment = self.writer.open_segment()?;
        let listing = WalListing::read(&*self.disk, &self.dir)?;
        let mut newest_checkpoint = None;
        for found in &listing.checkpoints {
            // A checkpoint that cannot be listed may have records.
            let inside = WalListing::read(&*self.disk, &found.path);
            if inside.map_or(true, |inside| !inside.segments.is_empty()) {
                newest_checkpoint = Some(found.number);
            }
        }
        if last_segment >= current_segment || newest_checkpoint > Some(last_segment) {
            return Err(DiskError::CheckpointRange {
                last_segment,
                current_segment,
                newest_checkpoint,
            });
        }
        CheckpointWriter::begin(
            Arc::clone(&self.removal),
            self.dir.clone(),
            last_segment,
            newest_checkpoint == Some(last_segment),
            self.options.writer(true, &self.counters),
            busy,
            Arc::clone(&self.lock),
        )
    }

    pub fn stats(&self) -> WalStats {
        self.counters.snapshot()
    }

    /// Figures of the log for other threads.
    pub fn monitor(&self) -> WalMonitor {
        WalMonitor {
            counters: Arc::clone(&self.counters),
            disk: Arc::clone(&self.disk),
            dir: self.dir.clone(),
        }
    }

    fn check_replayed(&self) -> Result<()> {
        match self.replay {
            Some(_) => Err(DiskError::WalNotReplayed),
            None => Ok(()),
        }
    }
}

/// Quarantines strays, then lists a log's directory. Strays are entries with the name of a segment
/// or checkpoint that are neither; upstream's programs refuse to start with them.
fn without_strays(disk: &dyn Disk, dir: &Path, quarantine: &Quarantine) -> Result<WalListing> {
    let listing = WalListing::read(disk, dir)?;
    // The usual case, in which a second listing is not needed.
    if listing.strays.is_empty() {
        return Ok(listing);
    }
    for path in &listing.strays {
        match quarantine.take(path) {
            Ok(kept) => tracing::warn!(
                path = %path.display(), to = kept.map(|kept| kept.display().to_string()),
                "quarantined an entry that has the name of a WAL segment or checkpoint but is \
                 neither"
            ),
            Err(error) => tracing::warn!(
                path = %path.display(), %error,
                "ignored an entry that has the name of a WAL segment or checkpoint but is neither"
            ),
        }
    }
    WalListing::read(disk, dir)
}

impl WalOptions {
    fn writer(&self, sync_retired: bool, counters: &Arc<Counters>) -> WriterOptions {
        WriterOptions {
            segment_bytes_max: self.segment_bytes_max,
            compression: self.compression,
            gathered_bytes_max: 0,
            sync_retired,
            writes_again: false,
            committed: Committed::default(),
            counters: Arc::clone(counters),
        }
    }
}

impl Drop for Wal {
    /// Syncs unsynced records, because the next `Wal` does not know of them.
    fn drop(&mut self) {
        if self.options.sync != SyncPolicy::Off
            && let Err(error) = self.writer.sync()
        {
            let unwritten_bytes = self.writer.unwritten_bytes();
            match unwritten_bytes {
                0 => tracing::warn!(
                    %error, "could not sync the last WAL records; a power cut may lose them"
                ),
                _ => tracing::error!(
                    %error, unwritten_bytes, "could not write the last WAL records; they are lost"
                ),
            }
        }
    }
}
