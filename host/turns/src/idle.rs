//! Pool of idle values for reuse by any task. Allocating a value costs more than keeping it, and
//! thousands of targets need one briefly, in turn.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A pool with a maximum number of idle values.
pub struct Idle<T> {
    values: Mutex<Vec<T>>,
    max: usize,
}

impl<T> Idle<T> {
    pub const fn new(max: usize) -> Idle<T> {
        Idle { values: Mutex::new(Vec::new()), max }
    }

    pub fn take(&self) -> Option<T> {
        self.lock().pop()
    }

    /// Keeps a value for reuse, or drops it if the pool is full.
    pub fn give(&self, value: T) {
        let mut values = self.lock();
        if values.len() < self.max {
            values.push(value);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<T>> {
        // A panic elsewhere leaves the list intact: it is only pushed to and popped from.
        self.values.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
