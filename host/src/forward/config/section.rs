//! An item of the section `remote_write`, as it stands in the file.

use super::rule::RuleConfig;
use super::{
    BacklogConfig, Credentials, DestinationConfig, MetadataConfig, QueueConfig, ReceiverUrl,
    Secret, TlsConfig,
};
use crate::prom::duration::read_duration;
use crate::wasm::{RelabelRule, RemoteWriteVersion};
use crate::yaml;
use hyper::header::{HeaderName, HeaderValue};
use serde::{Deserialize, Deserializer};
use std::path::PathBuf;
use std::str::FromStr as _;
use std::time::Duration;

/// Headers that requests have anyway.
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

/// One destination.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Section {
    url: ReceiverUrl,
    #[serde(default, deserialize_with = "name")]
    name: Option<String>,
    #[serde(default, deserialize_with = "timeout")]
    remote_timeout: Option<Duration>,
    #[serde(default, deserialize_with = "yaml::pairs")]
    headers: Vec<(OwnHeader, HeaderText)>,
    #[serde(default)]
    write_relabel_configs: Vec<RuleConfig>,
    #[serde(default, deserialize_with = "version")]
    protobuf_message: Option<RemoteWriteVersion>,
    #[serde(default)]
    send_exemplars: bool,
    #[serde(default)]
    send_native_histograms: bool,
    #[serde(default, deserialize_with = "checked::<_, BasicAuth, _>")]
    basic_auth: Option<Credentials>,
    #[serde(default, deserialize_with = "checked::<_, Authorization, _>")]
    authorization: Option<Credentials>,
    #[serde(default, deserialize_with = "checked::<_, TlsSection, _>")]
    tls_config: Option<TlsConfig>,
    #[serde(default, deserialize_with = "checked::<_, QueueConfig, _>")]
    queue_config: Option<CheckedQueue>,
    #[serde(default)]
    metadata_config: MetadataConfig,
    #[serde(default)]
    backlog: BacklogConfig,
}

/// A header that may be added.
#[derive(Deserialize)]
#[serde(try_from = "String")]
struct OwnHeader(HeaderName);

/// What a header says.
#[derive(Deserialize)]
#[serde(try_from = "String")]
struct HeaderText(HeaderValue);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BasicAuth {
    #[serde(default)]
    username: String,
    password: Option<String>,
    password_file: Option<PathBuf>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Authorization {
    r#type: Option<String>,
    credentials: Option<String>,
    credentials_file: Option<PathBuf>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TlsSection {
    ca_file: Option<PathBuf>,
    cert_file: Option<PathBuf>,
    key_file: Option<PathBuf>,
    server_name: Option<String>,
}

/// Queues whose parts go together.
struct CheckedQueue(QueueConfig);

impl TryFrom<Section> for DestinationConfig {
    type Error = &'static str;

    fn try_from(section: Section) -> Result<DestinationConfig, &'static str> {
        let credentials = match (section.basic_auth, section.authorization) {
            (Some(_), Some(_)) => {
                return Err("basic_auth and authorization: only one of them is allowed");
            }
            (one, other) => one.or(other).unwrap_or_default(),
        };
        let defaults = DestinationConfig::new(section.url);
        let headers = section.headers.into_iter().map(|(name, value)| (name.0, value.0));
        Ok(DestinationConfig {
            name: section.name.unwrap_or(defaults.name),
            remote_timeout: section.remote_timeout.unwrap_or(defaults.remote_timeout),
            headers: headers.collect(),
            rules: section.write_relabel_configs.into_iter().map(RelabelRule::from).collect(),
            version: section.protobuf_message.unwrap_or(defaults.version),
            send_exemplars: section.send_exemplars,
            send_native_histograms: section.send_native_histograms,
            credentials,
            tls: section.tls_config.unwrap_or_default(),
            queue: section.queue_config.map_or(defaults.queue, |CheckedQueue(queue)| queue),
            metadata: section.metadata_config,
            backlog: section.backlog,
            ..defaults
        })
    }
}

/// What another type checks and makes of a section.
fn checked<'de, D, S, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    S: Deserialize<'de>,
    T: TryFrom<S, Error = &'static str>,
{
    let section = S::deserialize(deserializer)?;
    T::try_from(section).map(Some).map_err(serde::de::Error::custom)
}

/// A name that can be part of a file's.
fn name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    yaml::parsed(deserializer, |text| {
        match !text.is_empty() && text.len() <= 64 && text.chars().all(is_plain) {
            true => Ok(Some(text.to_owned())),
            false => Err("expected up to 64 letters, digits, `-`, `_` and `.`"),
        }
    })
}

fn timeout<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    read_duration(deserializer).map(Some)
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
        // It may be a key of the receiver's: it is shown nowhere.
        value.set_sensitive(true);
        Ok(HeaderText(value))
    }
}

fn secret(
    text: Option<String>,
    file: Option<PathBuf>,
    both: &'static str,
) -> Result<Option<Secret>, &'static str> {
    match (text, file) {
        (Some(_), Some(_)) => Err(both),
        (Some(text), None) => Ok(Some(Secret::Text(text))),
        (None, file) => Ok(file.map(Secret::File)),
    }
}

impl TryFrom<BasicAuth> for Credentials {
    type Error = &'static str;

    fn try_from(basic: BasicAuth) -> Result<Credentials, &'static str> {
        let both = "password and password_file: only one of them is allowed";
        let password = secret(basic.password, basic.password_file, both)?;
        let password = password.unwrap_or(Secret::Text(String::new()));
        Ok(Credentials::Basic { username: basic.username, password })
    }
}

impl TryFrom<Authorization> for Credentials {
    type Error = &'static str;

    fn try_from(given: Authorization) -> Result<Credentials, &'static str> {
        let both = "credentials and credentials_file: only one of them is allowed";
        let credentials = secret(given.credentials, given.credentials_file, both)?;
        let credentials = credentials.ok_or("credentials or credentials_file is missing")?;
        let kind = given.r#type.unwrap_or_else(|| "Bearer".into());
        match kind.eq_ignore_ascii_case("basic") {
            true => Err("use basic_auth for the type Basic"),
            false => Ok(Credentials::Authorization { kind, credentials }),
        }
    }
}

impl TryFrom<TlsSection> for TlsConfig {
    type Error = &'static str;

    fn try_from(section: TlsSection) -> Result<TlsConfig, &'static str> {
        let TlsSection { ca_file, cert_file, key_file, server_name } = section;
        if cert_file.is_some() != key_file.is_some() {
            return Err("cert_file and key_file belong together: give both or none");
        }
        Ok(TlsConfig { ca_file, client: cert_file.zip(key_file), server_name })
    }
}

impl TryFrom<QueueConfig> for CheckedQueue {
    type Error = &'static str;

    fn try_from(queue: QueueConfig) -> Result<CheckedQueue, &'static str> {
        match queue.min_shards > queue.max_shards {
            true => Err("min_shards is larger than max_shards"),
            false => Ok(CheckedQueue(queue)),
        }
    }
}
