//! The cursors that are open on a head: how many, and the memory that they take.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;

/// Of the memory that a head may use, the part that open cursors may take.
const CURSORS_PER_MEMORY: u64 = 8;

/// The cursors that are open on a head.
#[derive(Default)]
pub struct OpenCursors {
    count: Cell<u64>,
    /// Memory that they take.
    bytes: Cell<u64>,
    /// Before which those see samples that see only some of them.
    epochs: RefCell<BTreeSet<u64>>,
}

/// Counts as an open cursor of its head until it is dropped.
pub struct OpenCursor {
    all: Rc<OpenCursors>,
    bytes: u64,
    epoch: Option<u64>,
}

impl OpenCursors {
    /// Whether some cursor sees samples of an older epoch and does not see those of a newer one.
    pub fn separate(&self, older: u64, newer: u64) -> bool {
        let first_not_seen = older.saturating_add(1);
        first_not_seen <= newer
            && self.epochs.borrow().range(first_not_seen..=newer).next().is_some()
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.count.get()
    }

    /// Whether they take more than their part of a head's memory; 0 is no limit.
    pub fn take_too_much(&self, memory_bytes_max: u64) -> bool {
        memory_bytes_max > 0 && self.bytes.get() > memory_bytes_max / CURSORS_PER_MEMORY
    }
}

impl OpenCursor {
    /// Counts one that takes so much memory, and sees what came before an epoch, which is its own.
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
