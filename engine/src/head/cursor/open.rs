//! The cursors that are open on a head: how many, and the memory that they take.

use std::cell::Cell;
use std::rc::Rc;

/// Of the memory that a head may use, the part that open cursors may take.
const CURSORS_PER_MEMORY: u64 = 8;

/// The cursors that are open on a head.
#[derive(Default)]
pub struct OpenCursors {
    count: Cell<u64>,
    /// Memory that they take.
    bytes: Cell<u64>,
}

/// Counts as an open cursor of its head until it is dropped.
pub struct OpenCursor {
    all: Rc<OpenCursors>,
    bytes: u64,
}

impl OpenCursors {
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
    /// Counts one that takes so much memory.
    pub fn new(all: &Rc<OpenCursors>, bytes: u64) -> OpenCursor {
        let all = Rc::clone(all);
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
