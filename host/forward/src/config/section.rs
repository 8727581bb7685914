//! An item of the section `remote_write`, with the keys of the configuration file.

use super::rule::relabel_rule;
use super::{BacklogConfig, DestinationConfig, MetadataConfig, QueueConfig, ReceiverUrl};
use hyper::header::{HeaderName, HeaderValue};
use serde::de::{Error as _, IgnoredAny};
use serde::{Deserialize, Deserializer};
use std::str::FromStr as _;
use std::time::Duration;
use tidepool_client::HttpClientConfig;
use tidepool_runtime::RemoteWriteVersion;
use tidepool_settings::duration::read_duration_if_any;
use tidepool_settings::{RelabelConfig, yaml};

/// Headers that every request sets itself, so that they cannot be configured.
const OWN_HEADERS: [&str; 8] = [
    "authorization",
    "content-encoding",
    "content-length",
    "content-type",
    "host",
    "transfer-encoding",
    "user-agent",
    "x-prometheus-remote-write-version",
];

/// One destination: the keys common to all HTTP clients, and the keys of this section.
pub(super) type FullSection = yaml::With<HttpClientConfig, Section>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Section {
    url: ReceiverUrl,
    #[serde(default, deserialize_with = "name")]
    name: Option<String>,
    #[serde(default, deserialize_with = "read_duration_if_any")]
    remote_timeout: Option<Duration>,
    #[serde(default, deserialize_with = "yaml::pairs")]
    headers: Vec<(OwnHeader, HeaderText)>,
    #[serde(default)]
    write_relabel_configs: Vec<RelabelConfig>,
    #[serde(default, deserialize_with = "version")]
    protobuf_message: Option<RemoteWriteVersion>,
    #[serde(default)]
    send_exemplars: bool,
    #[serde(default)]
    send_native_histograms: bool,
    #[serde(default, deserialize_with = "yaml::checked::<_, QueueConfig, _>")]
    queue_config: Option<CheckedQueue>,
    #[serde(default)]
    metadata_config: MetadataConfig,
    #[serde(default)]
    backlog: BacklogConfig,
    #[serde(default, deserialize_with = "no_round_robin", rename = "round_robin_dns")]
    _round_robin_dns: (),
    #[serde(default, deserialize_with = "no_signatures", rename = "sigv4")]
    _sigv4: (),
    #[serde(default, deserialize_with = "no_signatures", rename = "azuread")]
    _azuread: (),
    #[serde(default, deserialize_with = "no_signatures", rename = "google_iam")]
    _google_iam: (),
}

/// A header name that users may add.
#[derive(Deserialize)]
#[serde(try_from = "String")]
struct OwnHeader(HeaderName);

/// The value of an added header.
#[derive(Deserialize)]
#[serde(try_from = "String")]
struct HeaderText(HeaderValue);

/// Queue settings that are consistent with each other.
struct CheckedQueue(QueueConfig);

/// Returns the HTTP settings with this section's defaults: as in upstream, HTTP/2 is off and
/// redirects are not followed.
pub(super) fn http_config(mut http: HttpClientConfig) -> HttpClientConfig {
    http.enable_http2.get_or_insert(false);
    // Some redirects turn a POST into a GET, which loses the samples of the request.
    http.follow_redirects = Some(false);
    http
}

impl TryFrom<FullSection> for DestinationConfig {
    type Error = &'static str;

    fn try_from(whole: FullSection) -> Result<DestinationConfig, &'static str> {
        let yaml::With { part: http, rest: section } = whole;
        if http.follow_redirects == Some(true) {
            return Err(
                "follow_redirects: remote write follows none, as some would lose samples; \
                        give the receiver's own URL",
            );
        }
        let defaults = DestinationConfig::new(section.url);
        let headers = section.headers.into_iter().map(|(name, value)| (name.0, value.0));
        Ok(DestinationConfig {
            name: section.name.unwrap_or(defaults.name),
            remote_timeout: section.remote_timeout.unwrap_or(defaults.remote_timeout),
            headers: headers.collect(),
            rules: section.write_relabel_configs.into_iter().map(relabel_rule).collect(),
            version: section.protobuf_message.unwrap_or(defaults.version),
            send_exemplars: section.send_exemplars,
            send_native_histograms: section.send_native_histograms,
            http: http_config(http),
            queue: section.queue_config.map_or(defaults.queue, |CheckedQueue(queue)| queue),
            metadata: section.metadata_config,
            backlog: section.backlog,
            ..defaults
        })
    }
}

fn no_round_robin<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(), D::Error> {
    match bool::deserialize(deserializer)? {
        false => Ok(()),
        true => Err(D::Error::custom(
            "not supported: each connection tries the addresses of the name one after the other",
        )),
    }
}

fn no_signatures<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(), D::Error> {
    IgnoredAny::deserialize(deserializer)?;
    Err(D::Error::custom("not supported: give the URL of a proxy that signs requests"))
}

/// Reads a name that can be part of a file name.
fn name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    yaml::parsed(deserializer, |text| match text {
        "" => Ok(None),
        text if text.len() <= 64 && text.chars().all(is_plain) => Ok(Some(text.to_owned())),
        _ => Err("expected up to 64 letters, digits, `-`, `_` and `.`"),
    })
}

fn version<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<RemoteWriteVersion>, D::Error> {
    yaml::parsed(deserializer, |text| match text {
        "prometheus.WriteRequest" => Ok(Some(RemoteWriteVersion::V1)),
        "io.prometheus.write.v2.Request" => Ok(Some(RemoteWriteVersion::V2)),
        _ => Err("expected prometheus.WriteRequest or io.prometheus.write.v2.Request"),
    })
}

impl TryFrom<String> for OwnHeader {
    type Error = String;

    fn try_from(name: String) -> Result<OwnHeader, String> {
        if OWN_HEADERS.contains(&name.to_ascii_lowercase().as_str()) {
            return Err("this header cannot be set here: each request has one anyway".into());
        }
        HeaderName::from_str(&name).map(OwnHeader).map_err(|error| error.to_string())
    }
}

impl TryFrom<String> for HeaderText {
    type Error = hyper::header::InvalidHeaderValue;

    fn try_from(text: String) -> Result<HeaderText, Self::Error> {
        let mut value = HeaderValue::from_str(&text)?;
        // The value may be an API key of the receiver, which must not be shown.
        value.set_sensitive(true);
        Ok(HeaderText(value))
    }
}

impl TryFrom<QueueConfig> for CheckedQueue {
    type Error = &'static str;

    fn try_from(queue: QueueConfig) -> Result<CheckedQueue, &'static str> {
        if queue.min_shards > queue.max_shards {
            return Err("min_shards is larger than max_shards");
        }
        match queue.min_backoff > queue.max_backoff {
            true => Err("max_backoff must not be less than min_backoff"),
            false => Ok(CheckedQueue(queue)),
        }
    }
}
