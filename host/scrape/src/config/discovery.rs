//! The sections that list or find targets.

use super::glob::Pattern;
use crate::labels::Labels;
use crate::target::{LabelMap, TargetGroup, names};
use serde::{Deserialize, Deserializer};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tidepool_client::HttpClientConfig;
use tidepool_client::config::ShownUrl;
use tidepool_settings::duration::read_duration_if_any;
use tidepool_settings::yaml;
use url::Url;

/// Default time between requests of an HTTP list, and timeout of each request; as upstream.
const HTTP_INTERVAL: Duration = Duration::from_secs(60);

/// Default time between lookups of names; as upstream.
const DNS_INTERVAL: Duration = Duration::from_secs(30);

/// Default time between checks of files. Upstream watches files and rereads them every five
/// minutes; no file is watched here (see [`crate::discovery`]), and a check is cheap.
const FILE_INTERVAL: Duration = Duration::from_secs(5);

/// Configuration of one source of targets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiscoveryConfig {
    Static(Arc<Vec<TargetGroup>>),
    File(FileConfig),
    Http(Box<HttpConfig>),
    Dns(DnsConfig),
}

/// One item of the section `file_sd_configs`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileConfig {
    /// Patterns of files, which are JSON or YAML by their extension.
    pub files: Vec<Pattern>,
    pub refresh_interval: Duration,
}

/// One item of the section `http_sd_configs`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpConfig {
    pub url: ShownUrl,
    /// URL as the file has it, but without credentials; the targets get it as a label.
    pub url_text: String,
    /// Time between requests, and the timeout of each.
    pub refresh_interval: Duration,
    pub client: HttpClientConfig,
}

/// One item of the section `dns_sd_configs`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DnsConfig {
    /// Names that are looked up.
    pub names: Vec<String>,
    pub refresh_interval: Duration,
    pub kind: DnsType,
}

/// Type of the records that are looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DnsType {
    Srv,
    /// IPv4 addresses, with this port.
    A(u16),
    /// IPv6 addresses, with this port.
    Aaaa(u16),
}

/// The keys of all discovery that is supported, for sections that have them besides others.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DiscoverySections {
    pub(super) static_configs: StaticSection,
    pub(super) file_sd_configs: Vec<FileSection>,
    pub(super) http_sd_configs: Vec<yaml::With<HttpClientConfig, HttpSection>>,
    pub(super) dns_sd_configs: Vec<DnsSection>,
}

/// All items of the section `static_configs`.
#[derive(Default, Deserialize)]
#[serde(try_from = "Vec<Option<Group>>")]
pub(super) struct StaticSection(pub Vec<Group>);

impl TryFrom<Vec<Option<Group>>> for StaticSection {
    type Error = &'static str;

    fn try_from(groups: Vec<Option<Group>>) -> Result<StaticSection, &'static str> {
        let checked = |group: Option<Group>| {
            let group = group.ok_or("empty or null section in static_configs")?;
            group.check().map(|()| group)
        };
        groups.into_iter().map(checked).collect::<Result<_, _>>().map(StaticSection)
    }
}

/// Targets and their common labels, an item of `static_configs`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Group {
    #[serde(default)]
    targets: Vec<String>,
    /// Labels of all targets; `null` means none.
    #[serde(default)]
    labels: Option<LabelMap>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileSection {
    #[serde(deserialize_with = "file_patterns")]
    files: Vec<Pattern>,
    #[serde(default, deserialize_with = "read_duration_if_any")]
    refresh_interval: Option<Duration>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HttpSection {
    #[serde(deserialize_with = "url")]
    url: (ShownUrl, String),
    #[serde(default, deserialize_with = "read_duration_if_any")]
    refresh_interval: Option<Duration>,
}

#[derive(Deserialize)]
#[serde(try_from = "RawDnsSection")]
pub(super) struct DnsSection(DnsConfig);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawDnsSection {
    names: Vec<String>,
    #[serde(default, deserialize_with = "read_duration_if_any")]
    refresh_interval: Option<Duration>,
    #[serde(default)]
    r#type: Option<String>,
    #[serde(default)]
    port: u16,
}

impl DiscoveryConfig {
    /// Resolves relative paths against a directory.
    pub fn set_directory(&mut self, directory: &Path) {
        match self {
            DiscoveryConfig::Static(_) | DiscoveryConfig::Dns(_) => {}
            DiscoveryConfig::File(file) => {
                file.files.iter_mut().for_each(|pattern| pattern.set_directory(directory));
            }
            DiscoveryConfig::Http(http) => http.client.set_directory(directory),
        }
    }
}

impl yaml::Part for DiscoverySections {
    const KEYS: &'static [&'static str] =
        &["static_configs", "file_sd_configs", "http_sd_configs", "dns_sd_configs"];
}

impl DiscoverySections {
    /// Checks that all listed addresses can be hosts, for use without rules that change them.
    pub fn check_addresses(&self) -> Result<(), String> {
        self.static_configs.check_addresses()
    }

    pub fn into_configs(self) -> Vec<DiscoveryConfig> {
        let StaticSection(static_groups) = self.static_configs;
        let mut discovery = Vec::new();
        if !static_groups.is_empty() {
            let groups = static_groups.into_iter().enumerate();
            let groups = groups.map(|(number, group)| group.target_group(number.to_string()));
            // Filtered after numbering, so that an empty group does not change the numbers of
            // others.
            let groups = groups.filter(|group| !group.targets.is_empty());
            discovery.push(DiscoveryConfig::Static(Arc::new(groups.collect())));
        }
        discovery.extend(self.file_sd_configs.into_iter().map(DiscoveryConfig::from));
        discovery.extend(self.http_sd_configs.into_iter().map(DiscoveryConfig::from));
        discovery.extend(self.dns_sd_configs.into_iter().map(DiscoveryConfig::from));
        discovery
    }
}

impl StaticSection {
    pub fn check_addresses(&self) -> Result<(), String> {
        let mut addresses = self.0.iter().flat_map(Group::addresses);
        match addresses.find(|address| address.contains('/')) {
            Some(wrong) => Err(format!("static_configs: {wrong:?} is not a valid hostname")),
            None => Ok(()),
        }
    }
}

impl Group {
    pub fn addresses(&self) -> impl Iterator<Item = &String> {
        self.targets.iter()
    }

    /// Checks that all labels have names.
    pub fn check(&self) -> Result<(), &'static str> {
        let has_no_name = |labels: &LabelMap| labels.contains_key("");
        match self.labels.as_ref().is_some_and(has_no_name) {
            true => Err("a label has no name"),
            false => Ok(()),
        }
    }

    /// Converts to a target group with this source.
    pub fn target_group(self, source: String) -> TargetGroup {
        let target = |address: String| Labels::one(names::ADDRESS, &address);
        TargetGroup {
            source,
            targets: self.targets.into_iter().map(target).collect(),
            labels: self.labels.as_ref().map(Labels::of).unwrap_or_default(),
        }
    }
}

impl From<FileSection> for DiscoveryConfig {
    fn from(section: FileSection) -> DiscoveryConfig {
        let refresh_interval = section.refresh_interval.unwrap_or(FILE_INTERVAL);
        DiscoveryConfig::File(FileConfig { files: section.files, refresh_interval })
    }
}

impl From<yaml::With<HttpClientConfig, HttpSection>> for DiscoveryConfig {
    fn from(whole: yaml::With<HttpClientConfig, HttpSection>) -> DiscoveryConfig {
        let yaml::With { part: client, rest: section } = whole;
        let (url, url_text) = section.url;
        let refresh_interval = section.refresh_interval.unwrap_or(HTTP_INTERVAL);
        DiscoveryConfig::Http(Box::new(HttpConfig { url, url_text, refresh_interval, client }))
    }
}

impl From<DnsSection> for DiscoveryConfig {
    fn from(DnsSection(config): DnsSection) -> DiscoveryConfig {
        DiscoveryConfig::Dns(config)
    }
}

impl TryFrom<RawDnsSection> for DnsSection {
    type Error = String;

    fn try_from(section: RawDnsSection) -> Result<DnsSection, String> {
        if section.names.iter().all(String::is_empty) {
            return Err("DNS-SD config must contain at least one name".into());
        }
        let kind = section.r#type.unwrap_or_else(|| "SRV".into()).to_ascii_uppercase();
        let kind = match (kind.as_str(), section.port) {
            ("SRV", _) => DnsType::Srv,
            ("A" | "AAAA", 0) => {
                return Err("a port is required in DNS-SD configs for all record types except \
                            SRV"
                .into());
            }
            ("A", port) => DnsType::A(port),
            ("AAAA", port) => DnsType::Aaaa(port),
            ("MX" | "NS", _) => {
                return Err(format!(
                    "DNS-SD records of type {kind} are not supported; use SRV, A \
                                    or AAAA"
                ));
            }
            _ => return Err(format!("invalid DNS-SD records type {kind}")),
        };
        let refresh_interval = section.refresh_interval.unwrap_or(DNS_INTERVAL);
        Ok(DnsSection(DnsConfig { names: section.names, refresh_interval, kind }))
    }
}

fn file_patterns<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Pattern>, D::Error> {
    let wrong = <D::Error as serde::de::Error>::custom::<String>;
    let texts = Vec::<String>::deserialize(deserializer)?;
    if texts.is_empty() {
        return Err(wrong(
            "file service discovery config must contain at least one path name".into(),
        ));
    }
    let is_list = |text: &str| {
        let extension = text.rsplit_once('.').map_or("", |(_, extension)| extension);
        matches!(extension, "json" | "yml" | "yaml" | "JSON" | "YML" | "YAML")
    };
    let pattern = |text: String| match Pattern::parse(&text) {
        Some(pattern) if is_list(&text) => Ok(pattern),
        _ => Err(wrong(format!(
            "path name {text:?} is not valid for file discovery: it has to end in .json, .yml or \
             .yaml, and may have one * in its last part"
        ))),
    };
    texts.into_iter().map(pattern).collect()
}

fn url<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(ShownUrl, String), D::Error> {
    yaml::parsed(deserializer, |text| {
        if text.is_empty() {
            return Err("URL is missing".to_owned());
        }
        // Errors omit the URL, because it may contain a password.
        let url = Url::parse(text).map_err(|error| match error {
            url::ParseError::EmptyHost => "host is missing in URL".to_owned(),
            url::ParseError::RelativeUrlWithoutBase => {
                "URL scheme must be 'http' or 'https'".to_owned()
            }
            error => error.to_string(),
        })?;
        match (matches!(url.scheme(), "http" | "https"), url.has_host()) {
            (false, _) => Err("URL scheme must be 'http' or 'https'".into()),
            (true, false) => Err("host is missing in URL".into()),
            (true, true) if url.username().is_empty() && url.password().is_none() => {
                Ok((ShownUrl(url), text.to_owned()))
            }
            // Credentials must not become a label.
            (true, true) => {
                let mut bare = url.clone();
                // These fail only for a URL without a host.
                let _ = bare.set_username("");
                let _ = bare.set_password(None);
                Ok((ShownUrl(url), bare.into()))
            }
        }
    })
}
