//! Limits on the linear memory of instances: one for each instance, and one for a group of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use wasmtime::ResourceLimiter;

/// A number of bytes that several instances share.
#[derive(Debug)]
pub struct MemoryPool {
    bytes_max: usize,
    used_bytes: AtomicUsize,
}

/// Bytes taken from a pool, returned to it when dropped.
#[derive(Debug)]
pub struct PoolShare {
    pool: Arc<MemoryPool>,
    bytes: usize,
}

impl MemoryPool {
    /// Makes a pool of `bytes_max` bytes.
    pub fn new(bytes_max: usize) -> Arc<MemoryPool> {
        Arc::new(MemoryPool { bytes_max, used_bytes: AtomicUsize::new(0) })
    }

    /// Makes a share of the pool that has no bytes yet.
    pub fn share(self: &Arc<MemoryPool>) -> PoolShare {
        PoolShare { pool: Arc::clone(self), bytes: 0 }
    }

    pub fn used_bytes(&self) -> usize {
        self.used_bytes.load(Relaxed)
    }

    pub fn bytes_max(&self) -> usize {
        self.bytes_max
    }
}

impl PoolShare {
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn pool(&self) -> &MemoryPool {
        &self.pool
    }

    /// Grows the share to `bytes` if the pool has enough bytes left, and returns whether it had. A
    /// share never shrinks.
    #[must_use]
    pub fn grow_to(&mut self, bytes: usize) -> bool {
        let more = bytes.saturating_sub(self.bytes);
        // Checked and taken in one atomic step, because instances on other threads grow meanwhile.
        let fits = |used: usize| used.checked_add(more).filter(|used| *used <= self.pool.bytes_max);
        let has_grown = self.pool.used_bytes.fetch_update(Relaxed, Relaxed, fits).is_ok();
        if has_grown {
            self.bytes += more;
        }
        has_grown
    }
}

impl Drop for PoolShare {
    fn drop(&mut self) {
        self.pool.used_bytes.fetch_sub(self.bytes, Relaxed);
    }
}

/// Maximum memory of an instance. It is 1 MiB less than the 4 GiB that 32-bit addresses reach, so
/// that a refusal always comes from a limit of this file and has a reason.
pub const INSTANCE_BYTES_MAX: u64 = (4 << 30) - (1 << 20);

/// Minimum memory of an engine instance, which needs nearly this size before it has any data.
pub const INSTANCE_BYTES_MIN: u64 = 3 << 20;

/// The limit that kept an instance from growing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryBound {
    Own,
    /// The limit that the instance shares with other instances.
    Shared,
}

/// Decides for wasmtime whether an instance's memory may grow.
pub(super) struct MemoryLimiter {
    bytes_max: usize,
    /// Present size of the instance's memory.
    pub bytes: usize,
    share: Option<PoolShare>,
    /// The limit that refused growth; the engine does not survive a refusal.
    pub refused_by: Option<MemoryBound>,
}

impl MemoryLimiter {
    pub fn new(bytes_max: usize, pool: Option<&Arc<MemoryPool>>) -> MemoryLimiter {
        let addressable = usize::try_from(INSTANCE_BYTES_MAX).unwrap_or(usize::MAX);
        let bytes_max = bytes_max.min(addressable);
        MemoryLimiter { bytes_max, bytes: 0, share: pool.map(MemoryPool::share), refused_by: None }
    }

    pub fn stop_growth(&mut self) {
        self.bytes_max = self.bytes;
    }
}

impl ResourceLimiter for MemoryLimiter {
    fn memory_growing(
        &mut self,
        _current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        // The instance's own limit comes first, so that a refusal takes nothing from the pool.
        let is_shared_out = |share: &mut PoolShare| !share.grow_to(desired);
        self.refused_by = if desired > self.bytes_max {
            Some(MemoryBound::Own)
        } else {
            self.share.as_mut().is_some_and(is_shared_out).then_some(MemoryBound::Shared)
        };
        if self.refused_by.is_none() {
            self.bytes = desired;
        }
        Ok(self.refused_by.is_none())
    }

    fn table_growing(
        &mut self,
        _current: usize,
        _desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        // The component's tables have a fixed size.
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_gives_what_it_has_and_takes_it_back() {
        let pool = MemoryPool::new(100);
        let (mut a, mut b) = (pool.share(), pool.share());
        assert!(a.grow_to(60) && !b.grow_to(41) && b.grow_to(40));
        assert!(a.grow_to(50), "that much it has");
        assert_eq!(pool.used_bytes(), 100);
        drop(b);
        assert!(!a.grow_to(101) && a.grow_to(100));
        drop(a);
        assert_eq!(pool.used_bytes(), 0);
    }
}
