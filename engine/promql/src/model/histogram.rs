//! A native histogram as a plain value; `crate::histogram` computes with histograms.

pub use tidepool_model::buckets::CUSTOM_BUCKETS_SCHEMA;

/// A run of adjacent buckets of a histogram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Buckets left out since the previous span; for the first span the index of its first bucket.
    pub offset: i32,
    /// Number of buckets in the run.
    pub length: u32,
}

/// Information about a counter reset since the previous histogram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CounterReset {
    /// Unknown; the reader must compare both histograms.
    #[default]
    Unknown,
    /// The counter was reset before this histogram.
    Reset,
    /// The counter was not reset before this histogram.
    NotReset,
    /// The histogram is a gauge, not a counter.
    Gauge,
}

/// A native histogram with fractional counts. All counts are absolute, not differences.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histogram {
    /// Information about a counter reset before this histogram.
    pub counter_reset: CounterReset,
    /// Resolution of the exponential buckets, or [`CUSTOM_BUCKETS_SCHEMA`].
    pub schema: i32,
    /// Largest absolute value that the zero bucket includes.
    pub zero_threshold: f64,
    /// Number of observations in the zero bucket.
    pub zero_count: f64,
    /// Number of observations in all buckets.
    pub count: f64,
    /// Sum of all observed values.
    pub sum: f64,
    /// Buckets of positive observations; with custom bounds, all buckets.
    pub positive_spans: Vec<Span>,
    /// Counts of the buckets in `positive_spans`.
    pub positive_buckets: Vec<f64>,
    /// Buckets of negative observations, by absolute value.
    pub negative_spans: Vec<Span>,
    /// Counts of the buckets in `negative_spans`.
    pub negative_buckets: Vec<f64>,
    /// Upper bounds of custom buckets, ascending, without the infinite bound of the last bucket.
    pub custom_values: Vec<f64>,
}
