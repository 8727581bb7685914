//! Deletes samples of the head.
//!
//! A deletion removes what is stored at that moment: chunks are rewritten without it. Samples that
//! are written later count, wherever they lie in time; a deleted sample can be sent again. Blocks
//! behave likewise: their tombstones do not concern what the head holds.
//!
//! The log gets a record of tombstones before anything is removed. In the in-order log a tombstone
//! deletes what precedes it, so that replay ends where the head was. The out-of-order log has no
//! place for tombstones that others would respect; it is rewritten instead (`engine/log`).
//! Upstream's own tombstones hide out-of-order samples whenever they come; so do those that it left
//! in the log, for what was in its out-of-order log then.

use super::series_table::SeriesTable;
use super::slab::SlabIndex as _;
use super::window::HeldTimes;
use super::{HeadCursor, Slot};
use crate::model::TimeRange;

/// Number of series from which one slice deletes.
const DELETED_PER_SLICE: usize = if cfg!(test) { 2 } else { 256 };

/// Places of the table of series that one slice searches for the oldest and newest samples.
const TIMES_PER_SLICE: u32 = 8 * 1024;

/// A range to be deleted from a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeletedSpan {
    /// Slot of the series concerned.
    pub slot: Slot,
    /// Range to delete, both ends included.
    pub range: TimeRange,
}

/// Search for the times of the oldest and newest samples after some were removed, a slice at a
/// time. Samples that come meanwhile are counted.
pub(super) struct TimesScan {
    next: u32,
    held: HeldTimes,
}

impl TimesScan {
    pub(super) fn new() -> TimesScan {
        TimesScan { next: 0, held: HeldTimes::NONE }
    }

    pub(super) fn add(&mut self, timestamp_ms: i64, is_out_of_order: bool) {
        match is_out_of_order {
            true => self.held.add_out_of_order(timestamp_ms),
            false => self.held.add_in_order(timestamp_ms),
        }
    }

    /// Does a slice; returns the times once all series were visited.
    pub(super) fn step(&mut self, table: &SeriesTable) -> Option<HeldTimes> {
        // By number, since series may come and go between two slices.
        let end = table.places().place_count();
        let to = end.min(self.next.saturating_add(TIMES_PER_SLICE));
        for place in self.next..to {
            let Some(series) = table.get(Slot::of(place)) else { continue };
            self.held.add_all_of(series);
        }
        self.next = to;
        (to >= end).then_some(self.held)
    }

    pub(super) fn all(table: &SeriesTable) -> HeldTimes {
        let mut scan = TimesScan::new();
        loop {
            if let Some(held) = scan.step(table) {
                return held;
            }
        }
    }
}

/// Returns what the deletion of a range removes from the next series of a cursor: for each that may
/// have samples there, the range up to its newest sample. The range's start is kept, since the log
/// may still hold older samples than the head.
pub(super) fn next_spans(
    table: &SeriesTable,
    cursor: &mut HeadCursor,
    range: TimeRange,
) -> Vec<DeletedSpan> {
    let span = |slot: &Slot| {
        let series = table.at(*slot);
        let end_ms = range.end_ms.min(series.max_time_ms()?);
        let range = TimeRange { end_ms, ..range };
        series.touches(range).then_some(DeletedSpan { slot: *slot, range })
    };
    cursor.next_slots(DELETED_PER_SLICE).iter().filter_map(span).collect()
}
