//! The cursors that are open on a head: their number, their memory and their epochs.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;

/// Divisor of a head's memory limit: the part that open cursors may take.
const CURSORS_PER_MEMORY: u64 = 8;

#[derive(Default)]
pub struct OpenCursors {
    count: Cell<u64>,
    bytes: Cell<u64>,
    /// Epochs of the open cursors. A cursor sees only samples from before its own epoch.
    epochs: RefCell<BTreeSet<u64>>,
}

/// Registers an open cursor of a head until this value is dropped.
pub struct OpenCursor {
    all: Rc<OpenCursors>,
    bytes: u64,
    epoch: Option<u64>,
}

impl OpenCursors {
    /// Returns whether some cursor sees samples of the older epoch but not of the newer one.
    pub fn separate(&self, older: u64, newer: u64) -> bool {
        // A cursor of epoch n sees samples of epochs below n only.
        let first_not_seen = older.saturating_add(1);
        first_not_seen <= newer
            && self.epochs.borrow().range(first_not_seen..=newer).next().is_some()
    }

    pub fn count(&self) -> u64 {
        self.count.get()
    }

    /// Returns whether cursors use more than their share of the memory limit; 0 is no limit.
    pub fn take_too_much(&self, memory_bytes_max: u64) -> bool {
        memory_bytes_max > 0 && self.bytes.get() > memory_bytes_max / CURSORS_PER_MEMORY
    }
}

impl OpenCursor {
    /// Registers a cursor of this size. A cursor with an epoch sees only samples from before it.
    pub fn new(all: &Rc<OpenCursors>, bytes: u64, epoch: Option<u64>) -> OpenCursor {
        let all = Rc::clone(all);
        all.count.set(all.count.get() + 1);
        all.bytes.set(all.bytes.get() + bytes);
        all.epochs.borrow_mut().extend(epoch);
        OpenCursor { all, bytes, epoch }
    }
}

impl Drop for OpenCursor {
    fn drop(&mut self) {
        self.all.count.set(self.all.count.get() - 1);
        if let Some(epoch) = self.epoch {
            self.all.epochs.borrow_mut().remove(&epoch);
        }
        self.all.bytes.set(self.all.bytes.get() - self.bytes);
    }
}
