//! Remote write: which version a request speaks, and what its answer says.
//!
//! Source: Remote-Write 2.0 specification (2.0-rc.4), sections "Protocol" and "Required Written
//! Response Headers"; 1.0 for requests that name no message.

use crate::wasm::{RefusalReason, RemoteWriteVersion, WriteOutcome};
use hyper::header::HeaderValue;

/// Names of the headers that tell a 2.0 sender what was written.
pub const WRITTEN_HEADERS: [&str; 3] = [
    "x-prometheus-remote-write-samples-written",
    "x-prometheus-remote-write-histograms-written",
    "x-prometheus-remote-write-exemplars-written",
];

/// A content type or encoding that is not spoken here.
#[derive(Debug, thiserror::Error)]
pub enum NegotiationError {
    /// Neither of the two messages.
    #[error(
        "content type {0:?} is not supported; use application/x-protobuf, with \
         proto=prometheus.WriteRequest or proto=io.prometheus.write.v2.Request"
    )]
    ContentType(String),
    /// Not Snappy.
    #[error("content encoding {0:?} is not supported; use snappy")]
    ContentEncoding(String),
}

/// Which message a request carries. No content type means 1.0, no encoding means Snappy.
pub fn negotiate(
    content_type: Option<&HeaderValue>,
    content_encoding: Option<&HeaderValue>,
) -> Result<RemoteWriteVersion, NegotiationError> {
    let version = match content_type {
        None => RemoteWriteVersion::V1,
        Some(value) => {
            let text = String::from_utf8_lossy(value.as_bytes());
            version_of(&text).ok_or_else(|| NegotiationError::ContentType(text.into_owned()))?
        }
    };
    match content_encoding {
        Some(value) if !value.as_bytes().trim_ascii().eq_ignore_ascii_case(b"snappy") => {
            let text = String::from_utf8_lossy(value.as_bytes()).into_owned();
            Err(NegotiationError::ContentEncoding(text))
        }
        _ => Ok(version),
    }
}

/// Reads a media type with parameters (RFC 9110, section 8.3.1).
fn version_of(content_type: &str) -> Option<RemoteWriteVersion> {
    let mut parts = content_type.split(';');
    if !parts.next()?.trim().eq_ignore_ascii_case("application/x-protobuf") {
        return None;
    }
    let mut version = RemoteWriteVersion::V1;
    for parameter in parts {
        let Some((name, value)) = parameter.split_once('=') else { continue };
        if name.trim().eq_ignore_ascii_case("proto") {
            version = match value.trim().trim_matches('"') {
                "prometheus.WriteRequest" => RemoteWriteVersion::V1,
                "io.prometheus.write.v2.Request" => RemoteWriteVersion::V2,
                _ => return None,
            };
        }
    }
    Some(version)
}

/// What a sender is told of refused rows: counts, then the first few with their reasons.
pub fn refusal_text(outcome: &WriteOutcome) -> String {
    let WriteOutcome { samples_written, histograms_written, exemplars_written, refused, .. } =
        outcome;
    let mut text = format!(
        "{samples_written} samples, {histograms_written} histograms and {exemplars_written} \
         exemplars written, {refused} rows refused:\n"
    );
    for refusal in &outcome.refusals {
        text.push_str(&refusal.detail);
        text.push('\n');
    }
    let described = outcome.refusals.len() as u64;
    if outcome.refused > described {
        text.push_str(&format!("and {} more\n", outcome.refused - described));
    }
    text
}

/// Whether time can cure what was refused, so that the sender should try again.
pub fn may_clear(outcome: &WriteOutcome) -> bool {
    let clears = [RefusalReason::SeriesLimit, RefusalReason::MemoryLimit];
    outcome.refusals.iter().any(|refusal| clears.contains(&refusal.reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn negotiated(content_type: &str) -> Option<RemoteWriteVersion> {
        let value = HeaderValue::from_str(content_type).expect("a header value");
        negotiate(Some(&value), None).ok()
    }

    #[test]
    fn the_content_type_chooses_the_message() {
        let (v1, v2) = (Some(RemoteWriteVersion::V1), Some(RemoteWriteVersion::V2));
        assert_eq!(negotiate(None, None).ok(), v1);
        assert_eq!(negotiated("application/x-protobuf"), v1);
        assert_eq!(negotiated("application/x-protobuf;proto=prometheus.WriteRequest"), v1);
        let spaced = "Application/X-Protobuf ; Proto = \"io.prometheus.write.v2.Request\"; q=1";
        assert_eq!(negotiated(spaced), v2);
        for wrong in ["application/json", "application/x-protobuf;proto=other", "", "text/plain"] {
            assert_eq!(negotiated(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn only_snappy_is_spoken() {
        for (encoding, spoken) in [("snappy", true), ("Snappy", true), ("gzip", false), ("", false)]
        {
            let value = HeaderValue::from_static(encoding);
            assert_eq!(negotiate(None, Some(&value)).is_ok(), spoken, "{encoding:?}");
        }
    }
}
