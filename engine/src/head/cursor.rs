//! A position in the head's answer to a selection.

use super::{Head, Slot};
use crate::chunk::Chunk;
use crate::model::{Labels, Matcher, TimeRange};
use std::cell::Cell;
use std::rc::Rc;

/// Walks over selected series in label order. While it lives, the head forgets nothing, so the
/// slots it holds stay valid.
pub struct HeadCursor {
    slots: std::vec::IntoIter<Slot>,
    range: TimeRange,
    open_cursors: Rc<Cell<u64>>,
}

impl Head {
    /// Selects series; those without samples in the range are left out as the cursor meets them.
    pub fn select(&self, matchers: &[Matcher], range: TimeRange) -> HeadCursor {
        // Later samples than those of this moment are not part of the answer.
        let range = TimeRange { end_ms: range.end_ms.min(self.newest_ms()), ..range };
        let start_ms = self.min_time_ms.min(self.late_min_time_ms);
        let held = TimeRange { start_ms, end_ms: i64::MAX };
        let mut slots = match range.overlaps(&held) {
            true => self.postings.select(&self.symbols, matchers),
            false => Vec::new(),
        };
        slots.sort_by(|a, b| self.labels(*a).1.cmp(self.labels(*b).1));
        self.open_cursors.set(self.open_cursors.get() + 1);
        let open_cursors = Rc::clone(&self.open_cursors);
        HeadCursor { slots: slots.into_iter(), range, open_cursors }
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
}

impl Drop for HeadCursor {
    fn drop(&mut self) {
        self.open_cursors.set(self.open_cursors.get() - 1);
    }
}
