//! The largest that is read.

/// Longest line that is read, or sample with line breaks in its labels, in bytes.
pub const LINE_BYTES_MAX: usize = 1024 * 1024;

/// Largest message of a family that is read.
pub const FAMILY_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Largest message of one metric that is decoded: as long as a line of a text may be.
pub const METRIC_BYTES_MAX: usize = LINE_BYTES_MAX;

/// Most fields of a metric that is decoded, with those of its histogram or summary: two bytes can
/// make a hundred and more in memory.
pub const METRIC_FIELDS_MAX: usize = 64 * 1024;

/// Buckets of one histogram that are gathered; further ones make it wrong.
pub const CLASSIC_BUCKETS_MAX: usize = 16 * 1024;
