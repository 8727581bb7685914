//! Replay: the newest checkpoint, then the segments after it, as batches of bounded size.
//!
//! The last segment that holds anything may end in a *torn tail*, what a crash left of the last
//! batch: it is cut off, so that neither the next replay nor upstream stumbles over it. Everywhere
//! else damage is skipped and stays as it is. Gaps between segments are logged and stepped over.

use super::pack::Unpacker;
use super::page::DamageCause;
use super::plan::{ReadingPlan, Source};
use super::reader::{DamagedPlace, SegmentReader, Tail};
use super::segment::WalListing;
use super::stats::Counters;
use crate::disk::error::{Action, Result};
use crate::disk::fs::{Access, Disk, DiskFile};
use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

/// Records read back, in the order they were appended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplayBatch {
    /// The segment all of these records are in; a checkpoint counts as the segment it ends with.
    pub segment: u32,
    /// The records, whole.
    pub records: Vec<Vec<u8>>,
}

/// Reads a log from its front to its end, once.
pub struct Replay {
    disk: Arc<dyn Disk>,
    sources: VecDeque<Source>,
    current: Option<(Source, Arc<dyn DiskFile>, SegmentReader)>,
    unpacker: Unpacker,
    sync_last: bool,
    /// Bytes of the files read to their end.
    bytes_done: u64,
    started: Instant,
    counters: Arc<Counters>,
}

impl Replay {
    /// Plans the reading of what a directory holds. With `sync_last`, the last segment is synced
    /// at the end: the life that wrote it may have been killed before it could.
    pub(super) fn plan(
        disk: Arc<dyn Disk>,
        listing: &WalListing,
        sync_last: bool,
        counters: Arc<Counters>,
    ) -> Result<Replay> {
        let plan = ReadingPlan::new(&*disk, listing)?;
        for oddity in &plan.oddities {
            tracing::warn!(path = %oddity.path().display(), "stepped over: {oddity}");
            counters.gaps.fetch_add(1, Relaxed);
        }
        let (bytes_total, sources) = (plan.size_bytes(), plan.sources);
        counters.replay_segments_total.store(sources.len() as u32, Relaxed);
        counters.replay_bytes_total.store(bytes_total, Relaxed);
        let (unpacker, started) = (Unpacker::default(), Instant::now());
        Ok(Replay {
            disk,
            sources,
            current: None,
            unpacker,
            sync_last,
            bytes_done: 0,
            started,
            counters,
        })
    }

    /// The next records of one segment, about `bytes_max` long; `None` at the end of the log.
    pub fn batch(&mut self, bytes_max: u32) -> Result<Option<ReplayBatch>> {
        loop {
            if self.current.is_none() && !self.open_next()? {
                return Ok(None);
            }
            let Some((source, _, reader)) = &mut self.current else { return Ok(None) };
            let segment = source.segment;
            let mut records = Vec::new();
            let mut bytes = 0;
            let mut is_at_end = false;
            while bytes < bytes_max as usize || records.is_empty() {
                let Some(record) = reader.next(&mut self.unpacker) else {
                    is_at_end = true;
                    break;
                };
                // Even an empty one takes some memory.
                bytes += record.len().max(1);
                records.push(record);
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

    /// Opens the next file. One that cannot be opened now may well be later, so nothing is
    /// skipped: the next call tries again.
    fn open_next(&mut self) -> Result<bool> {
        let Some(source) = self.sources.front() else {
            self.report();
            return Ok(false);
        };
        let access = if source.is_last { Access::Write } else { Access::Read };
        let path = source.path.clone();
        let file = self.disk.open(&path, access).map_err(Action::Open.failed(&path))?;
        let counters = Arc::clone(&self.counters);
        let reader = SegmentReader::new(Arc::clone(&file), path, source.size_bytes, counters);
        self.current = self.sources.pop_front().map(|source| (source, file, reader));
        Ok(true)
    }

    fn close(&mut self) {
        let Some((source, file, mut reader)) = self.current.take() else { return };
        match reader.tail() {
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
        match file.set_len(whole_end).and_then(|()| file.sync_data()) {
            Ok(()) => tracing::warn!(
                %path, offset = whole_end, bytes, %cause, records_before = records,
                "cut off what a crash left of the last WAL write"
            ),
            Err(error) => tracing::warn!(
                %path, offset = whole_end, bytes, %cause, records_before = records, %error,
                "could not cut off what a crash left of the last WAL write; check the disk"
            ),
        }
    }

    fn report(&self) {
        let replay = self.counters.snapshot().replay;
        tracing::info!(
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
            "a WAL segment is damaged; skipped what cannot be read; if this repeats, check the disk"
        );
    }
}
