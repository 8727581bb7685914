//! Names, help texts and units of the counters of disks.

use crate::sink::Kind;

/// Number of counts per disk in the newest kernels.
pub(super) const COUNTS: usize = 17;
const SECTOR_BYTES: f64 = 512.0;
const SECONDS_PER_MILLI: f64 = 1.0 / 1000.0;

/// Name, help, kind and unit factor of each count, in the order of the file.
pub(super) const FAMILIES: [(&str, &str, Kind, f64); COUNTS] = [
    (
        "node_disk_reads_completed_total",
        "The total number of reads completed successfully.",
        Kind::Counter,
        1.0,
    ),
    ("node_disk_reads_merged_total", "The total number of reads merged.", Kind::Counter, 1.0),
    (
        "node_disk_read_bytes_total",
        "The total number of bytes read successfully.",
        Kind::Counter,
        SECTOR_BYTES,
    ),
    (
        "node_disk_read_time_seconds_total",
        "The total number of seconds spent by all reads.",
        Kind::Counter,
        SECONDS_PER_MILLI,
    ),
    (
        "node_disk_writes_completed_total",
        "The total number of writes completed successfully.",
        Kind::Counter,
        1.0,
    ),
    ("node_disk_writes_merged_total", "The number of writes merged.", Kind::Counter, 1.0),
    (
        "node_disk_written_bytes_total",
        "The total number of bytes written successfully.",
        Kind::Counter,
        SECTOR_BYTES,
    ),
    (
        "node_disk_write_time_seconds_total",
        "This is the total number of seconds spent by all writes.",
        Kind::Counter,
        SECONDS_PER_MILLI,
    ),
    ("node_disk_io_now", "The number of I/Os currently in progress.", Kind::Gauge, 1.0),
    (
        "node_disk_io_time_seconds_total",
        "Total seconds spent doing I/Os.",
        Kind::Counter,
        SECONDS_PER_MILLI,
    ),
    (
        "node_disk_io_time_weighted_seconds_total",
        "The weighted # of seconds spent doing I/Os.",
        Kind::Counter,
        SECONDS_PER_MILLI,
    ),
    (
        "node_disk_discards_completed_total",
        "The total number of discards completed successfully.",
        Kind::Counter,
        1.0,
    ),
    ("node_disk_discards_merged_total", "The total number of discards merged.", Kind::Counter, 1.0),
    (
        "node_disk_discarded_sectors_total",
        "The total number of sectors discarded successfully.",
        Kind::Counter,
        1.0,
    ),
    (
        "node_disk_discard_time_seconds_total",
        "This is the total number of seconds spent by all discards.",
        Kind::Counter,
        SECONDS_PER_MILLI,
    ),
    (
        "node_disk_flush_requests_total",
        "The total number of flush requests completed successfully",
        Kind::Counter,
        1.0,
    ),
    (
        "node_disk_flush_requests_time_seconds_total",
        "This is the total number of seconds spent by all flush requests.",
        Kind::Counter,
        SECONDS_PER_MILLI,
    ),
];

/// Property in udev's database, and name and help of its family.
pub(super) const ATA_FAMILIES: [(&str, &str, &str); 3] = [
    ("ID_ATA_WRITE_CACHE", "node_disk_ata_write_cache", "ATA disk has a write cache."),
    (
        "ID_ATA_WRITE_CACHE_ENABLED",
        "node_disk_ata_write_cache_enabled",
        "ATA disk has its write cache enabled.",
    ),
    (
        "ID_ATA_ROTATION_RATE_RPM",
        "node_disk_ata_rotation_rate_rpm",
        "ATA disk rotation rate in RPMs (0 for SSDs).",
    ),
];
