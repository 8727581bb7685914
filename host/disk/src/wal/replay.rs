//! Replay: reads the newest checkpoint, then the segments after it, in batches of bounded size.
//!
//! The last segment that has bytes may end in a *torn tail*: the part of the last batch that a
//! crash left. The tail is cut off, so that neither the next replay nor upstream stops at it. All
//! other damage is skipped, and repaired later (`repair`). Gaps between segments, and files that
//! cannot be opened, are logged and skipped.

use super::pack::Unpacker;
use super::page::DamageCause;
use super::plan::{ReadingPlan, Source};
use super::reader::{DamageTally, DamagedPlace, SegmentReader, Tail};
use super::records::Records;
use super::repair::DamagedSegment;
use super::segment::{SegmentFile, WalListing};
use super::stats::Counters;
use crate::error::{Action, Result, is_shortage};
use crate::fs::{Access, Disk, DiskFile};
use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

/// Records of earlier runs, in the order in which they were appended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplayBatch {
    /// Number of the segment with these records; for a checkpoint, of the last segment that the
    /// checkpoint covers.
    pub segment: u32,
    pub records: Records,
}

/// Reads a log from beginning to end, once.
pub struct Replay {
    disk: Arc<dyn Disk>,
    sources: VecDeque<Source>,
    current: Option<(Source, Arc<dyn DiskFile>, SegmentReader)>,
    damaged: Vec<DamagedSegment>,
    unpacker: Unpacker,
    sync_last: bool,
    /// Bytes of the files that were read to their end.
    bytes_done: u64,
    started: Instant,
    counters: Arc<Counters>,
}

impl Replay {
    /// Plans which files of a directory to read. With `sync_last`, the last segment is synced after
    /// it was read, because the run that wrote it may have been killed before its sync.
    pub(super) fn plan(
        disk: Arc<dyn Disk>,
        listing: &WalListing,
        sync_last: bool,
        counters: Arc<Counters>,
    ) -> Result<Replay> {
        let plan = ReadingPlan::new(&*disk, listing);
        for oddity in &plan.oddities {
            tracing::warn!(path = %oddity.path().display(), "skipped: {oddity}");
            counters.gaps.fetch_add(1, Relaxed);
        }
        let (bytes_total, sources) = (plan.size_bytes(), plan.sources);
        counters.replay_segments_total.store(sources.len() as u32, Relaxed);
        counters.replay_bytes_total.store(bytes_total, Relaxed);
        let numbers = || sources.iter().map(|source| source.segment);
        counters.replay_segment_min.store(numbers().min().unwrap_or(0), Relaxed);
        counters.replay_segment_max.store(numbers().max().unwrap_or(0), Relaxed);
        counters.replay_segment_current.store(numbers().next().unwrap_or(0), Relaxed);
        let (unpacker, started) = (Unpacker::default(), Instant::now());
        Ok(Replay {
            disk,
            sources,
            current: None,
            damaged: Vec::new(),
            unpacker,
            sync_last,
            bytes_done: 0,
            started,
            counters,
        })
    }

    /// Returns the next records of one segment, about `bytes_max` long; `None` at the end of the
    /// log.
    pub fn batch(&mut self, bytes_max: u32) -> Result<Option<ReplayBatch>> {
        loop {
            if self.current.is_none() && !self.open_next()? {
                return Ok(None);
            }
            let Some((source, _, reader)) = &mut self.current else { return Ok(None) };
            let segment = source.segment;
            let mut records = Records::default();
            let mut is_at_end = false;
            let is_full = |records: &Records| {
                // The number of records is limited as well, because empty records need memory, too.
                records.bytes.len().max(records.len()) >= bytes_max as usize
            };
            while !is_full(&records) || records.is_empty() {
                let before = records.bytes.len();
                if !reader.next_onto(&mut self.unpacker, &mut records.bytes) {
                    is_at_end = true;
                    break;
                }
                // The cast cannot truncate: a record has at most `RECORD_BYTES_MAX` bytes, which
                // fits into `u32`.
                records.lengths.push((records.bytes.len() - before) as u32);
            }
            report_damage(&source.path, reader);
            let position = self.bytes_done + reader.position();
            self.counters.replay_bytes_done.store(position, Relaxed);
            if is_at_end {
                self.close();
            }
            if !records.is_empty() {
                self.counters.replayed_records.fetch_add(records.len() as u64, Relaxed);
                return Ok(Some(ReplayBatch { segment, records }));
            }
        }
    }

    /// Returns the segments with damage. Must be called after the log was read to its end.
    pub(super) fn take_damaged(&mut self) -> Vec<DamagedSegment> {
        std::mem::take(&mut self.damaged)
    }

    /// Opens the next file that can be opened; returns `false` if none is left.
    fn open_next(&mut self) -> Result<bool> {
        loop {
            let Some(source) = self.sources.front() else {
                self.report();
                return Ok(false);
            };
            let path = source.path.clone();
            self.counters.replay_segment_current.store(source.segment, Relaxed);
            let opened = match self.open(source) {
                // The file is not the cause of a shortage, so it is kept for the next call.
                Err(error) if is_shortage(&error) => {
                    return Err(Action::Open.failed(&path)(error));
                }
                opened => opened,
            };
            let Some(source) = self.sources.pop_front() else { return Ok(false) };
            match opened {
                Ok(file) => {
                    let counters = Arc::clone(&self.counters);
                    let disk_file = Arc::clone(&file);
                    let reader = SegmentReader::new(disk_file, path, source.size_bytes, counters);
                    self.current = Some((source, file, reader));
                    return Ok(true);
                }
                Err(error) => self.step_over(source, &error),
            }
        }
    }

    fn open(&self, source: &Source) -> std::io::Result<Arc<dyn DiskFile>> {
        // Cutting off a torn tail requires a writable handle. A read-only file is still read.
        if source.is_last
            && let Ok(file) = self.disk.open(&source.path, Access::Write)
        {
            return Ok(file);
        }
        self.disk.open(&source.path, Access::Read)
    }

    /// Skips a file that cannot be opened. All of its bytes count as damaged.
    fn step_over(&mut self, source: Source, error: &std::io::Error) {
        tracing::error!(
            path = %source.path.display(), bytes = source.size_bytes, %error,
            "skipped a WAL segment that cannot be read; check its owner and the disk"
        );
        let bytes = source.size_bytes;
        self.counters.damaged_places.fetch_add(1, Relaxed);
        self.counters.damaged_bytes.fetch_add(bytes, Relaxed);
        self.counters.replay_segments_done.fetch_add(1, Relaxed);
        self.bytes_done += bytes;
        let damage = DamageTally { places: 1, bytes, is_unreadable: true };
        self.note_damaged(source, damage, 0);
    }

    fn note_damaged(&mut self, source: Source, damage: DamageTally, records: u64) {
        let Source { segment: number, path, size_bytes, must_stay, .. } = source;
        let file = SegmentFile { number, path, size_bytes };
        self.damaged.push(DamagedSegment { file, damage, records, must_stay });
    }

    fn close(&mut self) {
        let Some((source, file, mut reader)) = self.current.take() else { return };
        match reader.tail() {
            // Only the last batch of the log can be incomplete: after an earlier segment the log
            // went on.
            Tail::Torn { whole_end, cause } if source.is_last => {
                self.cut_tail(&source, &*file, whole_end, cause, reader.whole_records());
            }
            Tail::Torn { .. } => reader.count_tail(),
            Tail::Clean => {}
        }
        report_damage(&source.path, &mut reader);
        if source.is_last
            && self.sync_last
            && let Err(error) = file.sync_data()
        {
            let path = source.path.display();
            tracing::warn!(%path, %error, "could not sync the last WAL segment; check the disk");
        }
        self.counters.replay_segments_done.fetch_add(1, Relaxed);
        self.bytes_done += source.size_bytes;
        let damage = reader.damage();
        if damage.places > 0 {
            // Cutting off the tail may have changed the length since the listing.
            let size_bytes = file.size().unwrap_or(source.size_bytes);
            self.note_damaged(Source { size_bytes, ..source }, damage, reader.whole_records());
        }
    }

    fn cut_tail(
        &self,
        source: &Source,
        file: &dyn DiskFile,
        whole_end: u64,
        cause: DamageCause,
        records: u64,
    ) {
        let (path, bytes) = (source.path.display(), source.size_bytes - whole_end);
        self.counters.torn_tails.fetch_add(1, Relaxed);
        self.counters.torn_bytes.fetch_add(bytes, Relaxed);
        // Without a sync, a power cut could bring the tail back, with newer records after it.
        match file.set_len(whole_end).and_then(|()| file.sync_data()) {
            Ok(()) => tracing::warn!(
                %path, offset = whole_end, bytes, %cause, records_before = records,
                "removed the unfinished last write of the WAL that a crash left"
            ),
            Err(error) => tracing::warn!(
                %path, offset = whole_end, bytes, %cause, records_before = records, %error,
                "could not remove the unfinished last write of the WAL that a crash left; check \
                 the disk"
            ),
        }
    }

    fn report(&self) {
        let replay = self.counters.snapshot().replay;
        // The caller logs the outcome.
        tracing::debug!(
            records = replay.records,
            segments = replay.segments_done,
            bytes = replay.bytes_done,
            seconds = self.started.elapsed().as_secs_f64(),
            "WAL replayed"
        );
    }
}

fn report_damage(path: &Path, reader: &mut SegmentReader) {
    let records_before = reader.whole_records();
    for DamagedPlace { offset, bytes, cause } in reader.take_damaged() {
        tracing::warn!(
            path = %path.display(), offset, bytes, %cause, records_before,
            "skipped a damaged part of a WAL segment; if this repeats, check the disk"
        );
    }
}
