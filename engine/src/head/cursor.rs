//! A position in the head's answer to a selection.

use super::postings::HeadIndex;
use super::work::{TooMuchWork, WorkLeft};
use super::{Head, Slot};
use crate::chunk::Chunk;
use crate::index::{select, select_any};
use crate::model::{Labels, Matcher, MatcherSets, TimeRange};
use std::cell::Cell;
use std::cmp::Ordering;
use std::rc::Rc;

/// Walks over selected series in label order. While it lives, the head forgets nothing, so the
/// slots it holds stay valid.
pub struct HeadCursor {
    slots: std::vec::IntoIter<Slot>,
    range: TimeRange,
    _open: OpenCursor,
}

/// Counts as an open cursor of its head until it is dropped.
pub(super) struct OpenCursor(Rc<Cell<u64>>);

impl Head {
    /// Selects series; those without samples in the range are left out as the cursor meets them.
    pub fn select(
        &mut self,
        matchers: &[Matcher],
        range: TimeRange,
    ) -> Result<HeadCursor, TooMuchWork> {
        self.postings.sort();
        let slots = match self.touches(range) {
            true => select(&self.index(), matchers)?,
            false => Vec::new(),
        };
        Ok(self.cursor(slots, range))
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
        Ok(self.cursor(slots, range))
    }

    fn cursor(&self, mut slots: Vec<Slot>, range: TimeRange) -> HeadCursor {
        let index = self.index();
        slots.sort_by(|a, b| by_labels(&index, *a, *b));
        // Later samples than those of this moment are not part of the answer.
        let range = TimeRange { end_ms: range.end_ms.min(self.newest_ms()), ..range };
        HeadCursor { slots: slots.into_iter(), range, _open: OpenCursor::new(self) }
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

    /// The next series with chunks that share some time with the range, and whether these chunks
    /// may overlap.
    pub fn next(&self, cursor: &mut HeadCursor) -> Option<(Labels, Vec<Chunk>, bool)> {
        cursor.slots.by_ref().find_map(|slot| {
            let series = self.at(slot);
            let chunks = series.chunks(cursor.range);
            (!chunks.is_empty()).then(|| (self.packed_labels(slot), chunks, series.has_late()))
        })
    }

    /// The labels of the next series with chunks that share some time with the range.
    pub fn next_labels(&self, cursor: &mut HeadCursor) -> Option<Labels> {
        let slot = cursor.slots.by_ref().find(|slot| self.at(*slot).touches(cursor.range))?;
        Some(self.packed_labels(slot))
    }
}

/// Compares series as their labels compare. Of symbols, only the ones that differ are read.
fn by_labels(index: &HeadIndex<'_>, a: Slot, b: Slot) -> Ordering {
    let text = |id| index.symbols.text(id);
    let (mut a, mut b) = (index.labels(a), index.labels(b));
    loop {
        match (a.next(), b.next()) {
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => return Ordering::Less,
            (Some(_), None) => return Ordering::Greater,
            (Some((name_a, _)), Some((name_b, _))) if name_a != name_b => {
                return text(name_a).cmp(text(name_b));
            }
            (Some((_, value_a)), Some((_, value_b))) if value_a != value_b => {
                return text(value_a).cmp(text(value_b));
            }
            _ => {}
        }
    }
}

impl OpenCursor {
    pub(super) fn new(head: &Head) -> OpenCursor {
        head.open_cursors.set(head.open_cursors.get() + 1);
        OpenCursor(Rc::clone(&head.open_cursors))
    }
}

impl Drop for OpenCursor {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}
