//! Options of a store, and the options that can change while it runs.

use super::StoreError;
use super::memory::MemorySplit;
use super::pinned::PinConfig;
use super::space::DiskShare;
use std::path::PathBuf;
use std::time::Duration;
use tidepool_disk::{DataDir, RecordFormat, WalOptions};
use tidepool_runtime::{InstanceLimits, LabelLimits};

#[derive(Clone, Debug)]
pub struct StoreConfig {
    pub data_dir: PathBuf,
    pub wal: WalOptions,
    /// Format of floats in the log; `None` derives it from the directory's content.
    pub record_format: Option<RecordFormat>,
    /// Maximum size of quarantined log segments.
    pub quarantine_bytes_max: u64,
    /// Consecutive failures of the replay at one record that quarantine the log; 0 means never.
    pub failed_starts_max: u32,
    pub block_duration: Duration,
    /// Maximum span of a merged block; `None` derives it from the retention.
    pub block_duration_max: Option<Duration>,
    /// Maximum time by which a sample may be ahead of the clock.
    pub future_limit: Duration,
    /// Maximum age of an out-of-order sample, relative to the newest; zero refuses all of them.
    pub out_of_order_window: Duration,
    /// A block is dropped if it ends this long before the newest block; zero keeps all blocks.
    pub retention: Duration,
    /// Maximum size of the data directory; zero means no limit.
    pub retention_size: DiskShare,
    /// Pins blocks until they are copied: a pinned block is neither merged nor dropped for its age.
    pub pin: Option<PinConfig>,
    /// Free space below which writes are refused; `None` means a small part of the disk.
    pub disk_reserve: Option<DiskShare>,
    /// Maximum number of series in the head; 0 means no limit.
    pub series_max: u64,
    /// Maximum number of exemplars; 0 keeps none.
    pub exemplars_max: u64,
    /// Limits on the label sets of new series.
    pub label_limits: LabelLimits,
    /// Maximum number of concurrent reads; further reads wait. Queries are not included.
    pub reads_max: usize,
    /// Whether log segments that the head no longer needs are kept for forwarding.
    pub holds_log: bool,
    /// Whether a stop writes a snapshot of the head, and a start loads it.
    pub head_snapshot: bool,
    /// Maximum memory of each part of the process.
    pub memory: MemorySplit,
    /// Limits of each query instance.
    pub query_limits: InstanceLimits,
    /// Maximum number of open block files; `None` derives it from the limit of the process.
    pub open_block_files_max: Option<usize>,
    /// Maximum duration of one call of the head. If it is exceeded, the head is restarted.
    pub head_timeout: Duration,
}

/// Settings that can change while the store runs.
#[derive(Clone, Copy)]
pub(super) struct Live {
    pub retention: Duration,
    /// Maximum size of the data directory; 0 means no limit.
    pub retention_bytes: u64,
    pub query_limits: InstanceLimits,
}

impl Live {
    pub fn of(config: &StoreConfig, data: &DataDir) -> Result<Live, StoreError> {
        let retention_bytes = match config.retention_size {
            DiskShare::Bytes(bytes) => bytes,
            // At least 1, because 0 means no limit.
            share => share.of(data.total_bytes()?).max(1),
        };
        let StoreConfig { retention, query_limits, .. } = *config;
        Ok(Live { retention, retention_bytes, query_limits })
    }

    /// Returns the retention by time and by bytes.
    pub fn retention(&self) -> (Duration, u64) {
        (self.retention, self.retention_bytes)
    }
}
