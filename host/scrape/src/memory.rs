//! One bound on the memory of all targets: caches of series and families, rows of scrapes under
//! way, and lists of targets.
//!
//! Memory is counted after each short step, so it may exceed the bound by what one step adds. A
//! scrape that finds no memory fails, and gives back what it had added.

use crate::error::ScrapeError;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Memory up to which a holder is never refused, whatever others hold.
const SMALL_BYTES: u64 = 128 * 1024;

/// The bound; clones share it. One holder has half of it at most.
#[derive(Clone, Debug)]
pub struct MemoryBound(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    bytes_max: u64,
    held_bytes: AtomicU64,
    refused: AtomicU64,
}

impl Default for MemoryBound {
    fn default() -> MemoryBound {
        MemoryBound::unbounded()
    }
}

impl MemoryBound {
    pub fn new(bytes_max: u64) -> MemoryBound {
        let (held_bytes, refused) = Default::default();
        MemoryBound(Arc::new(Shared { bytes_max, held_bytes, refused }))
    }

    /// Creates a bound that is never reached, for one scrape that a person looks at.
    pub fn unbounded() -> MemoryBound {
        MemoryBound::new(u64::MAX)
    }

    pub fn bytes_max(&self) -> u64 {
        self.0.bytes_max
    }

    /// Returns the bytes of it that are held.
    pub fn held_bytes(&self) -> u64 {
        self.0.held_bytes.load(Ordering::Relaxed)
    }

    /// Returns the number of scrapes and targets that found no memory.
    pub fn refused(&self) -> u64 {
        self.0.refused.load(Ordering::Relaxed)
    }

    /// Creates a holder of no bytes.
    pub fn holder(&self) -> MemoryShare {
        MemoryShare { of: self.clone(), bytes: 0 }
    }
}

/// Memory of one holder, such as a target. Dropping it gives the memory back.
#[derive(Debug)]
pub struct MemoryShare {
    of: MemoryBound,
    bytes: u64,
}

impl MemoryShare {
    /// Sets the number of held bytes. If it grows and there is no memory, returns an error; the
    /// bytes count all the same until fewer are set.
    pub fn set(&mut self, bytes: u64) -> Result<(), ScrapeError> {
        let shared = &self.of.0;
        let before = std::mem::replace(&mut self.bytes, bytes);
        // Giving back never fails, so that a holder that was refused can shrink.
        if bytes <= before {
            shared.held_bytes.fetch_sub(before - bytes, Ordering::Relaxed);
            return Ok(());
        }
        let more = bytes - before;
        let all = shared.held_bytes.fetch_add(more, Ordering::Relaxed).saturating_add(more);
        // The bound of all spares small holders; the half holds for each.
        let is_large = bytes > SMALL_BYTES && all > shared.bytes_max;
        if !is_large && bytes <= shared.bytes_max / 2 {
            return Ok(());
        }
        shared.refused.fetch_add(1, Ordering::Relaxed);
        Err(ScrapeError::Memory { bytes, limit_bytes: shared.bytes_max })
    }
}

impl Drop for MemoryShare {
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
