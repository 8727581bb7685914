//! A native histogram as a plain value; what is computed with it is in `crate::histogram`.

pub use tidepool_model::buckets::CUSTOM_BUCKETS_SCHEMA;

/// A run of neighbouring buckets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Buckets left out since the span before; for the first span the index of its first bucket.
    pub offset: i32,
    /// How many buckets there are.
    pub length: u32,
}

/// What is known about the counter since the histogram before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CounterReset {
    /// Nothing; whoever reads must compare.
    #[default]
    Unknown,
    /// The counter was reset with this histogram.
    Reset,
    /// The counter went on.
    NotReset,
    /// Not a counter at all.
    Gauge,
}

/// A native histogram with fractional counts. All counts are absolute, none is a difference.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histogram {
    /// What is known about the counter.
    pub counter_reset: CounterReset,
    /// How wide buckets are: powers of two, or [`CUSTOM_BUCKETS_SCHEMA`].
    pub schema: i32,
    /// Largest absolute value that the zero bucket counts.
    pub zero_threshold: f64,
    /// Observations in the zero bucket.
    pub zero_count: f64,
    /// Number of observations.
    pub count: f64,
    /// Sum of all observations.
    pub sum: f64,
    /// Buckets of positive observations; with custom bounds, all buckets.
    pub positive_spans: Vec<Span>,
    /// Counts of `positive_spans`.
    pub positive_buckets: Vec<f64>,
    /// Buckets of negative observations, by absolute value.
    pub negative_spans: Vec<Span>,
    /// Counts of `negative_spans`.
    pub negative_buckets: Vec<f64>,
    /// Upper bounds of custom buckets, ascending, without the last one, which is infinite.
    pub custom_values: Vec<f64>,
}
