//! Limits on the memories and tables of an instance.

use std::sync::Arc;
use tidepool_runtime::{MemoryBound, MemoryPool, PoolShare};
use wasmtime::ResourceLimiter;

/// Maximum number of elements in all tables of an instance; large programs have some thousands.
const TABLE_ELEMENTS_MAX: usize = 200_000;

/// Maximum number of core instances, of memories and of tables in a component. They are limited
/// because each memory reserves address space.
const PARTS_MAX: usize = 64;

/// Limiter that wasmtime asks before a memory or table grows.
pub struct Limiter {
    bytes_max: usize,
    bytes: usize,
    table_elements: usize,
    share: PoolShare,
    /// Bound that last refused memory. The instance is not used after a refusal.
    pub refused_by: Option<MemoryBound>,
}

impl Limiter {
    /// Creates a limiter for up to `bytes_max`, which are also taken from the pool.
    pub fn new(bytes_max: usize, pool: &Arc<MemoryPool>) -> Limiter {
        Limiter { bytes_max, bytes: 0, table_elements: 0, share: pool.share(), refused_by: None }
    }

    /// Returns the linear memory of the instance in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl ResourceLimiter for Limiter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        // A component may have several memories; the limit is for their sum.
        let bytes = self.bytes.saturating_add(desired.saturating_sub(current));
        let refused_by = if bytes > self.bytes_max {
            Some(MemoryBound::Own)
        } else {
            // Checked after the own limit, so that a refused plugin takes nothing from the pool.
            (!self.share.grow_to(bytes)).then_some(MemoryBound::Shared)
        };
        match refused_by {
            None => self.bytes = bytes,
            refused => self.refused_by = refused,
        }
        Ok(refused_by.is_none())
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let elements = self.table_elements.saturating_add(desired.saturating_sub(current));
        let fits = elements <= TABLE_ELEMENTS_MAX;
        if fits {
            self.table_elements = elements;
        }
        Ok(fits)
    }

    fn instances(&self) -> usize {
        PARTS_MAX
    }

    fn tables(&self) -> usize {
        PARTS_MAX
    }

    fn memories(&self) -> usize {
        PARTS_MAX
    }
}
