//! Remote write: the version of a request, and the headers of its answer.
//!
//! Source: Remote-Write 2.0 specification (2.0-rc.4), sections "Protocol" and "Required Written
//! Response Headers"; 1.0 for requests that name no message.

use super::media_type::MediaType;
use hyper::HeaderMap;
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderName};
use std::borrow::Cow;
use tidepool_runtime::{RefusalReason, RemoteWriteVersion, WriteOutcome};

/// Maximum number of refusals in an answer's text.
pub const REFUSALS_MAX: usize = 10;

/// Headers that report to a 2.0 sender how much was written.
pub const WRITTEN_HEADERS: [&str; 3] = [
    "x-prometheus-remote-write-samples-written",
    "x-prometheus-remote-write-histograms-written",
    "x-prometheus-remote-write-exemplars-written",
];

/// A content type or encoding that is not supported.
#[derive(Debug, thiserror::Error)]
pub enum NegotiationError {
    #[error(
        "content type {0:?} is not supported; use application/x-protobuf, with \
         proto=prometheus.WriteRequest or proto=io.prometheus.write.v2.Request"
    )]
    ContentType(String),
    #[error("content encoding {0:?} is not supported; use snappy")]
    ContentEncoding(String),
}

/// Returns the version of a request's message. A missing or empty content type means 1.0, a missing
/// or empty encoding means Snappy.
pub fn negotiate(headers: &HeaderMap) -> Result<RemoteWriteVersion, NegotiationError> {
    let mut version = None;
    for text in texts(headers, CONTENT_TYPE) {
        // A repeated header is accepted if all name the same message.
        let one = version_of(&text).filter(|one| version.is_none_or(|other| other == *one));
        version = Some(one.ok_or_else(|| NegotiationError::ContentType(text.into_owned()))?);
    }
    for text in texts(headers, CONTENT_ENCODING) {
        if !text.eq_ignore_ascii_case("snappy") {
            return Err(NegotiationError::ContentEncoding(text.into_owned()));
        }
    }
    Ok(version.unwrap_or(RemoteWriteVersion::V1))
}

/// Returns the values of all headers with a name, except for empty values.
fn texts(headers: &HeaderMap, name: HeaderName) -> impl Iterator<Item = Cow<'_, str>> {
    let values = headers.get_all(name).into_iter();
    let texts = values.map(|value| String::from_utf8_lossy(value.as_bytes().trim_ascii()));
    texts.filter(|text| !text.is_empty())
}

fn version_of(content_type: &str) -> Option<RemoteWriteVersion> {
    let media_type = MediaType::parse(content_type)?;
    let mut messages = media_type.values("proto");
    // Content types of remote write 1.0 have no parameter `proto`.
    let message = messages.next().unwrap_or("prometheus.WriteRequest");
    // Conflicting `proto` parameters are refused.
    if !media_type.is("application/x-protobuf") || messages.any(|other| other != message) {
        return None;
    }
    match message {
        "prometheus.WriteRequest" => Some(RemoteWriteVersion::V1),
        "io.prometheus.write.v2.Request" => Some(RemoteWriteVersion::V2),
        _ => None,
    }
}

/// Returns the text about refused rows: counts, then the first refusals with their reasons.
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

/// Returns whether a refusal may be temporary, so that the sender should retry.
pub fn may_clear(outcome: &WriteOutcome) -> bool {
    outcome.refusals.iter().any(|refusal| clears(refusal.reason))
}

/// Returns whether refusals for this reason may be temporary.
pub fn clears(reason: RefusalReason) -> bool {
    matches!(reason, RefusalReason::SeriesLimit | RefusalReason::MemoryLimit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;

    /// Returns the version for headers of these values.
    fn negotiated(
        types: &[&'static str],
        encodings: &[&'static str],
    ) -> Option<RemoteWriteVersion> {
        let types = types.iter().map(|value| (CONTENT_TYPE, HeaderValue::from_static(value)));
        let encodings =
            encodings.iter().map(|value| (CONTENT_ENCODING, HeaderValue::from_static(value)));
        let mut headers = HeaderMap::new();
        for (name, value) in types.chain(encodings) {
            headers.append(name, value);
        }
        negotiate(&headers).ok()
    }

    #[test]
    fn the_content_type_chooses_the_message() {
        let (v1, v2) = (Some(RemoteWriteVersion::V1), Some(RemoteWriteVersion::V2));
        assert_eq!(negotiated(&[], &[]), v1);
        assert_eq!(negotiated(&[""], &[]), v1);
        assert_eq!(negotiated(&["application/x-protobuf"], &[]), v1);
        assert_eq!(negotiated(&["application/x-protobuf;proto=prometheus.WriteRequest"], &[]), v1);
        let spaced = "Application/X-Protobuf ; Proto = \"io.prometheus.write.v2.Request\"; q=1";
        assert_eq!(negotiated(&[spaced], &[]), v2);
        assert_eq!(negotiated(&[spaced, spaced], &[]), v2);
        for wrong in [
            "application/json",
            "text/plain",
            "application/x-protobuf;proto=other",
            "application/x-protobuf;proto=\"prometheus.WriteRequest",
            "application/x-protobuf;proto=prometheus.writerequest",
            "application/x-protobuf;proto=prometheus.WriteRequest;proto=\
             io.prometheus.write.v2.Request",
        ] {
            assert_eq!(negotiated(&[wrong], &[]), None, "{wrong:?}");
        }
        assert_eq!(negotiated(&["application/x-protobuf", spaced], &[]), None);
    }

    #[test]
    fn only_snappy_is_spoken() {
        for encodings in [&["snappy"][..], &["Snappy"], &[""], &["snappy", "snappy"]] {
            assert!(negotiated(&[], encodings).is_some(), "{encodings:?}");
        }
        for encodings in [&["gzip"][..], &["snappy, gzip"], &["snappy", "gzip"], &["identity"]] {
            assert_eq!(negotiated(&[], encodings), None, "{encodings:?}");
        }
    }
}
