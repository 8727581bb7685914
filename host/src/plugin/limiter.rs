//! What an instance's memories and tables may grow to.

use crate::wasm::{MemoryPool, PoolShare};
use std::sync::Arc;
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
    /// Whether memory was refused: the instance does not survive that.
    pub refused_memory: bool,
}

impl Limiter {
    /// So many bytes, which are also taken from a pool.
    pub fn new(bytes_max: usize, pool: &Arc<MemoryPool>) -> Limiter {
        Limiter {
            bytes_max,
            bytes: 0,
            table_elements: 0,
            share: pool.share(),
            refused_memory: false,
        }
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
        let fits = bytes <= self.bytes_max && self.share.grow_to(bytes);
        if fits {
            self.bytes = bytes;
        } else {
            self.refused_memory = true;
        }
        Ok(fits)
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
