//! Writing: appends batches of records to the newest segment of a directory.
//!
//! A batch is compressed and framed into one buffer and written by one call, so all of it is in one
//! segment. The only state of a segment is its length, which grows only after a successful write:
//!
//! ```text
//! append ─┬─ fits ────────────────────────────▶ write ─┬─ done: length grows
//!         └─ too long ─▶ cut: create next, retire old ─┘
//!                                                      └─ failed: cut the file back to its length
//!                                                           └─ failed too: abandon the segment
//! ```
//!
//! Records may be buffered in memory before they are written (see `gather`). Buffers are written
//! before a segment ends, so only the open segment has buffered records. While they cannot be
//! written, no further batch is accepted.
//!
//! A segment is *retired* (padded to a whole page, synced) when the next segment exists. No more
//! records are written to it if it is full, if a failed write could not be undone, or if a sync
//! failed: the kernel may then have dropped the pages, and another sync would report a false
//! success. In that case the next segment begins with a copy of the unsynced records
//! (`unsynced.rs`). Bytes of a failed write are cut off before the next write, because replay would
//! return them before later records. Readers that follow the writer get its position (`committed`)
//! only after a write.

use super::Compression;
use super::committed::Committed;
use super::gather::{AppendFailure, SegmentTail};
use super::pack::Packer;
use super::page::{PAGE_BYTES, put_record};
use super::segment::segment_name;
use super::stats::Counters;
use super::unsynced::Unsynced;
use crate::error::{Action, DiskError, Result};
use crate::fs::Disk;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

/// Maximum size of a buffer that is kept after a batch; a larger buffer is freed.
const BUFFER_KEPT_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Pause after a failed write of buffered records, during which batches are refused at once.
const HELD_PAUSE: Duration = Duration::from_secs(1);

/// Writes the segments of one directory.
pub struct SegmentWriter {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    segment_bytes_max: u64,
    gathered_bytes_max: usize,
    sync_retired: bool,
    packer: Packer,
    framed: Vec<u8>,
    open: Option<OpenSegment>,
    next_number: Option<u32>,
    /// A retired segment whose sync failed, until a requested sync has reported the failure.
    unreported: Option<u32>,
    /// The failed write, while buffered records cannot be written.
    held: Option<WriteFailure>,
    /// Records since the last completed sync; `None` if this writer does not write records again.
    unsynced: Option<Unsynced>,
    /// Whether the unsynced records must be written to the open segment again.
    writes_again: bool,
    /// Number of the segment that was promised to the next batch: see `append`.
    promised: Option<u32>,
    /// Length of the last batch in bytes.
    batch_bytes: u64,
    committed: Committed,
    counters: Arc<Counters>,
}

pub struct WriterOptions {
    /// Maximum length of a segment; only a single batch may exceed it.
    pub segment_bytes_max: u64,
    pub compression: Compression,
    /// Maximum size of the records buffered in memory before they are written.
    pub gathered_bytes_max: usize,
    /// Whether a segment is synced when the next segment begins.
    pub sync_retired: bool,
    /// Whether records that a failed sync may have lost are written again.
    pub writes_again: bool,
    /// Tells readers that follow the writer up to which position the log is written.
    pub committed: Committed,
    pub counters: Arc<Counters>,
}

struct OpenSegment {
    number: u32,
    path: PathBuf,
    tail: SegmentTail,
    is_synced: bool,
    state: SegmentState,
}

/// A failed write of buffered records: error and time.
struct WriteFailure {
    kind: io::ErrorKind,
    reason: String,
    at: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SegmentState {
    Usable,
    Suspect,
    /// Bytes of a failed batch remain after the end of the segment.
    Abandoned,
}

impl SegmentWriter {
    /// Creates a writer for `dir`. The segment `first` is created when the first batch needs it.
    pub fn new(
        disk: Arc<dyn Disk>,
        dir: PathBuf,
        first: Option<u32>,
        options: WriterOptions,
    ) -> SegmentWriter {
        SegmentWriter {
            disk,
            dir,
            segment_bytes_max: options.segment_bytes_max,
            gathered_bytes_max: options.gathered_bytes_max,
            sync_retired: options.sync_retired,
            packer: Packer::new(options.compression),
            framed: Vec::new(),
            open: None,
            next_number: first,
            unreported: None,
            held: None,
            unsynced: options.writes_again.then(Unsynced::default),
            writes_again: false,
            promised: None,
            batch_bytes: 0,
            committed: options.committed,
            counters: options.counters,
        }
    }

    /// Appends all records or none, and returns the number of their segment. Without records,
    /// returns the number of the next batch's segment. This promise is kept unless a call fails in
    /// between, even if the batch makes the segment too long. So the records can be encoded for
    /// their segment.
    pub fn append<R: AsRef<[u8]>>(&mut self, records: &[R]) -> Result<u32> {
        self.flush_held()?;
        let (number, size_bytes) = self.usable()?;
        if records.is_empty() {
            return self.promise(size_bytes);
        }
        let is_promised = self.promised.take() == Some(number);
        self.frame(records, size_bytes)?;
        if !is_promised && self.is_too_long(size_bytes, self.framed.len() as u64) {
            // Framed again, because the padding depends on the offset in the page.
            self.cut()?;
            let size_bytes = self.open.as_ref().map_or(0, |open| open.tail.size_bytes());
            self.frame(records, size_bytes)?;
        }
        let number = self.write_framed()?;
        // Used as an estimate of the next batch's length, by `promise` and `may_write`.
        self.batch_bytes = self.framed.len() as u64;
        if let Some(unsynced) = &mut self.unsynced {
            unsynced.add(records);
        }
        self.counters.records_written.fetch_add(records.len() as u64, Relaxed);
        self.counters.bytes_written.fetch_add(self.framed.len() as u64, Relaxed);
        if self.framed.capacity() > BUFFER_KEPT_BYTES_MAX {
            self.framed = Vec::new();
        }
        self.packer.shrink(BUFFER_KEPT_BYTES_MAX);
        Ok(number)
    }

    /// Promises a segment to the next batch. Ends the open segment first if another batch of the
    /// last batch's length would not fit.
    fn promise(&mut self, size_bytes: u64) -> Result<u32> {
        if self.is_too_long(size_bytes, self.batch_bytes) {
            self.cut()?;
        }
        let number = self.open_segment()?;
        self.promised = Some(number);
        Ok(number)
    }

    fn is_too_long(&self, size_bytes: u64, batch_bytes: u64) -> bool {
        // An empty segment accepts any batch, because a new segment would not be longer.
        size_bytes > 0 && size_bytes + batch_bytes > self.segment_bytes_max
    }

    /// Opens a segment for records if none is open, and returns the open segment's number.
    pub fn open_segment(&mut self) -> Result<u32> {
        self.usable().map(|(number, _)| number)
    }

    /// Ends the open segment, after opening one if necessary, and begins the next. Returns the
    /// number of the ended segment. The segment has ended even if this returns an error of a sync.
    pub fn cut_segment(&mut self) -> Result<u32> {
        loop {
            let number = match &self.open {
                Some(open) => open.number,
                None => self.open_segment()?,
            };
            self.cut()?;
            // Records that were written again must be before the cut as well, and durable.
            if self.unsynced.as_ref().is_none_or(Unsynced::is_empty) {
                return Ok(number);
            }
            self.sync()?;
        }
    }

    /// Makes every record appended so far survive a power cut, or returns an error. After a failure
    /// the call can be repeated, unless the unsynced records exceeded the size that is kept.
    pub fn sync(&mut self) -> Result<()> {
        let is_suspect = |open: &OpenSegment| open.state == SegmentState::Suspect;
        // Another sync of a suspect segment proves nothing; a copy in a new segment can be synced.
        if self.writes_again
            || self.unsynced.is_some() && self.open.as_ref().is_some_and(is_suspect)
        {
            self.usable()?;
        }
        self.flush()?;
        if let Some(segment) = self.unreported.take() {
            return Err(DiskError::WalSyncFailedBefore { segment });
        }
        match &mut self.open {
            Some(open) if open.state == SegmentState::Suspect => {
                return Err(DiskError::WalSyncFailedBefore { segment: open.number });
            }
            Some(open) => open.sync(&self.counters)?,
            None => {}
        }
        if let Some(unsynced) = &mut self.unsynced {
            unsynced.clear();
        }
        Ok(())
    }

    /// Writes buffered records. After an error they stay buffered.
    pub fn flush(&mut self) -> Result<()> {
        let Some(open) = &mut self.open else { return Ok(()) };
        match open.tail.flush() {
            Ok(()) => {
                self.held = None;
                self.publish();
                Ok(())
            }
            Err(source) => Err(self.pause_appends(source)),
        }
    }

    /// Returns whether appending these records may write buffered records.
    pub fn may_write<R: AsRef<[u8]>>(&self, records: &[R]) -> bool {
        let Some(open) = &self.open else { return false };
        let unwritten_bytes = open.tail.unwritten_bytes();
        if unwritten_bytes == 0 {
            return false;
        }
        // An upper bound that includes headers, padding, and the growth of incompressible records.
        let bound = |record: &R| 2 * record.as_ref().len() as u64 + 64;
        let bytes: u64 = records.iter().map(bound).sum();
        let is_full = unwritten_bytes + bytes > self.gathered_bytes_max as u64;
        let ends = open.state != SegmentState::Usable
            || self.is_too_long(open.tail.size_bytes(), bytes.max(self.batch_bytes));
        is_full || ends || self.writes_again || self.held.is_some()
    }

    pub fn unwritten_bytes(&self) -> u64 {
        self.open.as_ref().map_or(0, |open| open.tail.unwritten_bytes())
    }

    /// Pads and syncs the last segment. No append may follow.
    pub fn finish(&mut self) -> Result<()> {
        self.open_segment()?;
        match self.open.take() {
            Some(open) => self.retire(open),
            None => Ok(()),
        }
    }

    /// Publishes to readers the length up to which the open segment is written.
    fn publish(&self) {
        if let Some(open) = &self.open {
            self.committed.publish(open.number, open.tail.written_bytes());
        }
    }

    /// Returns number and length of a usable segment, and begins one if the last is not usable.
    fn usable(&mut self) -> Result<(u32, u64)> {
        // The cut comes first, because the copy of unsynced records must be in a usable segment.
        if self.open.as_ref().is_none_or(|open| open.state != SegmentState::Usable) {
            self.cut()?;
        }
        if self.writes_again {
            self.write_again()?;
        }
        match &self.open {
            Some(open) => Ok((open.number, open.tail.size_bytes())),
            None => Err(DiskError::SegmentNumbersExhausted { dir: self.dir.clone() }),
        }
    }

    fn frame<R: AsRef<[u8]>>(&mut self, records: &[R], offset: u64) -> Result<()> {
        let base = (offset % PAGE_BYTES as u64) as usize;
        self.framed.clear();
        for record in records {
            let (packed, compression) = self.packer.pack(record.as_ref())?;
            put_record(&mut self.framed, base, packed, compression);
        }
        Ok(())
    }

    fn write_framed(&mut self) -> Result<u32> {
        let Some(open) = &mut self.open else {
            return Err(DiskError::SegmentNumbersExhausted { dir: self.dir.clone() });
        };
        let (offset, bytes) = (open.tail.size_bytes(), self.framed.len() as u64);
        // Cleared before the write: even a write that was undone makes a sync necessary.
        open.is_synced = false;
        match open.tail.append(&self.framed) {
            Ok(()) => {
                let number = open.number;
                self.publish();
                Ok(number)
            }
            Err(AppendFailure::Flush(source)) => Err(self.pause_appends(source)),
            Err(AppendFailure::Write { left_behind: abandoned, source }) => {
                self.counters.writes_failed.fetch_add(1, Relaxed);
                if abandoned {
                    open.state = SegmentState::Abandoned;
                }
                let (path, segment) = (open.path.clone(), open.number);
                Err(DiskError::WalWrite { path, segment, offset, bytes, abandoned, source })
            }
        }
    }

    /// Writes buffered records if an earlier attempt has failed, but only after a pause: a failing
    /// write may need much time before it fails.
    fn flush_held(&mut self) -> Result<()> {
        match &self.held {
            None => Ok(()),
            Some(held) if held.at.elapsed() >= HELD_PAUSE => self.flush(),
            Some(held) => Err(self.held_error(io::Error::new(held.kind, held.reason.clone()))),
        }
    }

    /// Refuses further batches until the buffered records are written.
    fn pause_appends(&mut self, source: io::Error) -> DiskError {
        self.counters.writes_failed.fetch_add(1, Relaxed);
        let (kind, reason) = (source.kind(), source.to_string());
        self.held = Some(WriteFailure { kind, reason, at: Instant::now() });
        self.held_error(source)
    }

    fn held_error(&self, source: io::Error) -> DiskError {
        let (path, segment) = match &self.open {
            Some(open) => (open.path.clone(), open.number),
            None => (self.dir.clone(), 0),
        };
        DiskError::WalHeld { path, segment, bytes: self.unwritten_bytes(), source }
    }

    /// Creates the next segment, then retires the open segment. If the next cannot be created,
    /// nothing changes.
    fn cut(&mut self) -> Result<()> {
        self.flush_held()?;
        self.flush()?;
        self.cut_off_abandoned()?;
        let next = self.create_next()?;
        let ended = self.open.replace(next);
        self.publish();
        let Some(ended) = ended else { return Ok(()) };
        let (number, was_suspect) = (ended.number, ended.state == SegmentState::Suspect);
        let retired = self.retire(ended);
        let Some(unsynced) = &mut self.unsynced else {
            // The failed sync has already reported a suspect segment.
            if retired.is_err() && !was_suspect {
                self.unreported = Some(number);
                return retired;
            }
            return Ok(());
        };
        // The retired segment's sync covered every record, unless a copy must still be written.
        if retired.is_ok() && !self.writes_again {
            unsynced.clear();
            return Ok(());
        }
        if unsynced.records().is_none() {
            // Too many records were appended to keep them, so the loss can only be reported, once.
            unsynced.clear();
            self.unreported = Some(number);
            return retired;
        }
        self.writes_again = true;
        self.write_again()
    }

    /// Cuts the bytes of a failed batch off the open segment, because readers consider all bytes of
    /// an ended segment valid.
    fn cut_off_abandoned(&self) -> Result<()> {
        match &self.open {
            Some(open) if open.state == SegmentState::Abandoned => {
                let cut = open.tail.end_at(open.tail.size_bytes());
                cut.map_err(Action::Write.failed(&open.path))
            }
            _ => Ok(()),
        }
    }

    /// Writes the records that a failed sync may have lost, to the open segment.
    fn write_again(&mut self) -> Result<()> {
        let Some(unsynced) = self.unsynced.take() else { return Ok(()) };
        let records = unsynced.records().unwrap_or_default();
        let offset = self.open.as_ref().map_or(0, |open| open.tail.size_bytes());
        let framed = self.frame(&records, offset);
        let count = records.len();
        // Restored before `?`, because after an error a later call must write the records again.
        self.unsynced = Some(unsynced);
        framed?;
        let segment = self.write_framed()?;
        self.writes_again = false;
        tracing::warn!(
            segment,
            records = count,
            bytes = self.framed.len(),
            "wrote the WAL records again that a failed sync may have lost; if this repeats, check \
             the disk"
        );
        Ok(())
    }

    fn create_next(&mut self) -> Result<OpenSegment> {
        loop {
            let Some(number) = self.next_number else {
                return Err(DiskError::SegmentNumbersExhausted { dir: self.dir.clone() });
            };
            let path = self.dir.join(segment_name(number));
            let file = match self.disk.create(&path) {
                // An earlier attempt left this file, because the removal below failed. The file is
                // empty and stays, so that the numbers have no gap.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    self.next_number = number.checked_add(1);
                    continue;
                }
                created => created.map_err(Action::Create.failed(&path))?,
            };
            if let Err(source) = self.disk.sync_dir(&self.dir) {
                // If this fails, the branch above skips the file at the next attempt.
                let _ = self.disk.remove_file(&path);
                return Err(Action::Sync.failed(&self.dir)(source));
            }
            self.next_number = number.checked_add(1);
            let state = SegmentState::Usable;
            let tail = SegmentTail::new(file, self.gathered_bytes_max);
            return Ok(OpenSegment { number, path, tail, is_synced: true, state });
        }
    }

    fn retire(&mut self, mut ended: OpenSegment) -> Result<()> {
        // Upstream pads the last page of each segment but the log's last. A page without padding is
        // read in the same way, so a failure is harmless.
        let padded = ended.tail.size_bytes().next_multiple_of(PAGE_BYTES as u64);
        let _ = ended.tail.end_at(padded);
        match ended.state {
            _ if !self.sync_retired => Ok(()),
            SegmentState::Suspect => Err(DiskError::WalSyncFailedBefore { segment: ended.number }),
            _ => ended.sync(&self.counters),
        }
    }
}

impl OpenSegment {
    fn sync(&mut self, counters: &Counters) -> Result<()> {
        if self.is_synced {
            return Ok(());
        }
        let started = Instant::now();
        let synced = self.tail.sync();
        counters.fsyncs.fetch_add(1, Relaxed);
        counters.fsync_nanos.fetch_add(started.elapsed().as_nanos() as u64, Relaxed);
        match synced {
            Ok(()) => {
                self.is_synced = true;
                *counters.fsynced_at.lock().unwrap_or_else(PoisonError::into_inner) =
                    Some(Instant::now());
                Ok(())
            }
            Err(source) => {
                // The kernel reports a failed write-back once. Later syncs may succeed although the
                // data is lost.
                self.state = SegmentState::Suspect;
                counters.fsyncs_failed.fetch_add(1, Relaxed);
                Err(DiskError::WalSync { path: self.path.clone(), segment: self.number, source })
            }
        }
    }
}
