//! What metrics are, and their labels.

/// Labels by ascending name.
pub type LabelPairs = Vec<(String, String)>;

/// The label that holds a metric's name.
pub const METRIC_NAME: &str = "__name__";

/// What a metric family is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum MetricType {
    /// Not known; `untyped` in the classic format.
    #[default]
    Unknown,
    /// Counts events.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counts observations in buckets.
    Histogram,
    /// The same, of what is there now.
    Gaugehistogram,
    /// Quantiles of observations.
    Summary,
    /// Says what does not change.
    Info,
    /// Which states hold.
    Stateset,
}

impl MetricType {
    /// As OpenMetrics and Prometheus' API write it.
    pub fn as_str(self) -> &'static str {
        match self {
            MetricType::Unknown => "unknown",
            MetricType::Counter => "counter",
            MetricType::Gauge => "gauge",
            MetricType::Histogram => "histogram",
            MetricType::Gaugehistogram => "gaugehistogram",
            MetricType::Summary => "summary",
            MetricType::Info => "info",
            MetricType::Stateset => "stateset",
        }
    }
}
