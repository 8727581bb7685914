//! What a store is opened with, and what of it can change while it runs.

use super::StoreError;
use super::memory::MemorySplit;
use super::pinned::PinConfig;
use super::space::DiskShare;
use std::path::PathBuf;
use std::time::Duration;
use tidepool_disk::{DataDir, RecordFormat, WalOptions};
use tidepool_runtime::{InstanceLimits, LabelLimits};

/// Options of a store.
#[derive(Clone, Debug)]
pub struct StoreConfig {
    /// The data directory.
    pub data_dir: PathBuf,
    /// How the log is written.
    pub wal: WalOptions,
    /// How floats lie in the log; nothing leaves that to what the directory shows.
    pub record_format: Option<RecordFormat>,
    /// Bytes that are kept of what was quarantined.
    pub quarantine_bytes_max: u64,
    /// Times in a row that the engine may fail at the log, and get no further, before the log is
    /// quarantined; 0 means that it never is.
    pub failed_starts_max: u32,
    /// Span of one block.
    pub block_duration: Duration,
    /// Longest span of a merged block; `None` leaves it to the retention.
    pub block_duration_max: Option<Duration>,
    /// How far ahead of the clock a sample may be.
    pub future_limit: Duration,
    /// How far behind the newest sample an out-of-order one may be; zero takes samples in order
    /// only.
    pub out_of_order_window: Duration,
    /// A block goes when it ends this long before the newest; zero keeps all.
    pub retention: Duration,
    /// Maximum size of the data directory; zero is no limit.
    pub retention_size: DiskShare,
    /// Whether blocks wait for being copied before they are merged or dropped for their age.
    pub pin: Option<PinConfig>,
    /// What must stay free for writes to be taken; `None` is a small part of the disk.
    pub disk_reserve: Option<DiskShare>,
    /// Most series in the head; 0 means no limit.
    pub series_max: u64,
    /// Most exemplars kept; 0 keeps none.
    pub exemplars_max: u64,
    /// How large the label sets of new series may be.
    pub label_limits: LabelLimits,
    /// Reads that run at a time; more wait. Queries are none of them.
    pub reads_max: usize,
    /// Whether segments of the log that the head needs no more are kept for forwarding.
    pub holds_log: bool,
    /// Whether a stop leaves a snapshot of the head for a quick start, and a start uses it.
    pub head_snapshot: bool,
    /// How much memory each part may take.
    pub memory: MemorySplit,
    /// Limits of each query instance.
    pub query_limits: InstanceLimits,
    /// Files of blocks that may be open; nothing leaves that to the limit of the process.
    pub open_block_files_max: Option<usize>,
    /// Longest time that one call of the head may take before it is started again.
    pub head_timeout: Duration,
}

/// What can change while the store runs.
#[derive(Clone, Copy)]
pub(super) struct Live {
    pub retention: Duration,
    /// Bytes that the data directory may take; 0 is no limit.
    pub retention_bytes: u64,
    pub query_limits: InstanceLimits,
}

impl Live {
    pub fn of(config: &StoreConfig, data: &DataDir) -> Result<Live, StoreError> {
        let retention_bytes = match config.retention_size {
            DiskShare::Bytes(bytes) => bytes,
            // A share of the disk is never nothing, which would be no limit.
            share => share.of(data.total_bytes()?).max(1),
        };
        let StoreConfig { retention, query_limits, .. } = *config;
        Ok(Live { retention, retention_bytes, query_limits })
    }

    /// How long and how much is kept.
    pub fn retention(&self) -> (Duration, u64) {
        (self.retention, self.retention_bytes)
    }
}
