//! Limits on an instance's memories and tables.

use std::sync::Arc;
use tidepool_runtime::{MemoryBound, MemoryPool, PoolShare};
use wasmtime::ResourceLimiter;

/// Elements of all tables of an instance together: those of large programs are some thousands.
const TABLE_ELEMENTS_MAX: usize = 200_000;

/// Core instances, memories and tables that a component may consist of; each memory reserves
/// addresses.
const PARTS_MAX: usize = 64;

/// What wasmtime asks before something grows.
pub struct Limiter {
    bytes_max: usize,
    bytes: usize,
    table_elements: usize,
    share: PoolShare,
    /// Which bound refused memory last: the instance does not survive that.
    pub refused_by: Option<MemoryBound>,
}

impl Limiter {
    /// So many bytes, which are also taken from a pool.
    pub fn new(bytes_max: usize, pool: &Arc<MemoryPool>) -> Limiter {
        Limiter { bytes_max, bytes: 0, table_elements: 0, share: pool.share(), refused_by: None }
    }

    /// Linear memory of the instance.
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
        let bytes = self.bytes.saturating_add(desired.saturating_sub(current));
        let refused_by = if bytes > self.bytes_max {
            Some(MemoryBound::Own)
        } else {
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
