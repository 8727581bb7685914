//! One bound for what all targets keep in memory: what they remember of their series and families,
//! the rows of scrapes under way, and the targets of lists.
//!
//! What is held is noted after each short step, so it may be more by what one step adds. A scrape
//! that finds no room fails, and gives back what it had added.

use crate::error::ScrapeError;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A target that holds no more is never refused for what others hold.
const SMALL_BYTES: u64 = 128 * 1024;

/// The bound; clones share it. One target has half of it at most.
#[derive(Clone, Debug)]
pub struct MemoryBound(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    bytes_max: u64,
    held_bytes: AtomicU64,
    refused: AtomicU64,
}

impl Default for MemoryBound {
    /// Without a bound.
    fn default() -> MemoryBound {
        MemoryBound::unbounded()
    }
}

impl MemoryBound {
    /// Room for this many bytes.
    pub fn new(bytes_max: u64) -> MemoryBound {
        let (held_bytes, refused) = Default::default();
        MemoryBound(Arc::new(Shared { bytes_max, held_bytes, refused }))
    }

    /// Room without a bound, where one scrape is made for a person.
    pub fn unbounded() -> MemoryBound {
        MemoryBound::new(u64::MAX)
    }

    /// The bound.
    pub fn bytes_max(&self) -> u64 {
        self.0.bytes_max
    }

    /// What is held of it.
    pub fn held_bytes(&self) -> u64 {
        self.0.held_bytes.load(Ordering::Relaxed)
    }

    /// Scrapes and targets that found no room.
    pub fn refused(&self) -> u64 {
        self.0.refused.load(Ordering::Relaxed)
    }

    /// A holder of nothing.
    pub fn holder(&self) -> Held {
        Held { of: self.clone(), bytes: 0 }
    }
}

/// What one target holds. Given back when dropped.
#[derive(Debug)]
pub struct Held {
    of: MemoryBound,
    bytes: u64,
}

impl Held {
    /// Notes that so many bytes are held now. If these are more than before and there is no room,
    /// an error says so, and they count all the same until less are noted.
    pub fn set(&mut self, bytes: u64) -> Result<(), ScrapeError> {
        let shared = &self.of.0;
        let before = std::mem::replace(&mut self.bytes, bytes);
        if bytes <= before {
            shared.held_bytes.fetch_sub(before - bytes, Ordering::Relaxed);
            return Ok(());
        }
        let more = bytes - before;
        let all = shared.held_bytes.fetch_add(more, Ordering::Relaxed).saturating_add(more);
        let is_large = bytes > SMALL_BYTES && all > shared.bytes_max;
        if !is_large && bytes <= shared.bytes_max / 2 {
            return Ok(());
        }
        shared.refused.fetch_add(1, Ordering::Relaxed);
        Err(ScrapeError::Memory { bytes, limit_bytes: shared.bytes_max })
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.of.0.held_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_counts_until_it_is_given_back() {
        const MIB: u64 = 1 << 20;
        let memory = MemoryBound::new(10 * MIB);
        let (mut a, mut b, mut c) = (memory.holder(), memory.holder(), memory.holder());
        let refused = |bytes| Err(ScrapeError::Memory { bytes, limit_bytes: 10 * MIB });
        assert_eq!(a.set(5 * MIB + 1), refused(5 * MIB + 1), "half is for others");
        assert_eq!((a.set(5 * MIB), b.set(5 * MIB)), (Ok(()), Ok(())));
        assert_eq!(c.set(MIB), refused(MIB));
        assert_eq!(c.set(SMALL_BYTES), Ok(()), "whatever others hold");
        assert_eq!((memory.held_bytes(), memory.refused()), (10 * MIB + SMALL_BYTES, 2));
        drop(a);
        assert_eq!((c.set(5 * MIB), memory.held_bytes()), (Ok(()), 10 * MIB));
    }
}
