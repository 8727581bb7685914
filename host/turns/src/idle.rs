//! What waits to be used again, by anyone: to get its memory anew costs more than to keep it, and
//! thousands of targets need it one after the other.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A bounded number of values that nobody uses.
pub struct Idle<T> {
    values: Mutex<Vec<T>>,
    max: usize,
}

impl<T> Idle<T> {
    /// Keeps at most so many.
    pub const fn new(max: usize) -> Idle<T> {
        Idle { values: Mutex::new(Vec::new()), max }
    }

    /// One that waits.
    pub fn take(&self) -> Option<T> {
        self.lock().pop()
    }

    /// Keeps a value, unless enough wait.
    pub fn give(&self, value: T) {
        let mut values = self.lock();
        if values.len() < self.max {
            values.push(value);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<T>> {
        self.values.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
