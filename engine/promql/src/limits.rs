//! What a query may take.

/// Limits of one query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Memory for what the query holds: columns, accumulators, labels, windows, waiting results.
    pub bytes_max: usize,
    /// Samples that may be held at once; a histogram counts by its size.
    pub samples_max: u64,
    /// Steps of a query, and of a subquery.
    pub steps_max: u64,
    /// How deep expressions may be nested.
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

/// What is limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Bytes of memory.
    Bytes,
    /// Samples held at once.
    Samples,
    /// Steps.
    Steps,
    /// Levels of nesting.
    Depth,
    /// Bytes of a label's value.
    LabelBytes,
}
