//! Types of metrics, and their labels.

/// Names and values of labels, by ascending name.
pub type LabelPairs = Vec<(String, String)>;

/// Name of the label that holds the metric name.
pub const METRIC_NAME: &str = "__name__";

/// Type of a metric family.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum MetricType {
    /// The type is not known; `untyped` in the classic format.
    #[default]
    Unknown,
    Counter,
    Gauge,
    Histogram,
    /// A histogram of current values, whose buckets may shrink.
    Gaugehistogram,
    Summary,
    /// Constant text in labels, with the value 1.
    Info,
    /// One sample for each state, 1 if it holds.
    Stateset,
}

impl MetricType {
    /// Returns the name that OpenMetrics and Prometheus' API use.
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
