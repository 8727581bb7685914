//! Deletes samples of the head.
//!
//! A deletion removes the samples that are stored at that moment: chunks are rewritten without
//! them. Samples written later are kept, even in the deleted range, so a deleted sample can be sent
//! again. Tombstones of blocks behave alike: they do not affect samples of the head.
//!
//! A record of tombstones is logged before anything is removed. In the in-order log a tombstone
//! deletes the samples logged before it, so that a replay restores the same state. Prometheus
//! ignores tombstones in the out-of-order log, so that log is rewritten instead (`engine/log`).
//! Prometheus' own tombstones hide out-of-order samples whenever these arrive. Tombstones that
//! Prometheus left in the log hide the samples of its out-of-order log.

use super::series_table::SeriesTable;
use super::slab::SlabIndex as _;
use super::window::HeldTimes;
use super::{HeadCursor, Slot};
use crate::model::TimeRange;

/// Number of series from which one slice deletes.
const DELETED_PER_SLICE: usize = if cfg!(test) { 2 } else { 256 };

/// Slots that one slice searches for the oldest and newest samples.
const TIMES_PER_SLICE: u32 = 8 * 1024;

/// A range to be deleted from a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeletedSpan {
    /// Slot of the series concerned.
    pub slot: Slot,
    /// Range to delete, both ends included.
    pub range: TimeRange,
}

/// Search, a slice at a time, for the times of the oldest and newest samples after a deletion.
/// Samples that arrive during the search are included.
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
        // By slot number, since series may be added and dropped between two slices.
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

/// Returns the ranges that a deletion removes from the next series of a cursor. For each series
/// that may have samples in `range`, the result ends with the newest sample at the latest. Its
/// start is that of `range`, since the log may still have older samples than the head.
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
