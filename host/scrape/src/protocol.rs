//! The formats that a scrape may request.
//!
//! Source: `ScrapeProtocolsHeaders` in `config/config.go` of prometheus/prometheus 3.15.

/// A format that a scrape may request (`scrape_protocols`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protocol {
    PrometheusProto,
    OpenMetricsText1_0_0,
    OpenMetricsText0_0_1,
    PrometheusText1_0_0,
    PrometheusText0_0_4,
}

impl Protocol {
    /// Formats that are requested if native histograms are off.
    pub const TEXTS: [Protocol; 4] = [
        Protocol::OpenMetricsText1_0_0,
        Protocol::OpenMetricsText0_0_1,
        Protocol::PrometheusText1_0_0,
        Protocol::PrometheusText0_0_4,
    ];

    /// Returns the name in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Protocol::PrometheusProto => "PrometheusProto",
            Protocol::OpenMetricsText1_0_0 => "OpenMetricsText1.0.0",
            Protocol::OpenMetricsText0_0_1 => "OpenMetricsText0.0.1",
            Protocol::PrometheusText1_0_0 => "PrometheusText1.0.0",
            Protocol::PrometheusText0_0_4 => "PrometheusText0.0.4",
        }
    }

    /// Returns the media type for the header `Accept`, without a quality.
    pub(crate) fn media_type(self) -> &'static str {
        match self {
            Protocol::PrometheusProto => {
                "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"
            }
            Protocol::OpenMetricsText1_0_0 => "application/openmetrics-text;version=1.0.0",
            Protocol::OpenMetricsText0_0_1 => "application/openmetrics-text;version=0.0.1",
            Protocol::PrometheusText1_0_0 => "text/plain;version=1.0.0",
            Protocol::PrometheusText0_0_4 => "text/plain;version=0.0.4",
        }
    }

    /// Returns whether the media type has a parameter for the escaping of names.
    pub(crate) fn has_escaping(self) -> bool {
        // Upstream sends `escaping` with these two formats only.
        matches!(self, Protocol::OpenMetricsText1_0_0 | Protocol::PrometheusText1_0_0)
    }
}
