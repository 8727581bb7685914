//! Deleting samples of the head.
//!
//! A deletion takes out what is stored at that moment: chunks are written anew without it. What is
//! written later counts, wherever it lies in time; a sample that was deleted can be sent again.
//! That is how blocks behave too, whose tombstones say nothing of what the head holds.
//!
//! The log gets a record of tombstones before anything is taken out. In the in-order log a
//! tombstone deletes what stands before it, so that replay ends where the head was. The log of
//! out-of-order samples has no place for tombstones that others would heed; it is written anew instead
//! (`engine/log.rs`). Upstream's own tombstones hide out-of-order samples whenever they come; so do
//! those that it left in the log, for what was in its out-of-order log then.

use super::slab::Place as _;
use super::{Head, HeadCursor, Slot};
use crate::chunk::ChunkError;
use crate::model::{TimeRange, Value};

/// Series from which one slice deletes.
const DELETED_PER_SLICE: usize = if cfg!(test) { 2 } else { 256 };

/// Places of the table of series in which one slice looks for the oldest and newest samples.
const TIMES_PER_SLICE: u32 = 8 * 1024;

/// A span of time to be deleted from a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeletedSpan {
    /// The series.
    pub slot: Slot,
    /// Both ends included.
    pub range: TimeRange,
}

/// The times of the oldest and newest samples, being found a slice at a time after some were taken
/// out. Samples that come meanwhile count as well.
pub(super) struct TimesScan {
    /// Place in the table of series.
    next: u32,
    min_time_ms: i64,
    out_of_order_min_time_ms: i64,
    max_time_ms: i64,
}

impl TimesScan {
    fn new() -> TimesScan {
        TimesScan {
            next: 0,
            min_time_ms: i64::MAX,
            out_of_order_min_time_ms: i64::MAX,
            max_time_ms: i64::MIN,
        }
    }

    /// A sample came.
    pub(super) fn add(&mut self, timestamp_ms: i64, is_out_of_order: bool) {
        let oldest_ms = if is_out_of_order {
            &mut self.out_of_order_min_time_ms
        } else {
            &mut self.min_time_ms
        };
        *oldest_ms = (*oldest_ms).min(timestamp_ms);
        self.max_time_ms = self.max_time_ms.max(timestamp_ms);
    }
}

impl Head {
    /// What the deletion of a range takes out of the next series of a cursor: for each that may
    /// have samples there, the range up to its newest sample. The range's start stays as it is,
    /// since the log may still hold older samples than the head.
    pub fn spans_to_delete(&self, cursor: &mut HeadCursor, range: TimeRange) -> Vec<DeletedSpan> {
        let span = |slot: &Slot| {
            let series = self.at(*slot);
            let end_ms = range.end_ms.min(series.max_time_ms()?);
            let range = TimeRange { end_ms, ..range };
            series.touches(range).then_some(DeletedSpan { slot: *slot, range })
        };
        cursor.next_slots(DELETED_PER_SLICE).iter().filter_map(span).collect()
    }

    /// Takes samples out, once the log knows. [`Head::find_times_again`] follows the last of several
    /// such calls.
    pub fn delete(&mut self, spans: &[DeletedSpan]) -> Result<(), ChunkError> {
        for DeletedSpan { slot, range } in spans {
            self.delete_in_order(*slot, *range)?;
            self.at_mut(*slot).delete_out_of_order(*range)?;
        }
        self.times_scan = Some(Box::new(TimesScan::new()));
        self.is_observed = true;
        self.deletion_mark = self.deletion_mark.wrapping_add(1);
        Ok(())
    }

    /// Does a slice of finding the times of the oldest and the newest samples after a deletion; gives
    /// whether some is left to do. What was deleted does not make new samples out-of-order: a
    /// replay would not know of it for long.
    pub fn find_times_again(&mut self) -> bool {
        let Some(mut scan) = self.times_scan.take() else { return false };
        let end = self.series.place_count();
        let to = end.min(scan.next.saturating_add(TIMES_PER_SLICE));
        for place in scan.next..to {
            let Some(series) = self.series.get(Slot::of(place)) else { continue };
            let max_time_ms = series.max_time_ms().unwrap_or(i64::MIN);
            scan.min_time_ms = scan.min_time_ms.min(series.min_time_ms().unwrap_or(i64::MAX));
            scan.out_of_order_min_time_ms = scan
                .out_of_order_min_time_ms
                .min(series.out_of_order_min_time_ms().unwrap_or(i64::MAX));
            scan.max_time_ms = scan.max_time_ms.max(max_time_ms);
        }
        scan.next = to;
        let is_done = to >= end;
        if is_done {
            self.min_time_ms = scan.min_time_ms;
            self.out_of_order_min_time_ms = scan.out_of_order_min_time_ms;
            self.max_time_ms = scan.max_time_ms;
            self.times_are_stale = false;
        } else {
            self.times_scan = Some(scan);
        }
        !is_done
    }

    /// Takes samples out that came in order, as a tombstone says that the log holds.
    pub fn replay_deletion(&mut self, slot: Slot, range: TimeRange) -> Result<(), ChunkError> {
        self.settle_replay();
        self.times_are_stale = true;
        self.deletion_mark = self.deletion_mark.wrapping_add(1);
        self.delete_in_order(slot, range)
    }

    fn delete_in_order(&mut self, slot: Slot, range: TimeRange) -> Result<(), ChunkError> {
        let series = self.at_mut(slot);
        let before = series.chunk_count();
        let deleted = series.delete_in_order(range);
        let after = series.chunk_count();
        self.chunk_count = self.chunk_count + after - before;
        deleted
    }

    /// Takes back from the log that in-order samples before this time are in blocks, or were deleted
    /// with them.
    pub fn replay_floor(&mut self, floor_ms: i64) -> Result<(), ChunkError> {
        let Some(end_ms) = floor_ms.checked_sub(1) else { return Ok(()) };
        self.settle_replay();
        self.deletion_mark = self.deletion_mark.wrapping_add(1);
        let slots: Vec<Slot> = self.slots().collect();
        for slot in slots {
            self.delete_in_order(slot, TimeRange { start_ms: i64::MIN, end_ms })?;
        }
        self.min_valid_ms = self.min_valid_ms.max(floor_ms);
        self.stored_until_ms = self.stored_until_ms.max(floor_ms);
        Ok(())
    }

    /// In-order samples before this time are in committed blocks, or in nothing at all. A cut that
    /// is planned has no block before it is truncated, nor have those that were done while the log
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

    /// The out-of-order samples of a series, by time.
    pub fn out_of_order_values(
        &self,
        slot: Slot,
    ) -> Result<impl Iterator<Item = (i64, Value)>, ChunkError> {
        Ok(self.at(slot).out_of_order_values()?.into_iter())
    }

    /// The times of the oldest and the newest samples, found at once.
    pub(super) fn find_times(&mut self) {
        self.times_scan = Some(Box::new(TimesScan::new()));
        while self.find_times_again() {}
    }
}
