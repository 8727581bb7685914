//! Determines the format of a body from its content type. A format is never guessed, because
//! timestamps are seconds in OpenMetrics, but milliseconds in the classic text format.
//!
//! Source: `extractMediaType` in `model/textparse/interface.go` of prometheus/prometheus.

use crate::protocol::Protocol;
use tidepool_exposition::Format;

/// Longest content type that a message shows, in characters.
const SHOWN_CHARS: usize = 200;

/// Reasons why the format of a body is unknown. Setting `fallback_scrape_protocol` for the job
/// resolves each of them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ContentTypeError {
    #[error(
        "the target sends no Content-Type: set fallback_scrape_protocol of its job to the format that it speaks, such as PrometheusText0.0.4"
    )]
    Missing,
    #[error(
        "the target sends an invalid Content-Type {0:?}: set fallback_scrape_protocol of its job to the format that it speaks, such as PrometheusText0.0.4"
    )]
    Invalid(String),
    #[error(
        "the target sends the unsupported Content-Type {0:?}: if its body is one of metrics, set fallback_scrape_protocol of its job to their format, such as PrometheusText0.0.4"
    )]
    Unsupported(String),
}

/// Returns the format of a content type, or the fallback's format if the content type is unknown.
pub fn format_of(
    content_type: Option<&[u8]>,
    fallback: Option<Protocol>,
) -> Result<Format, ContentTypeError> {
    stated(content_type).or_else(|error| fallback.map(format_of_protocol).ok_or(error))
}

fn format_of_protocol(protocol: Protocol) -> Format {
    match protocol {
        Protocol::PrometheusProto => Format::Protobuf,
        Protocol::OpenMetricsText1_0_0 | Protocol::OpenMetricsText0_0_1 => Format::Openmetrics,
        Protocol::PrometheusText1_0_0 | Protocol::PrometheusText0_0_4 => Format::Prometheus,
    }
}

fn stated(content_type: Option<&[u8]>) -> Result<Format, ContentTypeError> {
    let content_type = content_type.unwrap_or_default();
    // As upstream, an empty header is treated as missing.
    if content_type.is_empty() {
        return Err(ContentTypeError::Missing);
    }
    let shown = || String::from_utf8_lossy(content_type).chars().take(SHOWN_CHARS).collect();
    let invalid = || ContentTypeError::Invalid(shown());
    let text = std::str::from_utf8(content_type).map_err(|_| invalid())?;
    let (media_type, parameters) = text.split_once(';').unwrap_or((text, ""));
    let media_type = media_type.trim().to_ascii_lowercase();
    if !is_media_type(&media_type) || !are_parameters(parameters) {
        return Err(invalid());
    }
    match media_type.as_str() {
        "text/plain" => Ok(Format::Prometheus),
        "application/vnd.google.protobuf" => Ok(Format::Protobuf),
        // OpenMetrics 2.0 is experimental, and scrapes do not request it.
        "application/openmetrics-text" if version(parameters) != Some("2.0.0") => {
            Ok(Format::Openmetrics)
        }
        _ => Err(ContentTypeError::Unsupported(shown())),
    }
}

fn is_token(text: &str) -> bool {
    let is_mark = |byte: u8| b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || is_mark(byte))
}

fn is_media_type(text: &str) -> bool {
    // Go's `mime.ParseMediaType`, which upstream uses, accepts a type without a subtype.
    match text.split_once('/') {
        Some((kind, subtype)) => is_token(kind) && is_token(subtype),
        None => is_token(text),
    }
}

/// Yields names and values without quotes. Yields `None` for a malformed parameter; skips empty
/// parameters.
fn parameters(text: &str) -> impl Iterator<Item = Option<(&str, &str)>> {
    let parts = text.split(';').map(str::trim).filter(|part| !part.is_empty());
    parts.map(|part| {
        let (name, value) = part.split_once('=')?;
        let (name, value) = (name.trim(), value.trim());
        let inner = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
        (is_token(name) && (inner.is_some() || is_token(value)))
            .then_some((name, inner.unwrap_or(value)))
    })
}

fn are_parameters(text: &str) -> bool {
    parameters(text).all(|parameter| parameter.is_some())
}

fn version(text: &str) -> Option<&str> {
    let mut versions = parameters(text).flatten();
    versions.find(|(name, _)| name.eq_ignore_ascii_case("version")).map(|(_, version)| version)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Follows the upstream test TestNewParser in `model/textparse/interface_test.go`.
    #[test]
    fn content_types_are_those_of_upstream() {
        let no = "unsupported";
        let bad = "invalid";
        let cases = [
            ("", Some(Protocol::PrometheusText0_0_4), Ok(Format::Prometheus)),
            ("", Some(Protocol::OpenMetricsText0_0_1), Ok(Format::Openmetrics)),
            ("", Some(Protocol::PrometheusProto), Ok(Format::Protobuf)),
            ("", None, Err("no Content-Type")),
            ("invalid/invalid/invalid", None, Err(bad)),
            (
                "invalid/invalid/invalid",
                Some(Protocol::PrometheusText1_0_0),
                Ok(Format::Prometheus),
            ),
            ("application/openmetrics-text", None, Ok(Format::Openmetrics)),
            (
                "Application/OpenMetrics-text; version=1.0.0; charset=utf-8",
                None,
                Ok(Format::Openmetrics),
            ),
            ("application/openmetrics-text; version=2.0.0", None, Err(no)),
            ("application/openmetrics-text; ", None, Ok(Format::Openmetrics)),
            ("application/openmetrics-text; =", None, Err(bad)),
            (
                "application/openmetrics-text; version=1.0.0",
                Some(Protocol::PrometheusText0_0_4),
                Ok(Format::Openmetrics),
            ),
            ("text/plain", None, Ok(Format::Prometheus)),
            ("text/plain; version=0.0.4; charset=\"utf-8\"", None, Ok(Format::Prometheus)),
            ("text/plain; version", None, Err(bad)),
            ("text/html", None, Err(no)),
            ("application/json", Some(Protocol::PrometheusText0_0_4), Ok(Format::Prometheus)),
            (
                "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited",
                None,
                Ok(Format::Protobuf),
            ),
        ];
        for (content_type, fallback, expected) in cases {
            let found = format_of(Some(content_type.as_bytes()), fallback);
            match expected {
                Ok(format) => assert_eq!(found, Ok(format), "{content_type}"),
                Err(part) => {
                    let text = found.unwrap_err().to_string();
                    assert!(text.contains(part), "{content_type}: {text}");
                    assert!(text.contains("fallback_scrape_protocol"), "{text}");
                }
            }
        }
        assert_eq!(format_of(None, None), Err(ContentTypeError::Missing));
    }
}
