//! What can be chosen of the write-ahead log.

use clap::ValueEnum;

/// When the write-ahead log is forced to the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum WalSync {
    /// When the system likes: survives a crash or kill of the process, not a power cut
    Off,
    /// Every --wal-sync-interval: a power cut costs at most that much
    Interval,
    /// Before each answer: what was acknowledged survives a power cut
    Always,
    /// Kept in memory, written and forced to the device every --wal-sync-interval: spares flash. A
    /// crash or kill of the process costs as much as a power cut, at most that interval; a clean
    /// stop costs nothing
    Batch,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum WalCompression {
    None,
    Snappy,
    Zstd,
}

/// How samples lie in the write-ahead log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum WalRecords {
    /// As Prometheus writes them, so that it can take over at any moment
    Prometheus,
    /// By columns, in about a fifth of the bytes. Prometheus and its tools see nothing of them: before
    /// going back to it, stop tidepool and run `tidepool tsdb compact --head`
    Columns,
}
