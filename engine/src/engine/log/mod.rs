//! Writes the records of a batch to the log, replays them, and decides which segments are needed.
//!
//! The newest sample time of every segment is known. When the head drops samples that a block
//! holds, a checkpoint replaces the leading segments without newer samples. It has the labels of
//! the series that are still in the head, and all exemplars, because blocks hold none. Samples are
//! never copied, and later segments do not change.
//!
//! As in Prometheus, out-of-order samples have a log of their own, so that replay can tell them
//! from in-order samples that a block already holds. A segment of this log is dropped once blocks
//! hold all its samples.

mod block_deletions;
mod columns;
mod deletion;
mod earlier_refs;
mod state;

pub use block_deletions::BlockDeletions;
pub use state::LogState;

use super::records::{Rows, exemplars_of, metadata_of, series_of};
use crate::error;
use crate::head::{Batch, Exemplar, ExemplarScan, Head, Metadata, Slot};
use crate::model::{Labels, TimeRange, Value};
use crate::storage::{LogKind, StorageResult, Wal, WalCheckpoint};
use crate::wal::{ColumnReader, Record, RecordError, decode, retired_record};
use columns::Columns;
use deletion::Deletions;
use earlier_refs::EarlierRefs;
use std::collections::BTreeMap;

/// Number of series in one slice of a checkpoint.
const CHECKPOINT_SERIES_PER_SLICE: usize = 10_000;

/// Approximate bytes of exemplars in one slice of a checkpoint.
const CHECKPOINT_EXEMPLAR_BYTES_PER_SLICE: u32 = 1024 * 1024;

/// Number of series in one record of a checkpoint.
const CHECKPOINT_SERIES_PER_RECORD: usize = 500;

/// Progress of a replay of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplayProgress {
    /// Whether the end of the log is reached.
    pub done: bool,
    /// Number of the segment read last.
    pub segment: u32,
    /// Number of records read so far.
    pub records: u64,
    /// Number of samples that were added to the head.
    pub samples: u64,
    /// Number of records of unknown kinds, or that do not decode.
    pub skipped_records: u64,
}

/// The log, with the newest sample time of each segment.
pub struct Log {
    wal: Box<dyn Wal>,
    /// Newest sample time by segment of the in-order log.
    segments: BTreeMap<u32, i64>,
    /// Segment that may be a checkpoint: the first replayed, or the last that was committed.
    checkpoint: Option<u32>,
    /// Newest sample time and last generation (count of planned cuts) by out-of-order segment.
    out_of_order_segments: BTreeMap<u32, (i64, u64)>,
    /// A segment ends when the newest sample time of the log has grown by this duration since the
    /// segment began, so that old segments can be dropped early.
    segment_span_ms: i64,
    /// The segment being written, and the newest sample time of the log after its first batch.
    current: Option<(u32, i64)>,
    progress: ReplayProgress,
    deletions: Deletions,
    /// Deletions from blocks, until the log has these deletions.
    block_deletions: Option<BlockDeletions>,
    earlier_refs: EarlierRefs,
    truncation: Option<Truncation>,
    /// State of column records; `None` if floats are written as plain records.
    columns: Option<Columns>,
    /// Reader of column records, used only during a replay.
    column_reader: ColumnReader,
}

/// A checkpoint being written, in slices.
struct Truncation {
    checkpoint: Box<dyn WalCheckpoint>,
    last_segment: u32,
    slots: std::vec::IntoIter<Slot>,
    exemplars: ExemplarScan,
}

impl Log {
    pub fn new(
        wal: Box<dyn Wal>,
        block_deletions: Option<BlockDeletions>,
        block_duration_ms: i64,
    ) -> Log {
        Log {
            wal,
            segments: BTreeMap::new(),
            checkpoint: None,
            out_of_order_segments: BTreeMap::new(),
            segment_span_ms: block_duration_ms / 2,
            current: None,
            progress: ReplayProgress::default(),
            deletions: Deletions::default(),
            block_deletions,
            earlier_refs: EarlierRefs::default(),
            truncation: None,
            columns: None,
            column_reader: ColumnReader::default(),
        }
    }

    /// Writes a checked batch to the log. After an error nothing is written, unless only the second
    /// of the two logs fails: then the out-of-order rows may return after a restart, although the
    /// sender was asked to retry. The out-of-order log comes first, because replay keeps the last
    /// of its samples at one time, while in-order rows without acknowledgement would hide older
    /// rows of their series that arrive later. The labels of new series come before both, so that
    /// readers of the logs know the series of each out-of-order row.
    pub fn append(&mut self, head: &mut Head, batch: &Batch) -> error::Result<()> {
        self.log_block_deletions(head)?;
        let mut created = head.created(batch);
        let out_of_order = Rows::of(head, batch, true, None);
        if !out_of_order.records.is_empty() {
            // Unapplied tombstones would hide the new rows.
            self.apply_deletions(head)?;
            if !created.is_empty() {
                let segment = self.wal.append(LogKind::InOrder, &[series_of(head, created)])?;
                self.note(segment, i64::MIN);
                created = &[];
            }
            let segment = self.wal.append(LogKind::OutOfOrder, &out_of_order.records)?;
            self.note_out_of_order(segment, out_of_order.newest_ms, head.generation());
        }
        // Both decide what the column records, which are made below, may depend on.
        self.turn_columns_off(head.columns_go());
        self.restart_columns_of_new_segment();
        let mut is_chained = self.columns.as_ref().is_some_and(Columns::is_chained);
        let mut in_order = self.in_order_rows(head, batch);
        if self.ends_segment(in_order.newest_ms) {
            self.cut_in_order().inspect_err(|_| self.restart_columns())?;
            if is_chained {
                // The next segment must not depend on a segment that may be dropped earlier.
                self.restart_columns();
                is_chained = false;
                in_order = self.in_order_rows(head, batch);
            }
        }
        let mut records = Vec::with_capacity(2);
        if !created.is_empty() {
            records.push(series_of(head, created));
        }
        records.append(&mut in_order.records);
        let metadata = head.unlogged_metadata();
        records.extend(metadata_of(head, &metadata));
        if !records.is_empty() {
            let appended = self.wal.append(LogKind::InOrder, &records);
            // No later record may depend on a record that the log does not have.
            let segment = appended.inspect_err(|_| self.restart_columns())?;
            self.note_columns(segment, in_order.newest_ms, is_chained);
            self.note(segment, in_order.newest_ms);
            self.note_current(segment);
        }
        // Not reached after a failed write, so its metadata is written with the next batch.
        head.metadata_is_logged();
        Ok(())
    }

    fn in_order_rows(&mut self, head: &Head, batch: &Batch) -> Rows {
        let mut in_order = Rows::of(head, batch, false, self.column_writer());
        in_order.add_exemplars(head, batch);
        in_order
    }

    /// Returns whether a batch with this newest time begins a new segment. Only leading segments
    /// can be dropped, so a new segment is of use only when the newest time of the whole log has
    /// grown. Older samples need no new segment, even if they are mixed with the newest.
    fn ends_segment(&self, newest_ms: i64) -> bool {
        self.current.is_some_and(|(_, began_ms)| {
            // At `i64::MIN` the log holds nothing but labels.
            began_ms != i64::MIN && newest_ms.saturating_sub(began_ms) > self.segment_span_ms
        })
    }

    /// Notes that a batch went to this segment.
    fn note_current(&mut self, segment: u32) {
        match self.current {
            Some((current, began_ms)) if current == segment && began_ms != i64::MIN => {}
            _ => {
                let newest_ms = self.segments.values().max().copied();
                self.current = Some((segment, newest_ms.unwrap_or(i64::MIN)));
            }
        }
    }

    fn cut_in_order(&mut self) -> StorageResult<()> {
        self.wal.cut_segment(LogKind::InOrder)?;
        self.current = None;
        Ok(())
    }

    /// Ends the segments being written if they have rows from before a cut of the whole head was
    /// planned. Otherwise rows written during the cut would keep such a segment, with all series
    /// that the cut drops. With churn, a replay would then load the series of many cuts at once.
    pub fn end_segments_at_cut(&mut self, head: &Head) {
        // An error is ignored: the log is then longer than necessary, but complete.
        if self.current.is_some() && self.cut_in_order().is_ok() {
            self.restart_columns();
        }
        let last = self.out_of_order_segments.values().next_back();
        if last.is_some_and(|(_, generation)| generation + 1 == head.generation()) {
            let _ = self.wal.cut_segment(LogKind::OutOfOrder);
        }
    }

    /// Reads the next part of the log back into the head.
    pub fn replay(
        &mut self,
        head: &mut Head,
        batch: &mut Batch,
        bytes_max: u32,
    ) -> error::Result<ReplayProgress> {
        if self.progress.done {
            return Ok(self.progress);
        }
        let Some(read) = self.wal.replay(bytes_max)? else {
            self.end_replay(head)?;
            self.progress.done = true;
            return Ok(self.progress);
        };
        self.progress.segment = read.segment;
        // A replay begins with the checkpoint, if there is one.
        if read.log == LogKind::InOrder {
            self.checkpoint.get_or_insert(read.segment);
        }
        if read.log == LogKind::OutOfOrder {
            // In-order rows that are buffered in the head precede all out-of-order rows.
            head.settle_replay();
            self.apply_block_deletions(head);
        }
        for record in read.records.iter() {
            self.progress.records += 1;
            head.spare_replay();
            if !self.replay_record(head, batch, (read.log, read.segment), record) {
                self.progress.skipped_records += 1;
            }
        }
        self.progress.samples = head.replayed_samples();
        Ok(self.progress)
    }

    /// Returns whether the log is not read to its end yet.
    pub fn is_replaying(&self) -> bool {
        !self.progress.done
    }

    /// Ends the replay. Samples that were read after a cut but are older than its end are written
    /// to the out-of-order log, because once the block of the cut is committed, replay skips them.
    fn end_replay(&mut self, head: &mut Head) -> error::Result<()> {
        head.settle_replay();
        self.apply_block_deletions(head);
        self.progress.samples = head.replayed_samples();
        self.column_reader = ColumnReader::default();
        self.end_replay_of_deletions();
        self.keep_earlier_refs(head.take_earlier_refs());
        if head.has_behind() {
            self.deletions.out_of_order_is_stale = true;
            match self.deletions.unapplied {
                true => self.apply_deletions(head)?,
                false => self.rewrite_out_of_order(head)?,
            }
        }
        // An error, such as lack of space, is ignored, because the next append tries again.
        let _ = self.log_block_deletions(head);
        Ok(())
    }

    /// Replays a record; returns whether all of it was understood.
    fn replay_record(
        &mut self,
        head: &mut Head,
        batch: &mut Batch,
        (log, segment): (LogKind, u32),
        record: &[u8],
    ) -> bool {
        match decode(record) {
            Ok(Record::Series(series)) => {
                let mut understood = true;
                for series in series {
                    let Ok(series) = series else { return false };
                    let labels: Vec<_> = series
                        .labels
                        .iter()
                        .map(|(name, value)| (name.as_bytes(), value.as_bytes()))
                        .collect();
                    understood &= head.replay_series(batch, series.series_ref, &labels).is_ok();
                }
                // Segments without samples are noted too, so that they are dropped in their turn.
                self.note(segment, i64::MIN);
                understood
            }
            Ok(Record::Samples(rows)) if log == LogKind::InOrder => {
                // Most rows are floats; this path makes no `Value` for each of them.
                let mut floats = head.replay_floats();
                let read = rows.each(|series_ref, sample| floats.take(series_ref, sample));
                let newest_ms = floats.end();
                self.note(segment, newest_ms);
                read.is_ok()
            }
            Ok(Record::Samples(rows)) => {
                let rows = rows.map(|row| row.map(|(at, s)| (at, s.timestamp_ms, s.value.into())));
                self.replay_rows(head, (log, segment), rows)
            }
            Ok(Record::Columns(record)) if log == LogKind::InOrder => {
                self.replay_columns(head, segment, &record)
            }
            Ok(Record::SamplesV2(rows)) => {
                let rows = rows.map(|row| row.map(|(at, s)| (at, s.timestamp_ms, s.value.into())));
                self.replay_rows(head, (log, segment), rows)
            }
            Ok(Record::Histograms(rows)) => {
                let rows =
                    rows.map(|row| row.map(|r| (r.series_ref, r.timestamp_ms, r.histogram.into())));
                self.replay_rows(head, (log, segment), rows)
            }
            Ok(Record::FloatHistograms(rows)) => {
                let rows =
                    rows.map(|row| row.map(|r| (r.series_ref, r.timestamp_ms, r.histogram.into())));
                self.replay_rows(head, (log, segment), rows)
            }
            Ok(Record::Exemplars(rows)) => {
                let mut newest_ms = i64::MIN;
                for row in rows {
                    let Ok(row) = row else { return false };
                    let Ok(labels) = Labels::from_pairs(row.labels) else { return false };
                    newest_ms = newest_ms.max(row.timestamp_ms);
                    let Some(slot) = head.replayed(row.series_ref) else {
                        // No new series may get the number: a replay would give it these rows.
                        head.retire_ref(row.series_ref);
                        continue;
                    };
                    let (value, timestamp_ms) = (row.value, row.timestamp_ms);
                    head.replay_exemplar(slot, Exemplar { labels, value, timestamp_ms });
                }
                // The next checkpoint copies all exemplars, so they need not keep this one.
                let is_in_checkpoint = self.checkpoint == Some(segment);
                self.note(segment, if is_in_checkpoint { i64::MIN } else { newest_ms });
                true
            }
            Ok(Record::Metadata(rows)) => {
                for row in rows {
                    let Ok(row) = row else { return false };
                    let Some(slot) = head.replayed(row.series_ref) else {
                        head.retire_ref(row.series_ref);
                        continue;
                    };
                    let (help, unit) = (row.help.into(), row.unit.into());
                    let metadata = Metadata { metric_type: row.kind.into(), help, unit };
                    head.replay_metadata(slot, row.family, metadata);
                }
                self.note(segment, i64::MIN);
                true
            }
            // The samples are in the log too; markers only help Prometheus, which keeps copies of
            // the samples in files of chunks.
            Ok(Record::MmapMarkers(markers)) => markers.into_iter().all(|marker| marker.is_ok()),
            Ok(Record::Tombstones(rows)) => self.replay_tombstones(head, segment, rows),
            Ok(Record::DeletionsApplied(floor_ms)) => {
                self.replay_deletions_applied(head, segment, floor_ms)
            }
            Ok(Record::Retired(last_ref)) => {
                head.retire_ref(last_ref);
                self.note(segment, i64::MIN);
                true
            }
            // Unknown kinds, and records that do not decode.
            _ => false,
        }
    }

    /// Replays rows; returns whether all were understood.
    fn replay_rows(
        &mut self,
        head: &mut Head,
        (log, segment): (LogKind, u32),
        rows: impl Iterator<Item = Result<(u64, i64, Value), RecordError>>,
    ) -> bool {
        let mut newest_ms = i64::MIN;
        let mut understood = true;
        for row in rows {
            let Ok((series_ref, timestamp_ms, value)) = row else {
                // After a damaged row, the start of the next row is unknown.
                understood = false;
                break;
            };
            newest_ms = newest_ms.max(timestamp_ms);
            let Some(slot) = head.replayed(series_ref) else {
                head.retire_ref(series_ref);
                continue;
            };
            match log {
                LogKind::InOrder => head.replay_in_order(slot, timestamp_ms, &value),
                LogKind::OutOfOrder if self.hides(slot, series_ref, timestamp_ms) => {}
                LogKind::OutOfOrder => head.replay_out_of_order(slot, timestamp_ms, value),
            }
        }
        match log {
            LogKind::InOrder => self.note(segment, newest_ms),
            LogKind::OutOfOrder => self.note_out_of_order(segment, newest_ms, head.generation()),
        }
        understood
    }

    fn note(&mut self, segment: u32, newest_ms: i64) {
        let known = self.segments.entry(segment).or_insert(i64::MIN);
        *known = (*known).max(newest_ms);
    }

    fn note_out_of_order(&mut self, segment: u32, newest_ms: i64, generation: u64) {
        let known = self.out_of_order_segments.entry(segment).or_insert((i64::MIN, generation));
        *known = (known.0.max(newest_ms), known.1.max(generation));
    }

    /// Drops leading out-of-order segments whose rows all precede `before_ms` and `generation`.
    pub fn truncate_out_of_order(&mut self, before_ms: i64, generation: u64) -> StorageResult<()> {
        let is_done = |(newest_ms, last): &(i64, u64)| *newest_ms < before_ms && *last < generation;
        let droppable =
            self.out_of_order_segments.iter().take_while(|(_, segment)| is_done(segment));
        let Some(last_segment) = droppable.map(|(segment, _)| *segment).last() else {
            return Ok(());
        };
        let is_all = self.out_of_order_segments.keys().next_back() == Some(&last_segment);
        // The segment being written may have repeated records, so it is dropped if all others are.
        let last_segment =
            if is_all { self.wal.cut_segment(LogKind::OutOfOrder)? } else { last_segment };
        self.wal.truncate_out_of_order(last_segment)?;
        self.out_of_order_segments.retain(|segment, _| *segment > last_segment);
        Ok(())
    }

    /// Returns whether a truncation is in progress.
    pub fn is_truncating(&self) -> bool {
        self.truncation.is_some()
    }

    /// Drops leading segments older than `before_ms`, in slices; returns whether work is left.
    pub fn truncate(&mut self, head: &mut Head, before_ms: i64) -> error::Result<bool> {
        let mut truncation = match self.truncation.take() {
            Some(truncation) => truncation,
            None => match self.begin_truncation(head, before_ms)? {
                Some(truncation) => truncation,
                None => return Ok(false),
            },
        };
        let slice: Vec<Slot> =
            truncation.slots.by_ref().take(CHECKPOINT_SERIES_PER_SLICE).collect();
        let records: Vec<Vec<u8>> = slice
            .chunks(CHECKPOINT_SERIES_PER_RECORD)
            .map(|slots| self.earlier_refs.series_of(head, slots))
            .collect();
        truncation.checkpoint.append(&records)?;
        if truncation.slots.len() > 0 {
            self.truncation = Some(truncation);
            return Ok(true);
        }
        let page = head
            .exemplars
            .next_page(&mut truncation.exemplars, CHECKPOINT_EXEMPLAR_BYTES_PER_SLICE);
        if let Some(page) = page {
            truncation.checkpoint.append(&exemplars_of(head, &page))?;
            self.truncation = Some(truncation);
            return Ok(true);
        }
        let metadata = head.metadata_of_living();
        let mut records = metadata_of(head, &metadata);
        // Numbers of dropped series must not be assigned again after a restart.
        records.push(retired_record(head.last_ref()));
        truncation.checkpoint.append(&records)?;
        // After a failed commit a new checkpoint is begun, whether or not the commit took effect.
        truncation.checkpoint.commit()?;
        self.checkpoint = Some(truncation.last_segment);
        self.segments.retain(|segment, _| *segment > truncation.last_segment);
        Ok(false)
    }

    fn begin_truncation(
        &mut self,
        head: &Head,
        before_ms: i64,
    ) -> error::Result<Option<Truncation>> {
        let droppable = self.segments.iter().take_while(|(_, newest_ms)| **newest_ms < before_ms);
        let Some(last_segment) = droppable.map(|(segment, _)| *segment).last() else {
            return Ok(None);
        };
        // A checkpoint can only be replaced by one that covers more segments.
        if self.checkpoint == Some(last_segment) {
            return Ok(None);
        }
        // Applied first: a checkpoint has no tombstones, which delete only rows before them.
        self.apply_deletions(head)?;
        if self.segments.keys().next_back() == Some(&last_segment) {
            // The checkpoint includes the segment being written, so a new segment begins.
            self.cut_in_order()?;
            self.restart_columns();
        }
        self.drop_earlier_refs(last_segment);
        let checkpoint = self.wal.checkpoint(last_segment)?;
        let slots = head.slots().collect::<Vec<_>>().into_iter();
        // Exemplars of later segments too, because the record of their series may be dropped.
        let exemplars = head.exemplars.scan(TimeRange::ALL);
        Ok(Some(Truncation { checkpoint, last_segment, slots, exemplars }))
    }
}
