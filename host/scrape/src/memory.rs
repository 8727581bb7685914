//! One bound on the memory of all targets: caches of series and families, rows of current scrapes,
//! and lists of targets.
//!
//! Memory is counted after each short step, so one step may exceed the bound. A scrape that the
//! bound refuses fails, and frees the memory that it had added.

use crate::error::ScrapeError;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Size up to which a share is not refused when all memory is in use.
const SMALL_BYTES: u64 = 128 * 1024;

/// The bound; clones share it. One share may have at most half of it.
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

    /// Creates a bound that is never reached, for trial scrapes.
    pub fn unbounded() -> MemoryBound {
        MemoryBound::new(u64::MAX)
    }

    pub fn bytes_max(&self) -> u64 {
        self.0.bytes_max
    }

    /// Returns the sum of all shares in bytes.
    pub fn held_bytes(&self) -> u64 {
        self.0.held_bytes.load(Ordering::Relaxed)
    }

    /// Returns how many times the bound refused a share.
    pub fn refused(&self) -> u64 {
        self.0.refused.load(Ordering::Relaxed)
    }

    /// Creates a share of no bytes.
    pub fn holder(&self) -> MemoryShare {
        MemoryShare { of: self.clone(), bytes: 0 }
    }
}

/// Memory of one user of the bound, such as a target. Dropping the share releases the memory.
#[derive(Debug)]
pub struct MemoryShare {
    of: MemoryBound,
    bytes: u64,
}

impl MemoryShare {
    /// Sets the size of the share. Returns an error if the share grows beyond the bound. The new
    /// size is counted even then, until a smaller size is set.
    pub fn set(&mut self, bytes: u64) -> Result<(), ScrapeError> {
        let shared = &self.of.0;
        let before = std::mem::replace(&mut self.bytes, bytes);
        // Releasing memory never fails, so that a refused share can shrink.
        if bytes <= before {
            shared.held_bytes.fetch_sub(before - bytes, Ordering::Relaxed);
            return Ok(());
        }
        let more = bytes - before;
        let all = shared.held_bytes.fetch_add(more, Ordering::Relaxed).saturating_add(more);
        // Small shares ignore the bound of all shares; no share may exceed half of the bound.
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
