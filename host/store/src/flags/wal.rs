//! Flags about the write-ahead log (WAL), and about the head snapshot, which replaces its replay.

use super::values::{segment_size, sync_interval};
use clap::{ArgAction, Args, ValueEnum};
use std::time::Duration;
use tidepool_disk::wal::{BATCH_INTERVAL_DEFAULT, SEGMENT_BYTES_DEFAULT, SYNC_INTERVAL_DEFAULT};
use tidepool_disk::{Compression, QUARANTINE_BYTES_DEFAULT, RecordFormat, SyncPolicy, WalOptions};
use tidepool_settings::duration::bytes;
use tidepool_settings::flags::{Marks, at_least, size};

/// Minimum value of --wal-buffer-size: a page of the log.
const BUFFER_BYTES_MIN: u64 = 32 << 10;

#[allow(missing_docs)] // Clap would take a comment here for the text of the whole command.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Write-ahead log")]
pub struct WalFlags {
    /// WAL sync policy: off, interval, always or batch
    ///
    /// off: never sync. Samples survive a crash of the process, not a power cut.
    ///
    /// interval: sync every --wal-sync-interval. A power cut loses at most that much.
    ///
    /// always: sync before each write is acknowledged. Acknowledged samples survive a power cut.
    ///
    /// batch: keep records in memory, then write and sync them every --wal-sync-interval, which
    /// spares flash. A crash of the process or a power cut loses at most that much. A clean stop
    /// loses nothing.
    #[arg(
        long,
        value_enum,
        value_name = "POLICY",
        default_value = "interval",
        hide_possible_values = true
    )]
    wal_sync: WalSync,

    /// Interval of --wal-sync=interval and --wal-sync=batch, at most 1h
    ///
    /// The default is 1s for interval and 5m for batch.
    #[arg(long, value_name = "DURATION", value_parser = sync_interval)]
    wal_sync_interval: Option<Duration>,

    /// Maximum memory for WAL records with --wal-sync=batch
    ///
    /// When it is full, the records are written before the interval ends.
    #[arg(
        long, value_name = "BYTES", default_value = "8MiB", value_parser = at_least(BUFFER_BYTES_MIN)
    )]
    wal_buffer_size: u64,

    /// Compression of WAL records
    ///
    /// zstd takes a fifth less space than snappy, but Prometheus 2.42 skips its records silently.
    #[arg(long, value_enum, value_name = "TYPE", default_value = "snappy")]
    wal_compression: WalCompression,

    /// Format of in-order float samples in the WAL
    ///
    /// Both formats are read, whichever is written. The log says at each start which one is
    /// written, and why.
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "auto")]
    wal_records: WalRecords,

    /// Maximum size of a WAL segment, a multiple of 32KiB
    ///
    /// The last records of a request may make a segment longer.
    #[arg(long, value_name = "BYTES", default_value_t = SEGMENT_BYTES_DEFAULT, value_parser = segment_size)]
    wal_segment_size: u64,

    /// Write a snapshot of the head on a clean stop
    ///
    /// The next start loads it instead of replaying the WAL. It takes about 400 bytes a series at
    /// each stop. Use --head-snapshot=false to reduce wear of flash.
    #[arg(
        long, value_name = "BOOL", default_value_t = true, default_missing_value = "true",
        num_args = 0..=1, require_equals = true, action = ArgAction::Set
    )]
    pub head_snapshot: bool,

    /// Maximum size of quarantined WAL segments; the oldest are deleted first
    ///
    /// Damaged segments, and logs whose replay failed, are moved to DIR/set-aside. 0 keeps only
    /// the newest log whose replay failed.
    #[arg(long, alias = "set-aside-size", value_name = "BYTES", default_value_t = QUARANTINE_BYTES_DEFAULT, value_parser = bytes)]
    pub quarantine_size: u64,

    /// Failed replays after which the WAL is quarantined, 0 for never
    ///
    /// Only consecutive starts count whose replay failed at the same place. Kills and power cuts
    /// do not count. The node then serves without the quarantined log.
    #[arg(long, value_name = "COUNT", default_value_t = 3)]
    pub max_failed_starts: u32,
}

impl WalFlags {
    pub const MARKS: Marks = Marks {
        short: &["wal-sync"],
        prometheus: &[
            ("storage.tsdb.wal-compression-type", "wal-compression"),
            ("storage.tsdb.wal-segment-size", "wal-segment-size"),
        ],
        ..Marks::NONE
    };

    pub fn options(&self) -> WalOptions {
        let sync = match self.wal_sync {
            WalSync::Off => SyncPolicy::Off,
            WalSync::Interval => {
                SyncPolicy::Interval(self.wal_sync_interval.unwrap_or(SYNC_INTERVAL_DEFAULT))
            }
            WalSync::Always => SyncPolicy::Always,
            WalSync::Batch => SyncPolicy::Batch {
                interval: self.wal_sync_interval.unwrap_or(BATCH_INTERVAL_DEFAULT),
                bytes_max: size(self.wal_buffer_size),
            },
        };
        let compression = match self.wal_compression {
            WalCompression::None => Compression::None,
            WalCompression::Snappy => Compression::Snappy,
            WalCompression::Zstd => Compression::Zstd,
        };
        WalOptions { segment_bytes_max: self.wal_segment_size, compression, sync }
    }

    /// Returns the format of float samples; `None` leaves the choice to the data directory.
    pub fn record_format(&self) -> Option<RecordFormat> {
        match self.wal_records {
            WalRecords::Auto => None,
            WalRecords::Prometheus => Some(RecordFormat::Prometheus),
            WalRecords::Columns => Some(RecordFormat::Columns),
        }
    }
}

// The help of --wal-sync explains the values; a list here would repeat it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum WalSync {
    Off,
    Interval,
    Always,
    Batch,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum WalCompression {
    None,
    Snappy,
    Zstd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum WalRecords {
    /// Columns in a directory that tidepool made or whose log has columns, unless Prometheus has
    /// worked there since; prometheus in all others
    Auto,
    /// Prometheus' records; it can take over the directory at any time
    Prometheus,
    /// Column records, a fifth of the size, which only tidepool reads; run `tidepool tsdb compact
    /// --head` before going back to Prometheus
    Columns,
}
