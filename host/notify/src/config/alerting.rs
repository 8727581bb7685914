//! The section `alerting`: the Alertmanagers that get alerts, with the names, defaults and
//! strictness of Prometheus (prometheus/prometheus, `config/config.go`).
//!
//! ```yaml
//! alerting:
//!   alert_relabel_configs: []          # for all Alertmanagers
//!   alertmanagers:
//!   - static_configs: [{targets: ['127.0.0.1:9093']}]
//!     scheme: http
//!     path_prefix: /
//!     timeout: 10s
//!     api_version: v2
//!     relabel_configs: []              # of the Alertmanagers that discovery finds
//!     alert_relabel_configs: []        # after those for all
//! ```
//!
//! Differences from upstream: only static lists, files, HTTP and DNS are supported as discovery
//! (any other kind is an error that says what to do); `sigv4`, a timeout of zero, with which
//! nothing is ever sent, and a scheme other than http and https are errors.

use serde::de::{Error as _, IgnoredAny};
use serde::{Deserialize, Deserializer};
use std::path::Path;
use std::time::Duration;
use tidepool_client::HttpClientConfig;
use tidepool_scrape::config::{DiscoveryConfig, DiscoverySections, check_discovery};
use tidepool_settings::RelabelConfig;
use tidepool_settings::duration::read_duration_if_any;
use tidepool_settings::yaml::{self, At, Data, Node};

const KEY: &str = "alerting";
const ALERTMANAGERS: &str = "alertmanagers";

/// Default of `timeout`, as upstream.
const TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AlertingSection {
    /// Rules for the alerts to all Alertmanagers.
    pub alert_relabel_configs: Vec<RelabelConfig>,
    pub alertmanagers: Vec<AlertmanagerConfig>,
}

/// Alertmanagers that discovery finds, and how alerts are sent to each of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlertmanagerConfig {
    pub http: HttpClientConfig,
    pub discovery: Vec<DiscoveryConfig>,
    pub scheme: String,
    pub path_prefix: String,
    /// Maximum duration of a request.
    pub timeout: Duration,
    /// Rules for the labels of the found Alertmanagers.
    pub relabel_configs: Vec<RelabelConfig>,
    /// Rules for the alerts to these Alertmanagers.
    pub alert_relabel_configs: Vec<RelabelConfig>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Section {
    alert_relabel_configs: Vec<RelabelConfig>,
    alertmanagers: Vec<At<Option<FullItem>>>,
}

/// The keys of all HTTP clients, those of all discovery, and those of [`Item`].
type FullItem = yaml::With<HttpClientConfig, yaml::With<DiscoverySections, Item>>;

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Item {
    #[serde(deserialize_with = "scheme")]
    scheme: Option<String>,
    path_prefix: String,
    #[serde(deserialize_with = "read_duration_if_any")]
    timeout: Option<Duration>,
    #[serde(rename = "api_version", deserialize_with = "version")]
    _api_version: (),
    #[serde(rename = "sigv4", deserialize_with = "no_signatures")]
    _sigv4: (),
    relabel_configs: Vec<RelabelConfig>,
    alert_relabel_configs: Vec<RelabelConfig>,
}

impl AlertingSection {
    pub fn read(node: &Node) -> Result<AlertingSection, yaml::Error> {
        if let Data::Map(entries) = &node.data
            && let Some(entry) = entries.iter().find(|entry| entry.key == ALERTMANAGERS)
        {
            check_discovery(&format!("{KEY}.{ALERTMANAGERS}"), &entry.value)?;
        }
        let section: Section = yaml::read(KEY, node)?;
        let items = section.alertmanagers.into_iter().enumerate();
        let alertmanagers = items.map(|(number, At { place, value })| {
            let checked = value.ok_or("empty or null section".to_owned()).and_then(checked);
            let key = format!("{KEY}.{ALERTMANAGERS}[{number}]");
            checked.map_err(|what| yaml::Error::new(place, key, what))
        });
        Ok(AlertingSection {
            alert_relabel_configs: section.alert_relabel_configs,
            alertmanagers: alertmanagers.collect::<Result<_, _>>()?,
        })
    }

    /// Returns whether an Alertmanager is listed or may be found.
    pub fn names_any(&self) -> bool {
        let may_find = |discovery: &DiscoveryConfig| match discovery {
            DiscoveryConfig::Static(groups) => !groups.is_empty(),
            _ => true,
        };
        self.alertmanagers.iter().any(|one| one.discovery.iter().any(may_find))
    }

    /// Resolves relative paths against a directory.
    pub fn set_directory(&mut self, directory: &Path) {
        for one in &mut self.alertmanagers {
            one.http.set_directory(directory);
            one.discovery.iter_mut().for_each(|discovery| discovery.set_directory(directory));
        }
    }

    /// Returns a text that changes with any setting except secrets, and shows no secret.
    pub fn fingerprint(&self) -> String {
        format!("{:08x}", crc32c::crc32c(format!("{self:?}").as_bytes()))
    }
}

fn checked(whole: FullItem) -> Result<AlertmanagerConfig, String> {
    let yaml::With { part: http, rest: yaml::With { part: discovery, rest: item } } = whole;
    if item.relabel_configs.is_empty() {
        discovery.check_addresses()?;
    }
    Ok(AlertmanagerConfig {
        http,
        discovery: discovery.into_configs(),
        scheme: item.scheme.unwrap_or_else(|| "http".to_owned()),
        path_prefix: item.path_prefix,
        timeout: item.timeout.unwrap_or(TIMEOUT),
        relabel_configs: item.relabel_configs,
        alert_relabel_configs: item.alert_relabel_configs,
    })
}

fn scheme<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    yaml::parsed(deserializer, |text| match text.to_ascii_lowercase() {
        text if text.is_empty() => Ok(None),
        text if text == "http" || text == "https" => Ok(Some(text)),
        _ => Err("expected http or https"),
    })
}

/// Upstream has removed version 1.
fn version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(), D::Error> {
    yaml::parsed(deserializer, |text| match text {
        "" | "v2" => Ok(()),
        other => Err(format!("{other:?} is no version of the API: it is v2")),
    })
}

fn no_signatures<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(), D::Error> {
    IgnoredAny::deserialize(deserializer)?;
    Err(D::Error::custom("not supported: give the address of a proxy that signs requests"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> Result<AlertingSection, String> {
        let read = yaml::load(text).and_then(|node| AlertingSection::read(&node));
        read.map_err(|error| error.to_string())
    }

    #[test]
    fn an_alertmanager_is_found() {
        for (text, names_one) in [
            ("", false),
            ("{}", false),
            ("alertmanagers:", false),
            ("alertmanagers:\n- static_configs:\n  - targets:\n", false),
            ("alertmanagers:\n- static_configs: [{targets: [a]}]\n", true),
            ("alertmanagers: [{file_sd_configs: [{files: [a.json]}], tls_config: {}}]", true),
            ("alertmanagers: [{api_version: v2, scheme: https, timeout: 5s}]", false),
        ] {
            let section = read_text(text).expect(text);
            assert_eq!(section.names_any(), names_one, "{text}");
        }
    }

    /// Upstream: `DefaultAlertmanagerConfig`.
    #[test]
    fn what_is_left_out_has_upstreams_default() {
        let mut section = read_text("alertmanagers: [{}]").expect("a section");
        let one = section.alertmanagers.pop().expect("an item");
        assert_eq!((one.scheme.as_str(), one.path_prefix.as_str()), ("http", ""));
        assert_eq!(one.timeout, Duration::from_secs(10));
        assert_eq!((one.http.follow_redirects, one.http.enable_http2), (None, None));
        assert!(one.relabel_configs.is_empty() && one.alert_relabel_configs.is_empty());
    }

    #[test]
    fn all_keys_arrive() {
        let text = "alert_relabel_configs: [{action: labeldrop, regex: replica}]\n\
                    alertmanagers:\n\
                    - scheme: HTTPS\n  path_prefix: /am\n  timeout: 3s\n  api_version: v2\n  \
                    basic_auth: {username: a, password_file: pass}\n  \
                    relabel_configs: [{action: drop, regex: b}]\n  \
                    alert_relabel_configs: [{action: keep, regex: c}]\n  \
                    static_configs: [{targets: ['a:1', 'b:2']}]\n  \
                    file_sd_configs: [{files: [list.json]}]\n  \
                    http_sd_configs: [{url: 'http://a/'}]\n  \
                    dns_sd_configs: [{names: [a.example]}]\n";
        let mut section = read_text(text).expect("a section");
        let before = section.fingerprint();
        section.set_directory(Path::new("/etc/tidepool"));
        assert_ne!(section.fingerprint(), before);
        assert_eq!(section.alert_relabel_configs.len(), 1);
        let one = &section.alertmanagers[0];
        assert_eq!((one.scheme.as_str(), one.path_prefix.as_str()), ("https", "/am"));
        assert_eq!(one.timeout, Duration::from_secs(3));
        assert_eq!(one.discovery.len(), 4);
        assert_eq!((one.relabel_configs.len(), one.alert_relabel_configs.len()), (1, 1));
        let shown = format!("{one:?}");
        for path in ["/etc/tidepool/pass", "\"/etc/tidepool/\", begin: \"list.json\""] {
            assert!(shown.contains(path), "{path}: {shown}");
        }
    }

    #[test]
    fn fingerprints_and_debug_texts_have_no_secret() {
        let of = |password: &str| {
            let text = format!("alertmanagers: [{{basic_auth: {{password: {password}}}}}]");
            read_text(&text).expect("a section")
        };
        let (one, other) = (of("hunter2"), of("hunter3"));
        assert!(!format!("{one:?}").contains("hunter2"));
        assert_eq!(one.fingerprint(), other.fingerprint());
        assert_ne!(one, other);
    }

    #[test]
    fn mistakes_have_their_place() {
        for (text, expected) in [
            ("alert_relabel_configs: [null]", "1:25: alerting.alert_relabel_configs[0]: "),
            ("alertmanagers:\n- relabel_configs:\n  -", "3:4: alerting.alertmanagers[0]."),
            ("alertmanagers: [{api_version: v1}]", "1:31: alerting.alertmanagers[0].api_version: "),
            ("alertmanagers: [{consul_configs: []}]", "1:18: alerting.alertmanagers[0]."),
            ("alertmanager: []", "1:1: alerting.alertmanager: "),
            (
                "alertmanagers: [{basic_auth: {}, bearer_token: a}]",
                "1:17: alerting.alertmanagers[0]",
            ),
            ("alertmanagers: [null]", "1:17: alerting.alertmanagers[0]: empty or null section"),
            (
                "alertmanagers: [{kubernetes_sd_configs: [{role: pod}]}]",
                "1:18: alerting.alertmanagers[0].kubernetes_sd_configs: this discovery is not \
                 supported; write its targets to a file for file_sd_configs",
            ),
            (
                "alertmanagers: [{sigv4: {}}]",
                "1:25: alerting.alertmanagers[0].sigv4: not supported: give the address of a proxy",
            ),
            ("alertmanagers: [{timeout: 0s}]", "1:27: alerting.alertmanagers[0].timeout: "),
            ("alertmanagers: [{scheme: ftp}]", "1:26: alerting.alertmanagers[0].scheme: "),
            (
                "alertmanagers: [{static_configs: [{targets: ['http://a']}]}]",
                "1:17: alerting.alertmanagers[0]: static_configs: \"http://a\" is not a valid",
            ),
        ] {
            let said = read_text(text).expect_err(text);
            assert!(said.starts_with(expected), "{text}: {said}");
        }
    }
}
