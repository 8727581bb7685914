//! Parses the URL of a push: timestamp and labels for the pushed samples.
//!
//! ```text
//! ?timestamp=1700000000000&extra_label=site=north&extra_label=rack=7    as VictoriaMetrics
//! /metrics/job/backup/instance@base64/L2Rldi9zZGE                       as the Pushgateway
//! ```

use base64::Engine as _;
use base64::alphabet::URL_SAFE;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// Timestamp and labels of a push.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Push {
    /// Timestamp of samples without one.
    pub timestamp_ms: Option<i64>,
    /// Labels that all series get.
    pub labels: Vec<(String, String)>,
}

/// Faults in the URL of a push.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PushError {
    #[error("{0:?} is no path here; after it may come /metrics/job/JOB and pairs of /LABEL/VALUE")]
    Path(String),
    #[error("extra_label {0:?} is not of the form NAME=VALUE")]
    ExtraLabel(String),
    #[error("timestamp {0:?} is no time in milliseconds")]
    Timestamp(String),
}

/// Decoder in which padding is optional, as in the Pushgateway.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &URL_SAFE,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

impl Push {
    /// Parses the query, and the path after that of the handler.
    pub fn read(path: &str, query: &str) -> Result<Push, PushError> {
        let mut push = Push { timestamp_ms: None, labels: grouping(path)? };
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            match &*name {
                "timestamp" => {
                    let time = value.parse().map_err(|_| PushError::Timestamp(value.into()))?;
                    push.timestamp_ms = Some(time);
                }
                "extra_label" => {
                    let pair = value.split_once('=').filter(|(name, _)| !name.is_empty());
                    let Some((name, value)) = pair else {
                        return Err(PushError::ExtraLabel(value.into()));
                    };
                    push.labels.push((name.to_owned(), value.to_owned()));
                }
                _ => {}
            }
        }
        Ok(push)
    }
}

fn grouping(path: &str) -> Result<Vec<(String, String)>, PushError> {
    let path = path.strip_suffix('/').unwrap_or(path);
    if path.is_empty() {
        return Ok(Vec::new());
    }
    let wrong = || PushError::Path(path.to_owned());
    let parts = path.strip_prefix("/metrics/").ok_or_else(wrong)?;
    let parts: Vec<&str> = parts.split('/').collect();
    let (pairs, []) = parts.as_chunks::<2>() else { return Err(wrong()) };
    let mut labels = Vec::with_capacity(pairs.len());
    for [name, value] in pairs {
        let label = match name.strip_suffix("@base64") {
            Some(name) => {
                // The Pushgateway encodes an empty value as a single padding character.
                let value = if *value == "=" { "" } else { value };
                let value = BASE64.decode(value).ok().and_then(|v| String::from_utf8(v).ok());
                (name.to_owned(), value.ok_or_else(wrong)?)
            }
            None => (unescaped(name), unescaped(value)),
        };
        let is_job = label.0 == "job";
        // The Pushgateway requires the job as the first label, with a value.
        if labels.is_empty() != is_job || label.0.is_empty() || (is_job && label.1.is_empty()) {
            return Err(wrong());
        }
        labels.push(label);
    }
    Ok(labels)
}

/// Decodes percent escapes; a plus sign is kept.
fn unescaped(part: &str) -> String {
    // Escaped first, because these characters have other meanings in a form.
    let part = part.replace('+', "%2B").replace('&', "%26").replace('=', "%3D");
    form_urlencoded::parse(part.as_bytes()).map(|(name, _)| name.into_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_and_time_come_from_the_url() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let read = Push::read("", "extra_label=a%20b=c=d&timestamp=-5&other=x&extra_label=e=");
        let labels = vec![pair("a b", "c=d"), pair("e", "")];
        assert_eq!(read, Ok(Push { timestamp_ms: Some(-5), labels }));
        let path = "/metrics/job/a+b%2Fc/path@base64/L3Zhci90bXA/empty@base64/=/";
        let labels = vec![pair("job", "a+b/c"), pair("path", "/var/tmp"), pair("empty", "")];
        assert_eq!(Push::read(path, "").map(|push| push.labels), Ok(labels));
        assert_eq!(Push::read("/", ""), Ok(Push::default()));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for path in [
            "/x",
            "s",
            "/metrics",
            "/metrics/job",
            "/metrics/job/",
            "/metrics/instance/a",
            "/metrics/job/a/b",
            "/metrics/job/a/job/b",
            "/metrics/job@base64/*",
            "/metrics/job/a//b",
        ] {
            let read = Push::read(path, "");
            assert!(matches!(read, Err(PushError::Path(_))), "{path} {read:?}");
        }
        for query in ["extra_label=a", "extra_label==a", "timestamp=", "timestamp=1.5"] {
            assert!(Push::read("", query).is_err(), "{query}");
        }
    }
}
