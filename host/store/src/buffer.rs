//! Pool of buffers for request bodies. Without a pool, freed memory would go back to the system,
//! which zeroes each page before it returns it. That costs as much as decompressing into the page.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum number of free buffers.
const FREE_MAX: usize = 4;

/// Buffers above this size are freed after use, because few senders need them.
const FREE_BYTES_MAX: usize = 1024 * 1024;

/// Free buffers; clones share the pool.
#[derive(Clone, Default)]
pub struct Buffers {
    free: Arc<Mutex<Vec<Vec<u8>>>>,
}

/// Body of a request. Dropping it returns the buffer to its pool.
#[derive(Default)]
pub struct Body {
    /// The body, followed by remaining bytes of earlier bodies.
    buffer: Vec<u8>,
    bytes: usize,
    home: Option<Buffers>,
}

impl Buffers {
    /// Returns a buffer of `bytes` bytes with arbitrary content.
    pub fn take(&self, bytes: usize) -> Body {
        let mut buffer = self.lock().pop().unwrap_or_default();
        if buffer.len() < bytes {
            // Cleared first, so that growing does not copy the old bytes.
            buffer.clear();
            buffer.resize(bytes, 0);
        }
        Body { buffer, bytes, home: Some(self.clone()) }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Vec<u8>>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Body {
    /// Shortens the body to at most `bytes` bytes.
    pub fn truncate(&mut self, bytes: usize) {
        // The buffer keeps its length, so that the next `take` need not zero its bytes again.
        self.bytes = self.bytes.min(bytes);
    }
}

impl From<Vec<u8>> for Body {
    fn from(buffer: Vec<u8>) -> Body {
        Body { bytes: buffer.len(), buffer, home: None }
    }
}

impl Deref for Body {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.buffer.get(..self.bytes).unwrap_or_default()
    }
}

impl DerefMut for Body {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.buffer.get_mut(..self.bytes).unwrap_or_default()
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        let Some(home) = &self.home else { return };
        let buffer = std::mem::take(&mut self.buffer);
        let mut free = home.lock();
        if free.len() < FREE_MAX && buffer.capacity() <= FREE_BYTES_MAX {
            free.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_used_again_within_bounds() {
        let buffers = Buffers::default();
        let mut first = buffers.take(1000);
        first.fill(7);
        first.truncate(600);
        assert_eq!(*first, [7; 600]);
        let place = first.as_ptr();
        drop(first);
        let mut second = buffers.take(900);
        assert_eq!((second.len(), second.as_ptr()), (900, place));
        second.fill(8);
        assert_eq!(*second, [8; 900]);
        let others: Vec<Body> = (0..10).map(|_| buffers.take(FREE_BYTES_MAX)).collect();
        drop((second, others, buffers.take(FREE_BYTES_MAX + 1)));
        let free = buffers.lock();
        assert_eq!(free.len(), FREE_MAX);
        assert!(free.iter().all(|buffer| buffer.capacity() <= FREE_BYTES_MAX));
    }

    #[test]
    fn a_body_of_its_own_is_what_it_was() {
        let body = Body::from(vec![1, 2, 3]);
        assert_eq!(*body, [1, 2, 3]);
        assert!(Body::default().is_empty());
    }
}
