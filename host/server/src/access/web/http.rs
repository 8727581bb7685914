//! The section `http_server_config` of the web configuration.

use hyper::header::{HeaderName, HeaderValue};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use tidepool_settings::yaml;

/// Headers that may be added, with the permitted values if they are restricted.
const HEADERS: [(&str, &[&str]); 5] = [
    ("Content-Security-Policy", &[]),
    ("Strict-Transport-Security", &[]),
    ("X-Content-Type-Options", &["nosniff"]),
    ("X-Frame-Options", &["deny", "sameorigin"]),
    ("X-XSS-Protection", &[]),
];

#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct HttpServerConfig {
    pub http2: bool,
    #[serde(deserialize_with = "headers")]
    pub headers: Vec<(HeaderName, HeaderValue)>,
}

impl Default for HttpServerConfig {
    fn default() -> HttpServerConfig {
        HttpServerConfig { http2: true, headers: Vec::new() }
    }
}

fn headers<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<(HeaderName, HeaderValue)>, D::Error> {
    let pairs: Vec<(String, String)> = yaml::pairs(deserializer)?;
    // Only these headers, as in upstream: others could break responses or their framing.
    let header = |(name, value): (String, String)| {
        let Some((_, values)) = HEADERS.iter().find(|(known, _)| *known == name) else {
            let known = HEADERS.map(|(known, _)| known).join(", ");
            return Err(format!("{name} cannot be set; supported headers: {known}"));
        };
        if !values.is_empty() && !values.contains(&value.as_str()) {
            return Err(format!("{name}: expected one of {}", values.join(", ")));
        }
        let wrong = |_| format!("{name}: not a valid header value");
        let value = HeaderValue::from_str(&value).map_err(wrong)?;
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|error| error.to_string())?;
        Ok((name, value))
    };
    pairs.into_iter().map(header).collect::<Result<_, _>>().map_err(D::Error::custom)
}
