//! The flags about memory: how they share it out, and what of them is of no use.

use super::{ServeArgs, ServeConfig};
use crate::store::{COMPACTOR_BYTES_MIN, MemorySplit, default_limit_bytes};
use crate::wasm::INSTANCE_BYTES_MAX;

/// A flag that gives more memory than can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnusedMemory {
    /// The flag, with its dashes.
    pub flag: &'static str,
    /// What it gives.
    pub given_bytes: u64,
    /// What of that can be used.
    pub used_bytes: u64,
}

/// The parts of the memory, but for those that have flags of their own. Parts that were chosen
/// without a limit for the whole make it as large as they need.
pub(super) fn memory_split(args: &ServeArgs) -> MemorySplit {
    let limit_bytes = args.memory_limit.unwrap_or_else(default_limit_bytes);
    let split = MemorySplit::of(limit_bytes);
    let of_instance = |chosen: Option<u64>| chosen.map(|bytes| bytes.min(INSTANCE_BYTES_MAX));
    let head_bytes = of_instance(args.head_memory_limit).unwrap_or(split.head_bytes);
    let compactor_bytes = of_instance(args.compactor_memory_limit)
        .unwrap_or((head_bytes / 3).max(COMPACTOR_BYTES_MIN));
    let reads_bytes = args.reads_memory_limit.unwrap_or(split.reads_bytes);
    let chosen = MemorySplit { head_bytes, compactor_bytes, reads_bytes, ..split };
    let is_chosen = args.memory_limit.is_some();
    if is_chosen { chosen } else { MemorySplit { limit_bytes: chosen.needed_bytes(), ..chosen } }
}

/// The flags that give more than can be used, if the memory is shared out like this.
pub(super) fn unused_memory(args: &ServeArgs, split: &MemorySplit) -> Vec<UnusedMemory> {
    let flags = [
        ("--memory-limit", args.memory_limit, split.needed_bytes()),
        ("--head-memory-limit", args.head_memory_limit, INSTANCE_BYTES_MAX),
        ("--query-memory-limit", args.query_memory_limit, INSTANCE_BYTES_MAX),
        ("--compactor-memory-limit", args.compactor_memory_limit, INSTANCE_BYTES_MAX),
    ];
    let unused = |(flag, given, used_bytes): (_, Option<u64>, u64)| {
        let given_bytes = given.filter(|given_bytes| *given_bytes > used_bytes)?;
        Some(UnusedMemory { flag, given_bytes, used_bytes })
    };
    flags.into_iter().filter_map(unused).collect()
}

impl ServeConfig {
    /// Says in the log which flags give more memory than can be used.
    pub fn warn_of_unused_memory(&self) {
        for UnusedMemory { flag, given_bytes, used_bytes } in &self.unused_memory {
            tracing::warn!(
                flag,
                given_bytes,
                used_bytes,
                "more memory is given than can be used: addresses of an engine instance have 32 \
                 bits, which bounds the number of series, too"
            );
        }
    }
}
