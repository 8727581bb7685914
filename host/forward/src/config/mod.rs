//! The destinations of forwarding: the section `remote_write` of the configuration file. Names and
//! defaults are those of Prometheus (prometheus/prometheus, `config/config.go`); only the key
//! `backlog` is our own.
//!
//! ```yaml
//! remote_write:
//!   - url: https://central.example/api/v1/write
//!     name: central
//!     protobuf_message: io.prometheus.write.v2.Request
//!     queue_config: {max_shards: 10}
//!     backlog: {order: newest_first, samples_per_second: 50000}
//! ```

mod rule;
mod section;

use hyper::header::{HeaderName, HeaderValue};
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::ops::Deref;
use std::time::Duration;
use tidepool_client::HttpClientConfig;
use tidepool_runtime::{RelabelRule, RemoteWriteVersion};
use tidepool_settings::duration::{read_bytes, read_duration, read_duration_or_zero};
use tidepool_settings::redact::shown;
use tidepool_settings::yaml;
use url::Url;

#[derive(Clone, Debug, Default)]
pub struct ForwardConfig {
    pub destinations: Vec<DestinationConfig>,
    /// Maximum total size of WAL segments kept for destinations that lag.
    pub log_bytes_max: u64,
    /// Maximum memory of each destination's engine instance.
    pub memory_bytes_max: usize,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "section::FullSection")]
pub struct DestinationConfig {
    pub url: ReceiverUrl,
    /// Name of the destination in metrics and files.
    pub name: String,
    /// Maximum duration of a request.
    pub remote_timeout: Duration,
    /// Additional headers of each request.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// Relabel rules, applied before samples are queued.
    pub rules: Vec<RelabelRule>,
    /// Version of the messages. A receiver that answers 415 to 2.0 gets 1.0 instead.
    pub version: RemoteWriteVersion,
    pub send_exemplars: bool,
    pub send_native_histograms: bool,
    /// Credentials, TLS, proxies and other settings of HTTP.
    pub http: HttpClientConfig,
    pub queue: QueueConfig,
    pub metadata: MetadataConfig,
    pub backlog: BacklogConfig,
}

/// A receiver's URL. `Display` and `Debug` omit the parts that may be secret.
#[derive(Clone, PartialEq, Eq)]
pub struct ReceiverUrl(Url);

/// Settings of the queues, under upstream's names.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct QueueConfig {
    /// Maximum number of rows in a shard.
    #[serde(deserialize_with = "yaml::number::<_, _, 1, 10_000_000>")]
    pub capacity: u32,
    #[serde(deserialize_with = "yaml::number::<_, _, 1, 10_000>")]
    pub max_shards: u32,
    #[serde(deserialize_with = "yaml::number::<_, _, 1, 10_000>")]
    pub min_shards: u32,
    #[serde(deserialize_with = "yaml::number::<_, _, 1, 1_000_000>")]
    pub max_samples_per_send: u32,
    /// Maximum time that a row waits for more rows to fill a request.
    #[serde(deserialize_with = "read_duration")]
    pub batch_send_deadline: Duration,
    /// Pause after the first failure. It doubles with each further failure.
    #[serde(deserialize_with = "read_duration")]
    pub min_backoff: Duration,
    #[serde(deserialize_with = "read_duration")]
    pub max_backoff: Duration,
    /// Whether a request is retried after status 429.
    pub retry_on_http_429: RetryOn429,
    /// Samples older than this are not sent; zero sends all.
    #[serde(deserialize_with = "read_duration_or_zero")]
    pub sample_age_limit: Duration,
}

impl QueueConfig {
    /// Returns the number of queued rows at which a shard is full. A whole request always fits.
    pub fn room(&self) -> u32 {
        self.capacity.max(self.max_samples_per_send)
    }
}

/// Whether a request that is answered with 429 is retried.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(from = "bool")]
pub enum RetryOn429 {
    Never,
    /// Retried if the answer has `Retry-After`, the time by which the receiver expects to recover.
    IfAnnounced,
    Always,
}

/// Settings of metadata messages, which only 1.0 needs, under upstream's names.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MetadataConfig {
    pub send: bool,
    #[serde(deserialize_with = "read_duration")]
    pub send_interval: Duration,
    #[serde(deserialize_with = "yaml::number::<_, _, 1, 1_000_000>")]
    pub max_samples_per_send: u32,
}

/// Order in which samples of a backlog, the unsent samples of an outage, are sent.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum BacklogOrder {
    /// Oldest samples first, so that each series arrives in order.
    OldestFirst,
    /// New samples first. Older samples are sent at the same time.
    NewestFirst,
}

/// Settings for sending samples after an outage.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BacklogConfig {
    pub order: BacklogOrder,
    /// Maximum number of samples read from the store in a second; 0 means no limit.
    pub samples_per_second: u64,
    /// Maximum size of the backlog; beyond it the oldest samples are dropped. 0 means no limit.
    #[serde(deserialize_with = "read_bytes")]
    pub max_bytes: u64,
    /// With [`BacklogOrder::NewestFirst`], the lag at which newer samples overtake the backlog.
    #[serde(deserialize_with = "read_duration")]
    pub newest_first_after: Duration,
}

impl Default for QueueConfig {
    fn default() -> QueueConfig {
        QueueConfig {
            capacity: 10_000,
            max_shards: 50,
            min_shards: 1,
            max_samples_per_send: 2_000,
            batch_send_deadline: Duration::from_secs(5),
            min_backoff: Duration::from_millis(30),
            max_backoff: Duration::from_secs(5),
            retry_on_http_429: RetryOn429::IfAnnounced,
            sample_age_limit: Duration::ZERO,
        }
    }
}

impl Default for MetadataConfig {
    fn default() -> MetadataConfig {
        let send_interval = Duration::from_secs(60);
        MetadataConfig { send: true, send_interval, max_samples_per_send: 2_000 }
    }
}

impl Default for BacklogConfig {
    fn default() -> BacklogConfig {
        BacklogConfig {
            order: BacklogOrder::OldestFirst,
            samples_per_second: 0,
            max_bytes: 0,
            newest_first_after: Duration::from_secs(60),
        }
    }
}

impl Deref for ReceiverUrl {
    type Target = Url;

    fn deref(&self) -> &Url {
        &self.0
    }
}

impl fmt::Display for ReceiverUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&shown(&self.0))
    }
}

impl fmt::Debug for ReceiverUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl ForwardConfig {
    /// Checks that destinations differ in name.
    pub fn check(&self) -> Result<(), String> {
        for (at, one) in self.destinations.iter().enumerate() {
            if self.destinations.iter().skip(at + 1).any(|other| other.name == one.name) {
                return Err(format!(
                    "remote_write: two destinations are called {:?}; give each a name of its own",
                    one.name
                ));
            }
        }
        Ok(())
    }
}

impl From<bool> for RetryOn429 {
    fn from(retries: bool) -> RetryOn429 {
        if retries { RetryOn429::Always } else { RetryOn429::Never }
    }
}

impl ReceiverUrl {
    fn parse(text: &str) -> Result<ReceiverUrl, String> {
        // The error omits the URL itself, which may contain a token.
        let url = Url::parse(text).map_err(|error| format!("this is no URL: {error}"))?;
        let is_http = matches!(url.scheme(), "http" | "https") && url.host_str().is_some();
        if !is_http || url.port() == Some(0) {
            let url = shown(&url);
            return Err(format!("{url} is no URL such as http://HOST:9090/api/v1/write"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(
                "credentials belong into basic_auth, not into the URL, which is shown".into()
            );
        }
        Ok(ReceiverUrl(url))
    }
}

impl<'de> Deserialize<'de> for ReceiverUrl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ReceiverUrl, D::Error> {
        yaml::parsed(deserializer, ReceiverUrl::parse)
    }
}

impl DestinationConfig {
    /// Reads the destinations of the section.
    pub fn read_all(section: &yaml::Node) -> Result<Vec<DestinationConfig>, yaml::Error> {
        yaml::read("remote_write", section)
    }

    /// Returns the destination at a URL, with all defaults.
    pub fn of_url(url: &str) -> Result<DestinationConfig, String> {
        ReceiverUrl::parse(url).map(DestinationConfig::new)
    }

    fn new(url: ReceiverUrl) -> DestinationConfig {
        DestinationConfig {
            // A short name that can be a file name and stays the same as long as the URL does.
            name: format!("{:08x}", crc32c::crc32c(url.as_str().as_bytes())),
            url,
            remote_timeout: Duration::from_secs(30),
            headers: Vec::new(),
            rules: Vec::new(),
            version: RemoteWriteVersion::V1,
            send_exemplars: false,
            send_native_histograms: false,
            http: section::http_config(HttpClientConfig::default()),
            queue: QueueConfig::default(),
            metadata: MetadataConfig::default(),
            backlog: BacklogConfig::default(),
        }
    }

    /// Returns whether both destinations have the same configuration, secrets included.
    pub fn is_same(&self, other: &DestinationConfig) -> bool {
        // The debug text omits secrets, so the parts that may have secrets are compared themselves.
        self.url == other.url
            && self.headers == other.headers
            && self.http == other.http
            && format!("{self:?}") == format!("{other:?}")
    }

    /// Returns a text that changes with any setting except secrets, and shows no secret.
    pub fn fingerprint(&self) -> String {
        format!("{}:{:08x}", self.name, crc32c::crc32c(format!("{self:?}").as_bytes()))
    }
}

#[cfg(test)]
mod tests;
