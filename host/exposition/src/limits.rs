//! Limits of the parsers; larger input is an error.

/// Maximum length of a line, or of a sample with line breaks in its labels, in bytes.
pub const LINE_BYTES_MAX: usize = 1024 * 1024;

/// Maximum size of the message of a family, in bytes.
pub const FAMILY_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Maximum size of the message of one metric, in bytes: the same as for a line of a text.
pub const METRIC_BYTES_MAX: usize = LINE_BYTES_MAX;

/// Maximum number of fields of a metric, including those of its histogram or summary. Two bytes of
/// a field can need more than a hundred bytes in memory.
pub const METRIC_FIELDS_MAX: usize = 64 * 1024;

/// Maximum number of buckets of a classic histogram; more buckets are an error.
pub const CLASSIC_BUCKETS_MAX: usize = 16 * 1024;
