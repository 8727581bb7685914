//! Parses Prometheus' protobuf format: metric families, each after its length.
//!
//! ```text
//! varint length │ MetricFamily │ varint length │ MetricFamily │ …
//! ```
//!
//! The items have the order of upstream's parser (`model/textparse/protobufparse.go` in
//! prometheus/prometheus): help, unit and type of a family, then its metrics; for a histogram or
//! summary the count, the sum, then the buckets or quantiles. Unlike upstream, a native histogram
//! always keeps its exemplars, and the first metric is decoded before the items of its family are
//! returned.

mod family;
mod parser;
mod series;

#[cfg(test)]
mod tests;

/// The messages, generated from `proto/io/prometheus/client/metrics.proto`.
#[allow(missing_docs, dead_code, clippy::all)]
pub mod client {
    include!(concat!(env!("OUT_DIR"), "/io.prometheus.client.rs"));
}

pub use parser::ProtobufParser;

/// Options for histograms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HistogramOptions {
    /// Whether native histograms are skipped, and the classic ones sent with them used.
    pub ignores_native: bool,
    /// Whether classic histograms are kept in addition to native ones.
    pub keeps_classic: bool,
    /// Whether classic histograms without a native one are converted to custom bounds.
    pub converts_classic: bool,
}
