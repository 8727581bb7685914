//! Notes samples that arrive while a cursor is prepared, with the newest time before them.

use crate::head::Slot;
use crate::head::postings::SlotSet;
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::rc::{Rc, Weak};

/// Notes of one cursor about its own series.
pub struct Watch {
    slots: SlotSet,
    /// Newest in-order time of a series before the first noted sample; `None` if there was none.
    newest_ms: RefCell<FxHashMap<Slot, Option<i64>>>,
}

/// The cursors that are being prepared.
#[derive(Default)]
pub struct Watches(Vec<Weak<Watch>>);

impl Watch {
    /// Returns the newest time of a series before the watch began, if samples arrived since.
    pub fn newest_before(&self, slot: Slot) -> Option<i64> {
        let noted = self.newest_ms.borrow();
        noted.get(&slot).map(|newest_ms| newest_ms.unwrap_or(i64::MIN))
    }
}

impl Watches {
    /// Begins to note the samples that arrive for some series.
    pub fn begin(&mut self, slots: &[Slot]) -> Rc<Watch> {
        let watch = Rc::new(Watch { slots: SlotSet::of(slots), newest_ms: RefCell::default() });
        self.0.push(Rc::downgrade(&watch));
        watch
    }

    /// Returns whether there are no watches, the usual case.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Notes that a sample is about to be appended to a series whose newest time is `newest_ms`.
    #[cold]
    pub fn note(&mut self, slot: Slot, newest_ms: Option<i64>) {
        self.0.retain(|watch| {
            // The cursor of this watch is prepared by now, or closed.
            let Some(watch) = watch.upgrade() else { return false };
            if watch.slots.contains(slot) {
                // Only the first sample of a series finds the time from before the watch.
                watch.newest_ms.borrow_mut().entry(slot).or_insert(newest_ms);
            }
            true
        });
    }
}
