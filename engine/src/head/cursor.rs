//! A position in the head's answer to a selection.

use super::postings::HeadIndex;
use super::work::{TooMuchWork, WorkLeft};
use super::{Head, Slot};
use crate::chunk::{Chunk, ChunkError};
use crate::index::{select, select_any};
use crate::model::{Labels, Matcher, MatcherSets, OrderGroup, TimeRange, with_others};
use std::cell::Cell;
use std::rc::Rc;

/// Of the memory that a head may use, the part that open cursors may take.
const CURSORS_PER_MEMORY: u64 = 8;

/// Walks over selected series in label order, as often as it is wanted, and sees what was there
/// when it was opened. While it lives, the head forgets nothing, so the slots it holds stay valid.
pub struct HeadCursor {
    slots: Vec<Slot>,
    /// Time of the newest ordered sample of each series; nothing where chunks are not asked for.
    newest_ms: Vec<i64>,
    /// How many series were given.
    given: usize,
    range: TimeRange,
    moment: u64,
    /// Labels that the series are given besides their own.
    external: Labels,
    _open: OpenCursor,
}

/// A series as a cursor gives it.
pub struct HeadSeries {
    /// Its labels, the external ones included.
    pub labels: Labels,
    /// Its chunks, the ordered ones in time order.
    pub chunks: Vec<Chunk>,
    /// Whether chunks may overlap.
    pub may_overlap: bool,
}

/// What a cursor may see of one series.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    /// Ordered samples up to this time.
    pub newest_ms: i64,
    /// Late samples that came before this moment.
    pub moment: u64,
}

/// The cursors that are open on a head.
#[derive(Default)]
pub(super) struct OpenCursors {
    count: Cell<u64>,
    /// Memory that they take.
    bytes: Cell<u64>,
}

/// Counts as an open cursor of its head until it is dropped.
pub(super) struct OpenCursor {
    all: Rc<OpenCursors>,
    bytes: u64,
}

impl HeadCursor {
    /// Begins anew.
    pub fn rewind(&mut self) {
        self.given = 0;
    }

    fn next_slot(&mut self) -> Option<(Slot, i64)> {
        let slot = *self.slots.get(self.given)?;
        let newest_ms = self.newest_ms.get(self.given).copied().unwrap_or(i64::MAX);
        self.given += 1;
        Some((slot, newest_ms))
    }
}

impl Head {
    /// Selects series, which get external labels; those without samples in the range are left out
    /// as the cursor meets them.
    pub fn select(
        &mut self,
        matchers: &[Matcher],
        range: TimeRange,
        external: &Labels,
    ) -> Result<HeadCursor, TooMuchWork> {
        self.postings.sort();
        let slots = match self.touches(range) {
            true => select(&self.index(), matchers)?,
            false => Vec::new(),
        };
        self.moment += 1;
        let newest = |slot: &Slot| self.at(*slot).newest_ms().unwrap_or(i64::MIN);
        let slots = self.in_order(slots, external);
        let newest_ms = slots.iter().map(newest).collect();
        Ok(self.cursor(slots, newest_ms, range, external.clone()))
    }

    /// Selects series by one of several sets.
    pub fn select_any(
        &mut self,
        sets: &MatcherSets,
        range: TimeRange,
    ) -> Result<HeadCursor, TooMuchWork> {
        self.postings.sort();
        let slots = match self.touches(range) {
            true => select_any(&self.index(), sets.sets())?,
            false => Vec::new(),
        };
        let none = Labels::default();
        let slots = self.in_order(slots, &none);
        Ok(self.cursor(slots, Vec::new(), range, none))
    }

    fn cursor(
        &self,
        slots: Vec<Slot>,
        newest_ms: Vec<i64>,
        range: TimeRange,
        external: Labels,
    ) -> HeadCursor {
        // Later samples than those of this moment are not part of the answer.
        let range = TimeRange { end_ms: range.end_ms.min(self.newest_ms()), ..range };
        let bytes = size_of_val(slots.as_slice()) + size_of_val(newest_ms.as_slice());
        let _open = OpenCursor::new(self, bytes as u64);
        HeadCursor { slots, newest_ms, given: 0, range, moment: self.moment, external, _open }
    }

    /// Series in the order of the labels that they have with the external ones.
    fn in_order(&self, mut slots: Vec<Slot>, external: &Labels) -> Vec<Slot> {
        self.index().sort_by_labels(&mut slots);
        if external.is_empty() {
            return slots;
        }
        let in_group = |(rank, slot): (usize, Slot)| {
            (OrderGroup::of(self.labels(slot).1, external), rank, slot)
        };
        let mut grouped: Vec<_> = slots.into_iter().enumerate().map(in_group).collect();
        let merged = |slot: Slot| with_others(self.labels(slot).1, external);
        grouped.sort_by(|(group_a, rank_a, a), (group_b, rank_b, b)| match group_a == group_b {
            true => rank_a.cmp(rank_b),
            // What stores a label has the word before what is only given it.
            false => merged(*a).cmp(merged(*b)).then_with(|| group_b.cmp(group_a)),
        });
        grouped.into_iter().map(|(_, _, slot)| slot).collect()
    }

    /// Whether open cursors take more memory than they may.
    pub fn has_too_many_cursors(&self) -> bool {
        let max = self.memory_bytes_max() / CURSORS_PER_MEMORY;
        max > 0 && self.open_cursors.bytes.get() > max
    }

    /// Whether the head may hold samples of the range.
    pub(super) fn touches(&self, range: TimeRange) -> bool {
        let start_ms = self.min_time_ms.min(self.late_min_time_ms);
        let held = TimeRange { start_ms, end_ms: self.newest_ms() };
        range.start_ms <= range.end_ms && range.overlaps(&held)
    }

    /// The index, for one question.
    pub(super) fn index(&self) -> HeadIndex<'_> {
        let Head { postings, symbols, series, .. } = self;
        HeadIndex { postings, symbols, series, work: WorkLeft::of_a_read() }
    }

    /// The next series with chunks that share some time with the range.
    pub fn next(
        &self,
        cursor: &mut HeadCursor,
    ) -> Result<Option<HeadSeries>, (Labels, ChunkError)> {
        let moment = cursor.moment;
        while let Some((slot, newest_ms)) = cursor.next_slot() {
            let series = self.at(slot);
            let chunks = series.chunks(cursor.range, Seen { newest_ms, moment });
            let chunks = chunks.map_err(|error| (self.packed_labels(slot), error))?;
            if !chunks.is_empty() {
                let labels = with_others(self.labels(slot).1, &cursor.external);
                let (labels, may_overlap) = (Labels::from_sorted(labels), series.has_late());
                return Ok(Some(HeadSeries { labels, chunks, may_overlap }));
            }
        }
        Ok(None)
    }

    /// The labels of the next series with chunks that share some time with the range.
    pub fn next_labels(&self, cursor: &mut HeadCursor) -> Option<Labels> {
        while let Some((slot, _)) = cursor.next_slot() {
            if self.at(slot).touches(cursor.range) {
                return Some(self.packed_labels(slot));
            }
        }
        None
    }
}

impl OpenCursors {
    pub(super) fn count(&self) -> u64 {
        self.count.get()
    }
}

impl OpenCursor {
    /// Counts one that takes so much memory.
    pub(super) fn new(head: &Head, bytes: u64) -> OpenCursor {
        let all = Rc::clone(&head.open_cursors);
        all.count.set(all.count.get() + 1);
        all.bytes.set(all.bytes.get() + bytes);
        OpenCursor { all, bytes }
    }
}

impl Drop for OpenCursor {
    fn drop(&mut self) {
        self.all.count.set(self.all.count.get() - 1);
        self.all.bytes.set(self.all.bytes.get() - self.bytes);
    }
}
