//! Prometheus' protobuf format: metric families, each behind its length.
//!
//! ```text
//! varint length │ MetricFamily │ varint length │ MetricFamily │ …
//! ```
//!
//! Items have the order of upstream's parser (`model/textparse/protobufparse.go` in
//! prometheus/prometheus): help, unit and type of a family, then its metrics; of a histogram or
//! summary the count, the sum, then the buckets or quantiles. Unlike there, a native histogram
//! keeps its exemplars whatever precedes it, and the first metric is decoded before the items of
//! its family are returned.

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

/// Options for the treatment of histograms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HistogramOptions {
    /// Native histograms are skipped, and the classic ones sent with them are used.
    pub ignores_native: bool,
    /// Classic histograms are kept beside native ones.
    pub keeps_classic: bool,
    /// Classic histograms without a native one are converted to custom bounds.
    pub converts_classic: bool,
}
