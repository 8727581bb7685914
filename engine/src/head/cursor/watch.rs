//! Samples that come while a cursor is prepared: what the newest sample of their series was before.

use crate::head::Slot;
use crate::head::postings::SlotSet;
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::rc::{Rc, Weak};

/// What one cursor notes of its own series.
pub struct Watch {
    slots: SlotSet,
    /// Time of the newest in-order sample of a series before the first that came; nothing if there
    /// was none.
    newest_ms: RefCell<FxHashMap<Slot, Option<i64>>>,
}

/// The cursors that are being prepared.
#[derive(Default)]
pub struct Watches(Vec<Weak<Watch>>);

impl Watch {
    /// The newest sample of a series when the watch began, if one came since.
    pub fn newest_before(&self, slot: Slot) -> Option<i64> {
        let noted = self.newest_ms.borrow();
        noted.get(&slot).map(|newest_ms| newest_ms.unwrap_or(i64::MIN))
    }
}

impl Watches {
    /// Begins to note what comes for some series.
    pub fn begin(&mut self, slots: &[Slot]) -> Rc<Watch> {
        let watch = Rc::new(Watch { slots: SlotSet::of(slots), newest_ms: RefCell::default() });
        self.0.push(Rc::downgrade(&watch));
        watch
    }

    /// Whether there are no watches, as nearly always.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A sample is about to be appended to a series with this newest one.
    #[cold]
    pub fn note(&mut self, slot: Slot, newest_ms: Option<i64>) {
        self.0.retain(|watch| {
            let Some(watch) = watch.upgrade() else { return false };
            if watch.slots.contains(slot) {
                watch.newest_ms.borrow_mut().entry(slot).or_insert(newest_ms);
            }
            true
        });
    }
}
