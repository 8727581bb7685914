//! Limits of memory, samples, steps and depth of a query.

/// Limits of one query; exceeding a limit ends the query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of memory for columns, accumulators, labels, windows and queued results.
    pub bytes_max: usize,
    /// Samples in memory at the same time; a histogram counts as several samples.
    pub samples_max: u64,
    /// Maximum number of steps of a query or of a subquery.
    pub steps_max: u64,
    /// Maximum nesting of an expression, in levels.
    pub depth_max: usize,
}

impl Default for Limits {
    /// 512 MiB, 50 million samples, ten million steps, 200 levels.
    fn default() -> Limits {
        Limits {
            bytes_max: 512 << 20,
            samples_max: 50_000_000,
            steps_max: 10_000_000,
            depth_max: 200,
        }
    }
}

/// The resource that a limit bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Bytes of memory of one query.
    Bytes,
    /// Samples in memory at the same time.
    Samples,
    /// Steps of a query or of a subquery.
    Steps,
    /// Levels of nesting of an expression.
    Depth,
    /// Bytes of one label value.
    LabelBytes,
}
