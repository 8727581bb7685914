//! Limits of the parsers; larger input is refused.

/// Length limit of a line, or of a sample with line breaks in its labels, in bytes.
pub const LINE_BYTES_MAX: usize = 1024 * 1024;

/// Size limit of the message of a family, in bytes.
pub const FAMILY_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Size limit of the message of one metric: the same as for a line of a text.
pub const METRIC_BYTES_MAX: usize = LINE_BYTES_MAX;

/// Limit on the fields of a metric, those of its histogram or summary included: two bytes of a
/// field can take a hundred and more in memory.
pub const METRIC_FIELDS_MAX: usize = 64 * 1024;

/// Limit on the buckets of one classic histogram; one with more is refused.
pub const CLASSIC_BUCKETS_MAX: usize = 16 * 1024;
