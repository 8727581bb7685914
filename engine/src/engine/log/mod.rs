//! The head's side of the log: the records of a batch, their replay, and which segments must stay.
//!
//! The newest sample time of every segment is kept. When the head drops samples that a block holds,
//! the leading segments without a newer sample are replaced by a checkpoint with just the labels of
//! the living series, and the exemplars, which no block takes over. Samples are never copied, and
//! later segments stay as they are.
//!
//! Out-of-order samples have a log of their own, as upstream's do, so that replay can tell them
//! from in-order samples that a block holds already. Its segments are dropped once blocks hold all
//! samples.

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
    /// Number of samples that the head took.
    pub samples: u64,
    /// Number of records of unknown kinds, or that do not decode.
    pub skipped_records: u64,
}

/// The log, with the times that its segments hold.
pub struct Log {
    wal: Box<dyn Wal>,
    /// Newest sample time by segment of the in-order log.
    segments: BTreeMap<u32, i64>,
    /// Segment that may be a checkpoint: the first that was replayed, or the last committed one.
    checkpoint: Option<u32>,
    /// Newest sample time and last generation by segment of the out-of-order log.
    out_of_order_segments: BTreeMap<u32, (i64, u64)>,
    /// A segment ends once the log's newest sample time has moved on by this much since the segment
    /// began, so that it can be dropped early.
    segment_span_ms: i64,
    /// The segment being written, and the newest sample time of the log after its first batch.
    current: Option<(u32, i64)>,
    progress: ReplayProgress,
    deletions: Deletions,
    /// Present until the log has them.
    block_deletions: Option<BlockDeletions>,
    earlier_refs: EarlierRefs,
    truncation: Option<Truncation>,
    /// Present if floats are written by columns.
    columns: Option<Columns>,
    /// Used during a replay only.
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

    /// Writes a checked batch to the log. On an error nothing of it is written, except when only
    /// the second of the two logs fails: then its out-of-order rows may come back after a restart,
    /// although the sender was asked to retry. The out-of-order log comes first, because there the
    /// last of several samples of one time counts, while in-order rows without an answer would hide
    /// older rows of their series that come later. The labels of new series come before both, so
    /// that readers of the logs know the series of each out-of-order row.
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
        // Both before the rows are encoded: they decide what column records may build on.
        self.turn_columns_off(head.columns_go());
        self.restart_columns_of_new_segment();
        let mut is_chained = self.columns.as_ref().is_some_and(Columns::is_chained);
        let mut in_order = self.in_order_rows(head, batch);
        if self.ends_segment(in_order.newest_ms) {
            self.cut_in_order().inspect_err(|_| self.restart_columns())?;
            if is_chained {
                // The next segment must not build on one that may be dropped before it.
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
            // No record may build on one that the log does not have.
            let segment = appended.inspect_err(|_| self.restart_columns())?;
            self.note_columns(segment, in_order.newest_ms, is_chained);
            self.note(segment, in_order.newest_ms);
            self.note_current(segment);
        }
        // After a failed write the metadata stays unlogged, and goes with the next batch.
        head.metadata_is_logged();
        Ok(())
    }

    fn in_order_rows(&mut self, head: &Head, batch: &Batch) -> Rows {
        let mut in_order = Rows::of(head, batch, false, self.column_writer());
        in_order.add_exemplars(head, batch);
        in_order
    }

    /// Returns whether a batch up to this time belongs into a new segment. Only leading segments
    /// can be dropped, so a border helps only where the newest time of all rows before it moves on;
    /// older samples, however they are mixed with the newest, need none.
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

    /// Ends the segments being written if they have rows from before the plan of a cut of the whole
    /// head. Rows written during the cut would keep a whole segment otherwise, with all series that
    /// the cut drops: with churn, a replay would find the series of many cuts, which never were in
    /// the head together.
    pub fn end_segments_at_cut(&mut self, head: &Head) {
        // Without the border the log is longer, and no less complete, so errors are ignored.
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
            // In-order rows that wait in the head come before all of these.
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

    /// Ends the replay. Samples behind a cut are written to the out-of-order log: as soon as the
    /// cut's block is committed, the in-order log is no longer read for them.
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
        // An error is ignored: without space it is done before the next sample is written.
        let _ = self.log_block_deletions(head);
        Ok(())
    }

    /// Returns whether the whole record was understood.
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
                // A segment must be known to be dropped in its turn, also if it has no sample.
                self.note(segment, i64::MIN);
                understood
            }
            Ok(Record::Samples(rows)) if log == LogKind::InOrder => {
                // Most rows are floats, which need no `Value` each on this path.
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
                        // Kept from new series, which would get these rows at the next replay.
                        head.retire_ref(row.series_ref);
                        continue;
                    };
                    let (value, timestamp_ms) = (row.value, row.timestamp_ms);
                    head.replay_exemplar(slot, Exemplar { labels, value, timestamp_ms });
                }
                // The next checkpoint takes over all exemplars of this one.
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
            // The samples themselves are in the log too; the marks only help upstream, which keeps
            // copies of them in files of chunks.
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

    /// Returns whether all rows were understood.
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
                // Behind a damaged row it is not known where the next one begins.
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

    /// Drops leading segments of the out-of-order log that end before `before_ms` and `generation`.
    pub fn truncate_out_of_order(&mut self, before_ms: i64, generation: u64) -> StorageResult<()> {
        let is_done = |(newest_ms, last): &(i64, u64)| *newest_ms < before_ms && *last < generation;
        let droppable =
            self.out_of_order_segments.iter().take_while(|(_, segment)| is_done(segment));
        let Some(last_segment) = droppable.map(|(segment, _)| *segment).last() else {
            return Ok(());
        };
        let is_all = self.out_of_order_segments.keys().next_back() == Some(&last_segment);
        // If all go, the segment being written does too: the host may have repeated records in it.
        let last_segment =
            if is_all { self.wal.cut_segment(LogKind::OutOfOrder)? } else { last_segment };
        self.wal.truncate_out_of_order(last_segment)?;
        self.out_of_order_segments.retain(|segment, _| *segment > last_segment);
        Ok(())
    }

    /// Returns whether a truncation has begun that is not finished.
    pub fn is_truncating(&self) -> bool {
        self.truncation.is_some()
    }

    /// Drops leading segments that end before `before_ms`, in slices; returns whether work is left.
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
        // Numbers of dropped series must not be given again after a restart.
        records.push(retired_record(head.last_ref()));
        truncation.checkpoint.append(&records)?;
        // A failed commit is begun again, whether or not it took effect.
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
        // A checkpoint can only be replaced by a longer one.
        if self.checkpoint == Some(last_segment) {
            return Ok(None);
        }
        // Tombstones delete only rows before them; once they are applied, a checkpoint needs none.
        self.apply_deletions(head)?;
        if self.segments.keys().next_back() == Some(&last_segment) {
            // The segment being written is part of the checkpoint, so another one begins.
            self.cut_in_order()?;
            self.restart_columns();
        }
        self.drop_earlier_refs(last_segment);
        let checkpoint = self.wal.checkpoint(last_segment)?;
        let slots = head.slots().collect::<Vec<_>>().into_iter();
        // Also exemplars of later segments: the record of their series may be dropped.
        let exemplars = head.exemplars.scan(TimeRange::ALL);
        Ok(Some(Truncation { checkpoint, last_segment, slots, exemplars }))
    }
}
