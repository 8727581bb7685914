//! Types of metrics, and label pairs.

/// Names and values of labels, by ascending name.
pub type LabelPairs = Vec<(String, String)>;

/// Name of the label with the metric's name.
pub const METRIC_NAME: &str = "__name__";

/// Type of a metric family.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum MetricType {
    /// Unknown type; `untyped` in the classic format.
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
    /// One sample per state: 1 for states that are true, otherwise 0.
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
