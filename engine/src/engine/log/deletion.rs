//! Deletions in the log.
//!
//! ```text
//! in-order log:      … samples … │ tombstones │                                │ applied │ …
//! out-of-order log:                           │ all out-of-order samples again │
//! ```
//!
//! A tombstone deletes the rows before it in the in-order log. Until a deletions-applied record
//! follows, the tombstone also hides its series and range in the whole out-of-order log, as in
//! Prometheus; a crash half way leaves this state. To apply deletions, the out-of-order log is
//! rewritten from the head, which no longer holds the deleted samples, and its old segments are
//! dropped. The rewrite also removes samples that are in blocks and were deleted there: the head
//! has dropped these samples, and perhaps the series that a tombstone would have to name.
//!
//! Tombstones that Prometheus left are applied before the first out-of-order sample is written.

use super::{Log, Rows, Slot};
use crate::error::{Error, Result};
use crate::head::{DeletedSpan, Head};
use crate::model::{TimeRange, Value};
use crate::storage::{LogKind, StorageResult};
use crate::wal::{RecordError, TombstoneRecord, deletions_applied_record, tombstones_record};
use rustc_hash::FxHashMap;

/// Number of tombstones in one record.
pub(super) const TOMBSTONES_PER_RECORD: usize = 10_000;

/// Number of out-of-order samples per write, exceeded by the samples of one series at most.
const OUT_OF_ORDER_SAMPLES_PER_APPEND: usize = 10_000;

/// The state of deletions in the log.
#[derive(Default)]
pub(super) struct Deletions {
    /// During replay: ranges of tombstones that are not applied, by series.
    pub(super) hidden: FxHashMap<Slot, Vec<Hidden>>,
    /// Whether no deletions-applied record was written since the last deletion.
    pub(super) unapplied: bool,
    /// Whether the out-of-order log may hold deleted samples.
    pub(super) out_of_order_is_stale: bool,
}

/// Range that a tombstone hides in the out-of-order log, under any number of its series.
pub(super) struct Hidden {
    range: TimeRange,
    /// Largest series number before the tombstone; rows with a larger number were written later.
    last_ref: u64,
}

impl Log {
    /// Writes the tombstones of a deletion that is about to happen.
    pub fn append_deletion(
        &mut self,
        head: &Head,
        spans: &[DeletedSpan],
        range: TimeRange,
    ) -> StorageResult<()> {
        let mut records = Vec::with_capacity(spans.len().div_ceil(TOMBSTONES_PER_RECORD));
        for spans in spans.chunks(TOMBSTONES_PER_RECORD) {
            records.push(tombstones_record(spans.iter().map(|DeletedSpan { slot, range }| {
                TombstoneRecord { series_ref: head.series_ref(*slot), range: *range }
            })));
        }
        // Set before the write, because a failed write may leave some records behind.
        self.deletions.unapplied = true;
        let is_touched = |(newest_ms, _): &(i64, u64)| *newest_ms >= range.start_ms;
        self.deletions.out_of_order_is_stale |= self.out_of_order_segments.values().any(is_touched);
        if !records.is_empty() {
            let segment = self.wal.append(LogKind::InOrder, &records)?;
            let end_ms = spans.iter().map(|span| span.range.end_ms).max();
            self.note(segment, end_ms.unwrap_or(i64::MIN));
        }
        Ok(())
    }

    /// Makes sure that the out-of-order log holds no deleted sample. After an error, the next write
    /// of an out-of-order sample tries again.
    pub fn apply_deletions(&mut self, head: &Head) -> Result<()> {
        if !self.deletions.unapplied {
            return Ok(());
        }
        if self.deletions.out_of_order_is_stale && !self.out_of_order_segments.is_empty() {
            self.rewrite_out_of_order(head)?;
        }
        let segment =
            self.wal.append(LogKind::InOrder, &[deletions_applied_record(head.floor_ms())])?;
        self.note(segment, i64::MIN);
        self.deletions = Deletions::default();
        Ok(())
    }

    /// Replaces the out-of-order log by the head's out-of-order samples.
    pub(super) fn rewrite_out_of_order(&mut self, head: &Head) -> Result<()> {
        let last_segment = self.wal.cut_segment(LogKind::OutOfOrder)?;
        let mut rows: Vec<(u64, i64, Value)> = Vec::new();
        for slot in head.slots().collect::<Vec<Slot>>() {
            let series_ref = head.series_ref(slot);
            let values = head.out_of_order_values(slot).map_err(|source| Error::Chunk {
                series: head.packed_labels(slot).to_string(),
                source,
            })?;
            rows.extend(values.map(|(timestamp_ms, value)| (series_ref, timestamp_ms, value)));
            if rows.len() >= OUT_OF_ORDER_SAMPLES_PER_APPEND {
                self.append_out_of_order(head, std::mem::take(&mut rows))?;
            }
        }
        self.append_out_of_order(head, rows)?;
        // Ending the new segment syncs it, before the only other copy is dropped.
        self.wal.cut_segment(LogKind::OutOfOrder)?;
        self.wal.truncate_out_of_order(last_segment)?;
        self.out_of_order_segments.retain(|segment, _| *segment > last_segment);
        Ok(())
    }

    fn append_out_of_order(
        &mut self,
        head: &Head,
        rows: Vec<(u64, i64, Value)>,
    ) -> StorageResult<()> {
        let rows = Rows::of_values(rows.into_iter(), None);
        if !rows.records.is_empty() {
            let segment = self.wal.append(LogKind::OutOfOrder, &rows.records)?;
            self.note_out_of_order(segment, rows.newest_ms, head.generation());
        }
        Ok(())
    }

    /// Replays tombstones; returns whether all were understood.
    pub(super) fn replay_tombstones(
        &mut self,
        head: &mut Head,
        segment: u32,
        rows: impl Iterator<Item = std::result::Result<TombstoneRecord, RecordError>>,
    ) -> bool {
        for row in rows {
            let Ok(TombstoneRecord { series_ref, range }) = row else { return false };
            self.note(segment, range.end_ms);
            self.deletions.unapplied = true;
            self.deletions.out_of_order_is_stale = true;
            // The number must not be assigned again, even if the series was dropped.
            head.retire_ref(series_ref);
            let Some(slot) = head.replayed(series_ref) else { continue };
            let hidden = Hidden { range, last_ref: head.last_ref() };
            self.deletions.hidden.entry(slot).or_default().push(hidden);
            if head.replay_deletion(slot, range).is_err() {
                return false;
            }
        }
        true
    }

    /// Replays a deletions-applied record, which covers all deletions before it.
    pub(super) fn replay_deletions_applied(
        &mut self,
        head: &mut Head,
        segment: u32,
        floor_ms: i64,
    ) -> bool {
        self.note(segment, i64::MIN);
        self.deletions = Deletions::default();
        head.replay_floor(floor_ms).is_ok()
    }

    /// Frees the hidden ranges: all samples of the out-of-order log are replayed or skipped.
    pub(super) fn end_replay_of_deletions(&mut self) {
        self.deletions.hidden = FxHashMap::default();
    }

    /// Returns whether an out-of-order sample of the log was deleted.
    pub(super) fn hides(&self, slot: Slot, series_ref: u64, timestamp_ms: i64) -> bool {
        let hides = |it: &Hidden| series_ref <= it.last_ref && it.range.contains(timestamp_ms);
        self.deletions.hidden.get(&slot).is_some_and(|hidden| hidden.iter().any(hides))
    }
}
