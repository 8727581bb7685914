//! Flags about the data directory and its blocks: duration, retention, free space.

use super::values::{block_duration, disk_share, open_files};
use crate::space::DiskShare;
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;
use tidepool_settings::duration::{duration, duration_or_zero};
use tidepool_settings::flags::Marks;

#[allow(missing_docs)] // Clap would take a comment here for the text of the whole command.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Storage")]
pub struct StorageFlags {
    /// Data directory, created if missing
    ///
    /// A data directory that Prometheus wrote can be used as it is.
    #[arg(long, value_name = "DIR", default_value = "./data")]
    pub data_dir: PathBuf,

    /// How long to keep blocks, 0s for ever
    ///
    /// The age of a block counts from the newest block, not from the clock.
    #[arg(long, value_name = "DURATION", default_value = "15d", value_parser = duration_or_zero)]
    pub retention_time: Duration,

    /// Maximum size of the data directory, 0 for no limit
    ///
    /// Bytes, or a share of the disk such as 80%. The oldest blocks are dropped first.
    #[arg(long, value_name = "BYTES|PERCENT", default_value = "0", value_parser = disk_share)]
    pub retention_size: DiskShare,

    /// Maximum age of out-of-order samples, 0s for none
    ///
    /// Measured from the newest stored sample. Older samples are rejected.
    #[arg(long, value_name = "DURATION", default_value = "2h", value_parser = duration_or_zero)]
    pub out_of_order_window: Duration,

    /// Maximum time by which a sample may be ahead of this node's clock
    #[arg(long, alias = "future-limit", value_name = "DURATION", default_value = "10m", value_parser = duration)]
    pub max_future: Duration,

    /// Free disk space below which writes are refused with 503, 0 for none
    ///
    /// Bytes, or a share of the disk such as 5%. The default is 5%, at most 100MiB. Reads and
    /// compaction continue. Writes are accepted again once enough space is free.
    #[arg(long, value_name = "BYTES|PERCENT", value_parser = disk_share)]
    pub disk_reserve: Option<DiskShare>,

    /// Maximum number of open files of blocks
    ///
    /// Files that were not read for the longest time are closed first, and opened again by their
    /// next read. The default is half of the limit of open files, at most 32768. The other half is
    /// for connections and the WAL.
    #[arg(long, value_name = "COUNT", value_parser = open_files)]
    pub max_open_block_files: Option<usize>,

    /// Time range of a block
    ///
    /// A block is cut when the head spans more than one and a half times this duration.
    #[arg(long, value_name = "DURATION", default_value = "2h", value_parser = block_duration)]
    pub block_duration: Duration,

    /// Maximum time range of a merged block
    ///
    /// The default is a tenth of the retention time, at most 31d. The value of --block-duration
    /// disables merging, as Thanos' sidecar requires.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub max_block_duration: Option<Duration>,

    /// Maximum duration of one call of the head
    ///
    /// If the head takes longer, tidepool writes what waits in memory, logs an error and ends with
    /// exit code 70: the call cannot be interrupted. Have a supervisor start it again. The small
    /// build restarts the head alone.
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = duration)]
    pub head_timeout: Duration,
}

impl StorageFlags {
    pub const MARKS: Marks = Marks {
        short: &["data-dir", "retention-time", "retention-size", "out-of-order-window"],
        reloadable: &["disk-reserve", "retention-size", "retention-time"],
        prometheus: &[
            ("storage.tsdb.max-block-duration", "max-block-duration"),
            ("storage.tsdb.min-block-duration", "block-duration"),
            ("storage.tsdb.out-of-order-time-window", "out-of-order-window"),
            ("storage.tsdb.path", "data-dir"),
            ("storage.tsdb.retention", "retention-time"),
            ("storage.tsdb.retention.size", "retention-size"),
            ("storage.tsdb.retention.time", "retention-time"),
        ],
        ..Marks::NONE
    };
}
