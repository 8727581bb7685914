//! A position in the head's answer to a selection.
//!
//! A cursor shows the head as it was when it was opened, and each call does a slice of work:
//!
//! ```text
//! open ──▶ prepare, a slice at a time: the newest sample of each series ──▶ return series
//!                                                                            │ labels, keep
//!                                                    rewind: those kept  ◀───┘
//! ```
//!
//! While a cursor is prepared, its [`Watch`] notes arriving samples, so that the newest sample
//! found for each series is that from when the cursor was opened, its *epoch*.

mod newest;
mod open;
mod order;
mod watch;

use newest::Newest;
pub(super) use open::OpenCursors;
use order::Sequence;
pub(super) use watch::{Watch, Watches};

use super::Slot;
use super::observers::Observers;
use super::series_table::SeriesTable;
use crate::chunk::{Chunk, ChunkError};
use crate::model::{Labels, TimeRange, with_others};
pub(super) use open::OpenCursor;
use std::rc::Rc;

/// Series whose newest sample is looked up in one slice.
const PREPARED_PER_SLICE: usize = if cfg!(test) { 4 } else { 4 * 1024 };

/// Series that one slice skips without returning any.
const PASSED_PER_SLICE: usize = if cfg!(test) { 3 } else { 4 * 1024 };

/// Iterates over selected series in label order, any number of times. Sees the samples that the
/// head had when the cursor was opened. While a cursor exists, the head truncates nothing, so the
/// slots of the cursor stay valid.
pub struct HeadCursor {
    /// Selected series in label order.
    slots: Vec<Slot>,
    /// Time of the newest in-order sample of each prepared series, as of the epoch.
    newest: Newest,
    sequence: Sequence,
    range: TimeRange,
    epoch: u64,
    /// Labels added to those of the series.
    external: Labels,
    /// Present until all series are prepared.
    watch: Option<Rc<Watch>>,
    /// Indices into `slots` of the series of the last page of labels.
    page: Vec<u32>,
    /// Indices into `slots` of the series to return after the next rewind, in this order.
    kept: Option<Vec<u32>>,
    _open: OpenCursor,
}

/// Result of a slice of a cursor's work.
pub enum Slice<T> {
    /// The next item of the cursor.
    Next(T),
    /// Nothing yet: the next call continues.
    Again,
    /// All items have been returned.
    End,
}

/// A series as a cursor returns it.
pub struct HeadSeries {
    /// Labels of the series, the external ones included.
    pub labels: Labels,
    /// Chunks of the series, the in-order ones in time order.
    pub chunks: Vec<Chunk>,
    /// Whether chunks may overlap each other.
    pub may_overlap: bool,
}

/// Bounds on the samples of one series that a cursor may see.
#[derive(Clone, Copy, Debug)]
pub(super) struct Visibility {
    /// In-order samples up to this time are visible.
    pub newest_ms: i64,
    /// Out-of-order samples that arrived before this epoch are visible.
    pub epoch: u64,
}

impl HeadCursor {
    /// Starts over; after [`HeadCursor::keep`] was called, with the kept series only.
    pub fn rewind(&mut self) {
        self.page.clear();
        match self.kept.take() {
            None => self.sequence.rewind(),
            Some(kept) => {
                self.slots = kept.iter().map(|at| self.slots[*at as usize]).collect();
                self.newest = self.newest.only(&kept);
                // The kept series are in their final order, so no groups are needed.
                self.sequence = Sequence::default();
            }
        }
    }

    /// Selects series to return after the next rewind, by ascending positions in the last page of
    /// labels. Returns whether all positions are valid.
    pub fn keep(&mut self, positions: &[u32]) -> bool {
        let kept = self.kept.get_or_insert_default();
        for position in positions {
            let Some(at) = self.page.get(*position as usize) else { return false };
            // A position given twice would return its series twice.
            if kept.last().is_some_and(|last| last == at) {
                return false;
            }
            kept.push(*at);
        }
        true
    }

    /// Begins the next page of labels.
    pub fn begin_page(&mut self) {
        self.page.clear();
    }

    /// Returns at most `count_max` further series, for a cursor without external labels.
    pub(super) fn next_slots(&mut self, count_max: usize) -> &[Slot] {
        let from = self.sequence.skip(self.slots.len(), count_max);
        &self.slots[from]
    }

    /// Returns whether all series were returned.
    pub fn is_at_end(&self) -> bool {
        self.sequence.given() >= self.slots.len()
    }
}

impl HeadCursor {
    /// Opens a cursor over series in label order. `newest_ms` is the newest time in the head; the
    /// range ends at this time or before.
    pub(super) fn open(
        slots: Vec<Slot>,
        range: TimeRange,
        external: &Labels,
        newest_ms: i64,
        table: &SeriesTable,
        observers: &mut Observers,
    ) -> HeadCursor {
        let bytes = slots.len() * (size_of::<Slot>() + size_of::<u32>());
        let epoch = observers.next_epoch();
        let mut cursor = HeadCursor {
            newest: Newest::new(newest_ms, slots.len()),
            sequence: Sequence::new(external),
            range,
            epoch,
            external: external.clone(),
            watch: None,
            page: Vec::new(),
            kept: None,
            _open: observers.open_at(bytes as u64, epoch),
            slots,
        };
        // A small selection is prepared at once and needs no watch.
        cursor.prepare_some(table);
        if !cursor.is_prepared() {
            cursor.watch = Some(observers.watch(&cursor.slots));
        }
        cursor
    }

    fn is_prepared(&self) -> bool {
        self.newest.len() == self.slots.len()
    }

    /// Looks up the newest samples of the next [`PREPARED_PER_SLICE`] series.
    fn prepare_some(&mut self, table: &SeriesTable) {
        let from = self.newest.len();
        let to = self.slots.len().min(from + PREPARED_PER_SLICE);
        for at in from..to {
            let slot = self.slots[at];
            // If samples arrived since the cursor was opened, the watch has the time before them.
            let noted = self.watch.as_ref().and_then(|watch| watch.newest_before(slot));
            let newest_ms = noted.or_else(|| table.at(slot).newest_ms()).unwrap_or(i64::MIN);
            self.newest.push(newest_ms);
            self.sequence.add(at as u32, &self.external, || table.labels(slot).1);
        }
        if self.is_prepared() {
            self.watch = None;
        }
    }

    /// Does a slice of preparation; returns whether all series were prepared already.
    fn prepare(&mut self, table: &SeriesTable) -> bool {
        let is_prepared = self.is_prepared();
        if !is_prepared {
            // Returning series is the work of another slice.
            self.prepare_some(table);
        }
        is_prepared
    }

    fn next_at(&mut self, table: &SeriesTable) -> Option<usize> {
        let HeadCursor { slots, external, sequence, .. } = self;
        let labels = |at: u32| {
            Labels::from_sorted(with_others(table.labels(slots[at as usize]).1, external))
        };
        sequence.next(slots.len(), labels)
    }

    /// Returns the next series with chunks that overlap the range.
    pub(super) fn next(
        &mut self,
        table: &SeriesTable,
    ) -> Result<Slice<HeadSeries>, (Labels, ChunkError)> {
        if !self.prepare(table) {
            return Ok(Slice::Again);
        }
        // Series without chunks in the range cost work, too, so a slice skips a limited number.
        for _ in 0..PASSED_PER_SLICE {
            let Some(at) = self.next_at(table) else { return Ok(Slice::End) };
            let (slot, newest_ms) = (self.slots[at], self.newest.get(at));
            let series = table.at(slot);
            let seen = Visibility { newest_ms, epoch: self.epoch };
            let chunks = series.chunks(self.range, seen);
            let chunks = chunks.map_err(|error| (table.packed_labels(slot), error))?;
            if !chunks.is_empty() {
                let labels = with_others(table.labels(slot).1, &self.external);
                let (labels, may_overlap) =
                    (Labels::from_sorted(labels), series.has_out_of_order());
                return Ok(Slice::Next(HeadSeries { labels, chunks, may_overlap }));
            }
        }
        Ok(Slice::Again)
    }

    /// Returns the labels of the next series, without external labels. If `only_in_range`, series
    /// without chunks that overlap the range are skipped.
    pub(super) fn next_labels(
        &mut self,
        table: &SeriesTable,
        only_in_range: bool,
    ) -> Slice<Labels> {
        if !self.prepare(table) {
            return Slice::Again;
        }
        for _ in 0..PASSED_PER_SLICE {
            let Some(at) = self.next_at(table) else { return Slice::End };
            let slot = self.slots[at];
            if !only_in_range || table.at(slot).touches(self.range) {
                self.page.push(at as u32);
                return Slice::Next(table.packed_labels(slot));
            }
        }
        Slice::Again
    }
}
