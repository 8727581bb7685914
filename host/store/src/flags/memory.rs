//! Flags of memory limits: dividing the memory, and finding values that have no effect.

use crate::memory::{
    COMPACTOR_BYTES_MIN, MEMORY_LIMIT_BYTES_MIN, MemorySplit, QUERY_BYTES_MIN, default_limit_bytes,
};
use clap::Args;
use tidepool_runtime::{INSTANCE_BYTES_MAX, INSTANCE_BYTES_MIN};
use tidepool_settings::flags::{Marks, at_least};

/// Minimum memory of the head's instance. With less, no samples would fit.
const HEAD_BYTES_MIN: u64 = 8 << 20;

#[allow(missing_docs)] // Clap would take a comment here for the text of the whole command.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Memory")]
pub struct MemoryFlags {
    /// Memory limit of the process
    ///
    /// An eighth of it is for request bodies, a sixteenth for scrapes and three sixteenths for
    /// reads. Of the rest, three quarters are for the head and one quarter is for the compactor.
    /// When the head approaches its share, a block is cut early, then new series are refused, then
    /// writes. Reads that find no memory get 503. The default is three quarters of the memory of
    /// the machine or control group. The head uses at most 3GiB, so more than about 7GiB has no
    /// effect.
    #[arg(long, value_name = "BYTES", value_parser = at_least(MEMORY_LIMIT_BYTES_MIN))]
    memory_limit: Option<u64>,

    /// Maximum memory of the head, instead of its share of --memory-limit
    ///
    /// An engine instance uses at most 4095MiB, because it has 32-bit addresses.
    #[arg(long, value_name = "BYTES", value_parser = at_least(HEAD_BYTES_MIN))]
    head_memory_limit: Option<u64>,

    /// Maximum memory of one read
    ///
    /// The default is the share of all reads, at most 256MiB.
    #[arg(long, value_name = "BYTES", value_parser = at_least(INSTANCE_BYTES_MIN))]
    pub query_memory_limit: Option<u64>,

    /// Maximum memory of all reads, instead of their share of --memory-limit
    #[arg(long, value_name = "BYTES", value_parser = at_least(QUERY_BYTES_MIN))]
    reads_memory_limit: Option<u64>,

    /// Maximum memory of the compactor, which cuts and merges blocks
    ///
    /// The default is a third of the head's memory. Blocks whose merge could need more are excluded
    /// from merging. A head whose labels need more is cut into several blocks.
    #[arg(long, value_name = "BYTES", value_parser = at_least(COMPACTOR_BYTES_MIN))]
    compactor_memory_limit: Option<u64>,
}

impl MemoryFlags {
    pub const MARKS: Marks = Marks { short: &["memory-limit"], ..Marks::NONE };

    /// Divides the memory, except for parts that have a flag. If such parts are set without a limit
    /// for the whole, the limit is the sum of all parts.
    pub fn split(&self) -> MemorySplit {
        let limit_bytes = self.memory_limit.unwrap_or_else(default_limit_bytes);
        let split = MemorySplit::of(limit_bytes);
        // An instance cannot use more, because its addresses have 32 bits.
        let of_instance = |chosen: Option<u64>| chosen.map(|bytes| bytes.min(INSTANCE_BYTES_MAX));
        let head_bytes = of_instance(self.head_memory_limit).unwrap_or(split.head_bytes);
        let compactor_bytes = of_instance(self.compactor_memory_limit)
            .unwrap_or((head_bytes / 3).max(COMPACTOR_BYTES_MIN));
        let reads_bytes = self.reads_memory_limit.unwrap_or(split.reads_bytes);
        let chosen = MemorySplit { head_bytes, compactor_bytes, reads_bytes, ..split };
        if self.memory_limit.is_none() {
            return MemorySplit { limit_bytes: chosen.needed_bytes(), ..chosen };
        }
        // Scrapes have no flag, so they get the memory that other parts leave.
        let beyond_bytes = chosen.needed_bytes().saturating_sub(limit_bytes);
        MemorySplit { scrapes_bytes: chosen.scrapes_bytes.saturating_sub(beyond_bytes), ..chosen }
    }

    /// Returns the flags with a value above the memory that this division can use.
    pub fn unused(&self, split: &MemorySplit) -> Vec<UnusedMemory> {
        let flags = [
            ("--memory-limit", self.memory_limit, split.needed_bytes()),
            ("--head-memory-limit", self.head_memory_limit, INSTANCE_BYTES_MAX),
            ("--query-memory-limit", self.query_memory_limit, INSTANCE_BYTES_MAX),
            ("--compactor-memory-limit", self.compactor_memory_limit, INSTANCE_BYTES_MAX),
        ];
        let unused = |(flag, given, used_bytes): (_, Option<u64>, u64)| {
            let given_bytes = given.filter(|given_bytes| *given_bytes > used_bytes)?;
            Some(UnusedMemory { flag, given_bytes, used_bytes })
        };
        flags.into_iter().filter_map(unused).collect()
    }
}

/// A flag with a value above the memory that can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnusedMemory {
    /// The flag, with its dashes.
    pub flag: &'static str,
    pub given_bytes: u64,
    pub used_bytes: u64,
}

impl UnusedMemory {
    pub fn warn(&self) {
        let UnusedMemory { flag, given_bytes, used_bytes } = self;
        tracing::warn!(
            flag,
            given_bytes,
            used_bytes,
            "the memory limit has no effect beyond used_bytes: an engine instance has 32-bit \
             addresses, which also bounds the number of series"
        );
    }
}
