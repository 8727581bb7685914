//! Flags of the store by topic, and the configuration that results from them.

mod memory;
mod series;
mod storage;
mod values;
mod wal;

pub use memory::{MemoryFlags, UnusedMemory};
pub use series::SeriesFlags;
pub use storage::StorageFlags;
pub use wal::WalFlags;

use crate::{MemorySplit, PinConfig, StoreConfig};
use clap::Args;
use std::time::Duration;
use tidepool_runtime::InstanceLimits;
use tidepool_settings::flags::size;

/// Default maximum memory of one read; reads do not need more.
const QUERY_BYTES: u64 = 256 << 20;

#[allow(missing_docs)] // Clap would take a comment here for the text of the whole command.
#[derive(Debug, Clone, Args)]
pub struct StoreFlags {
    #[command(flatten)]
    pub storage: StorageFlags,
    #[command(flatten)]
    pub wal: WalFlags,
    #[command(flatten)]
    pub memory: MemoryFlags,
    #[command(flatten)]
    pub series: SeriesFlags,
}

/// Settings of the store that flags of other crates determine.
#[derive(Debug)]
pub struct Beside {
    pub memory: MemorySplit,
    /// Pins blocks until they are copied.
    pub pin: Option<PinConfig>,
    /// Maximum number of concurrent remote reads.
    pub reads_max: usize,
    /// Maximum duration of one remote read.
    pub read_timeout: Duration,
}

impl StoreFlags {
    pub fn config(self, beside: Beside) -> StoreConfig {
        let StoreFlags { storage, wal, memory, series } = self;
        let split = beside.memory;
        let query_bytes = memory.query_memory_limit.unwrap_or(split.reads_bytes.min(QUERY_BYTES));
        StoreConfig {
            wal: wal.options(),
            record_format: wal.record_format(),
            quarantine_bytes_max: wal.quarantine_size,
            failed_starts_max: wal.max_failed_starts,
            head_snapshot: wal.head_snapshot,
            data_dir: storage.data_dir,
            block_duration: storage.block_duration,
            block_duration_max: storage.max_block_duration,
            future_limit: storage.max_future,
            out_of_order_window: storage.out_of_order_window,
            retention: storage.retention_time,
            retention_size: storage.retention_size,
            disk_reserve: storage.disk_reserve,
            head_timeout: storage.head_timeout,
            open_block_files_max: storage.max_open_block_files,
            pin: beside.pin,
            series_max: series.max_series,
            exemplars_max: series.max_exemplars,
            label_limits: series.label_limits(),
            reads_max: beside.reads_max,
            holds_log: false,
            memory: split,
            query_limits: InstanceLimits {
                memory_bytes_max: size(query_bytes),
                deadline: Some(beside.read_timeout),
            },
        }
    }
}
