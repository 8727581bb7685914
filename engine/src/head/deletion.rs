//! Deleting samples of the head.
//!
//! A deletion takes out what is stored at that moment: chunks are written anew without it. What is
//! written later counts, wherever it lies in time; a sample that was deleted can be sent again.
//! That is how blocks behave too, whose tombstones say nothing of what the head holds.
//!
//! The log gets a record of tombstones before anything is taken out. In the ordered log a
//! tombstone deletes what stands before it, so that replay ends where the head was. The log of
//! late samples has no place for tombstones that others would heed; it is written anew instead
//! (`engine/log.rs`). Upstream's own tombstones hide late samples whenever they come; so do those
//! that it left in the log, for what was in its log of late samples then.

use super::postings::HeadIndex;
use super::work::{TooMuchWork, WorkLeft};
use super::{Head, Slot};
use crate::chunk::ChunkError;
use crate::index::select_any;
use crate::model::{Matcher, TimeRange, Value};

/// A span of time to be deleted from a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeletedSpan {
    /// The series.
    pub slot: Slot,
    /// Both ends included.
    pub range: TimeRange,
}

impl Head {
    /// What the deletion of a range would take out: for each series that any of the selectors
    /// selects and that may have samples there, the range up to its newest sample. The range's
    /// start stays as it is, since the log may still hold older samples than the head.
    pub fn spans_to_delete(
        &self,
        selectors: &[Vec<Matcher>],
        range: TimeRange,
    ) -> Result<Vec<DeletedSpan>, TooMuchWork> {
        // Nobody asks for a deletion who may not hold writes up.
        let index = HeadIndex { work: WorkLeft::unbounded(), ..self.index() };
        let slots = select_any(&index, selectors)?;
        let span = |slot: Slot| {
            let series = self.at(slot);
            let end_ms = range.end_ms.min(series.max_time_ms()?);
            let range = TimeRange { end_ms, ..range };
            series.touches(range).then_some(DeletedSpan { slot, range })
        };
        Ok(slots.into_iter().filter_map(span).collect())
    }

    /// Takes samples out, once the log knows.
    pub fn delete(&mut self, spans: &[DeletedSpan]) -> Result<(), ChunkError> {
        for DeletedSpan { slot, range } in spans {
            self.delete_ordered(*slot, *range)?;
            self.at_mut(*slot).delete_late(*range)?;
        }
        self.find_times();
        self.deletion_mark = self.deletion_mark.wrapping_add(1);
        Ok(())
    }

    /// Takes samples out that came in order, as a tombstone says that the log holds.
    pub fn replay_deletion(&mut self, slot: Slot, range: TimeRange) -> Result<(), ChunkError> {
        self.settle_replay();
        self.times_are_stale = true;
        self.deletion_mark = self.deletion_mark.wrapping_add(1);
        self.delete_ordered(slot, range)
    }

    fn delete_ordered(&mut self, slot: Slot, range: TimeRange) -> Result<(), ChunkError> {
        let series = self.at_mut(slot);
        let before = series.chunk_count();
        let deleted = series.delete_ordered(range);
        let after = series.chunk_count();
        self.chunk_count = self.chunk_count + after - before;
        deleted
    }

    /// Takes back from the log that ordered samples before this time are in blocks, or were deleted
    /// with them.
    pub fn replay_floor(&mut self, floor_ms: i64) -> Result<(), ChunkError> {
        let Some(end_ms) = floor_ms.checked_sub(1) else { return Ok(()) };
        self.settle_replay();
        self.deletion_mark = self.deletion_mark.wrapping_add(1);
        let slots: Vec<Slot> = self.slots().collect();
        for slot in slots {
            self.delete_ordered(slot, TimeRange { start_ms: i64::MIN, end_ms })?;
        }
        self.min_valid_ms = self.min_valid_ms.max(floor_ms);
        self.stored_until_ms = self.stored_until_ms.max(floor_ms);
        Ok(())
    }

    /// Ordered samples before this time are in committed blocks, or in nothing at all. A cut that
    /// is planned has no block before it is forgotten, nor have those that were done while the log
    /// is read.
    pub fn floor_ms(&self) -> i64 {
        if self.replay.is_some() {
            return self.stored_until_ms;
        }
        self.planned.map_or(self.min_valid_ms, |planned| planned.floor_ms)
    }

    /// Another number after each deletion, and in each life of a head.
    pub fn deletion_mark(&self) -> u64 {
        self.deletion_mark
    }

    /// The late samples of a series, by time.
    pub fn late_values(
        &self,
        slot: Slot,
    ) -> Result<impl Iterator<Item = (i64, Value)>, ChunkError> {
        Ok(self.at(slot).late_values()?.into_iter())
    }

    /// The times of the oldest and the newest samples, after some were taken out. What was deleted
    /// does not make new samples late: a replay would not know of it for long.
    pub(super) fn find_times(&mut self) {
        let (mut min_time_ms, mut late_min_time_ms, mut max_time_ms) =
            (i64::MAX, i64::MAX, i64::MIN);
        for slot in self.slots() {
            let series = self.at(slot);
            min_time_ms = min_time_ms.min(series.min_time_ms().unwrap_or(i64::MAX));
            late_min_time_ms = late_min_time_ms.min(series.late_min_time_ms().unwrap_or(i64::MAX));
            max_time_ms = max_time_ms.max(series.max_time_ms().unwrap_or(i64::MIN));
        }
        (self.min_time_ms, self.late_min_time_ms) = (min_time_ms, late_min_time_ms);
        self.max_time_ms = max_time_ms;
        self.times_are_stale = false;
    }
}
