//! The formats that a scrape asks for.
//!
//! Source: `acceptHeader` in `scrape/scrape.go` and `ScrapeProtocolsHeaders` in `config/config.go`
//! of prometheus/prometheus 3.15.

use std::fmt::Write as _;
use std::time::Duration;
use tidepool_exposition::NameEscaping;

/// Formats that Prometheus 3.15 knows, the one of OpenMetrics 2.0 among them. The quality of the
/// first format of a request follows from it.
const KNOWN_PROTOCOLS: usize = 6;

/// A format that a target may answer in (`scrape_protocols`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// `PrometheusProto`
    PrometheusProto,
    /// `OpenMetricsText1.0.0`
    OpenMetricsText1_0_0,
    /// `OpenMetricsText0.0.1`
    OpenMetricsText0_0_1,
    /// `PrometheusText1.0.0`
    PrometheusText1_0_0,
    /// `PrometheusText0.0.4`
    PrometheusText0_0_4,
}

impl Protocol {
    /// What is asked for without native histograms.
    pub const TEXTS: [Protocol; 4] = [
        Protocol::OpenMetricsText1_0_0,
        Protocol::OpenMetricsText0_0_1,
        Protocol::PrometheusText1_0_0,
        Protocol::PrometheusText0_0_4,
    ];

    /// The name in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Protocol::PrometheusProto => "PrometheusProto",
            Protocol::OpenMetricsText1_0_0 => "OpenMetricsText1.0.0",
            Protocol::OpenMetricsText0_0_1 => "OpenMetricsText0.0.1",
            Protocol::PrometheusText1_0_0 => "PrometheusText1.0.0",
            Protocol::PrometheusText0_0_4 => "PrometheusText0.0.4",
        }
    }

    fn media_type(self) -> &'static str {
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

    /// Whether the format can say how names are escaped.
    fn has_escaping(self) -> bool {
        matches!(self, Protocol::OpenMetricsText1_0_0 | Protocol::PrometheusText1_0_0)
    }
}

/// The header `Accept`: the formats by falling quality, then anything.
pub fn accept_header(protocols: &[Protocol], escaping: NameEscaping) -> String {
    let mut header = String::new();
    let mut quality = KNOWN_PROTOCOLS + 1;
    for protocol in protocols {
        header += protocol.media_type();
        // Writing to a string does not fail.
        if protocol.has_escaping() {
            let _ = write!(header, ";escaping={}", escaping.as_str());
        }
        let _ = write!(header, ";q=0.{quality},");
        quality = quality.saturating_sub(1);
    }
    let _ = write!(header, "*/*;q=0.{quality}");
    header
}

/// The value of [`super::TIMEOUT_HEADER`].
pub fn timeout_header(timeout: Duration) -> String {
    timeout.as_secs_f64().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Upstream: TestAcceptHeader of 3.15.
    #[test]
    fn formats_are_asked_for_as_upstream_does() {
        let with_proto = [&[Protocol::PrometheusProto][..], &Protocol::TEXTS].concat();
        let texts = |escaping, first: usize| {
            format!(
                "application/openmetrics-text;version=1.0.0;escaping={escaping};q=0.{first},\
                application/openmetrics-text;version=0.0.1;q=0.{},\
                text/plain;version=1.0.0;escaping={escaping};q=0.{},\
                text/plain;version=0.0.4;q=0.{},*/*;q=0.{}",
                first - 1,
                first - 2,
                first - 3,
                first - 4
            )
        };
        let proto = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;\
            encoding=delimited;q=0.7,";
        for (protocols, escaping, expected) in [
            (&Protocol::TEXTS[..], NameEscaping::Underscores, texts("underscores", 7)),
            (&with_proto, NameEscaping::Dots, proto.to_owned() + &texts("dots", 6)),
            (&Protocol::TEXTS, NameEscaping::AllowUtf8, texts("allow-utf-8", 7)),
            (&with_proto, NameEscaping::AllowUtf8, proto.to_owned() + &texts("allow-utf-8", 6)),
        ] {
            assert_eq!(accept_header(protocols, escaping), expected);
        }
    }

    #[test]
    fn timeouts_are_in_seconds() {
        let header = |ms| timeout_header(Duration::from_millis(ms));
        assert_eq!((header(10_000), header(1500)), ("10".to_owned(), "1.5".to_owned()));
    }
}
