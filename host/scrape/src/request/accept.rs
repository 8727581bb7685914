//! The formats that a scrape asks for.
//!
//! Source: `acceptHeader` in `scrape/scrape.go` of prometheus/prometheus 3.15.

use crate::protocol::Protocol;
use std::fmt::Write as _;
use std::time::Duration;
use tidepool_exposition::NameEscaping;

/// Number of formats that Prometheus 3.15 knows, including OpenMetrics 2.0. The first format of a
/// request gets the quality (this number + 1) / 10.
const KNOWN_PROTOCOLS: usize = 6;

/// Returns the header `Accept`: the formats in order of decreasing quality, then `*/*`.
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

/// Returns the value of [`super::TIMEOUT_HEADER`].
pub fn timeout_header(timeout: Duration) -> String {
    timeout.as_secs_f64().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Follows the upstream test TestAcceptHeader of 3.15.
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
