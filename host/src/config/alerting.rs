//! The section `alerting`, checked as upstream checks it. Alerts are not sent, so nothing of it is
//! kept.

use serde::de::{Error as _, IgnoredAny};
use serde::{Deserialize, Deserializer};
use std::time::Duration;
use tidepool_client::HttpClientConfig;
use tidepool_settings::RelabelConfig;
use tidepool_settings::duration::read_duration_or_zero;
use tidepool_settings::yaml::{self, Data, Entry, Node};

const KEY: &str = "alerting";

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Section {
    alert_relabel_configs: Vec<RelabelConfig>,
    alertmanagers: Vec<yaml::With<HttpClientConfig, yaml::With<Discovery, Alertmanager>>>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Alertmanager {
    scheme: String,
    path_prefix: String,
    #[serde(deserialize_with = "read_duration_or_zero")]
    timeout: Duration,
    #[serde(deserialize_with = "version")]
    api_version: (),
    sigv4: Option<IgnoredAny>,
    relabel_configs: Vec<RelabelConfig>,
    alert_relabel_configs: Vec<RelabelConfig>,
}

/// Discovery of Alertmanagers, of any kind that upstream has.
#[derive(Deserialize)]
#[serde(from = "IgnoredAny")]
struct Discovery;

impl From<IgnoredAny> for Discovery {
    fn from(_: IgnoredAny) -> Discovery {
        Discovery
    }
}

impl yaml::Part for Discovery {
    const KEYS: &'static [&'static str] = &[
        "static_configs",
        "aws_sd_configs",
        "azure_sd_configs",
        "consul_sd_configs",
        "digitalocean_sd_configs",
        "dns_sd_configs",
        "docker_sd_configs",
        "dockerswarm_sd_configs",
        "ec2_sd_configs",
        "eureka_sd_configs",
        "file_sd_configs",
        "gce_sd_configs",
        "hetzner_sd_configs",
        "http_sd_configs",
        "ionos_sd_configs",
        "kubernetes_sd_configs",
        "kuma_sd_configs",
        "lightsail_sd_configs",
        "linode_sd_configs",
        "marathon_sd_configs",
        "nerve_sd_configs",
        "nomad_sd_configs",
        "openstack_sd_configs",
        "ovhcloud_sd_configs",
        "puppetdb_sd_configs",
        "scaleway_sd_configs",
        "serverset_sd_configs",
        "stackit_sd_configs",
        "triton_sd_configs",
        "uyuni_sd_configs",
        "vultr_sd_configs",
    ];
}

/// Checks the section. Returns whether it names an Alertmanager.
pub(super) fn read(node: &Node) -> Result<bool, yaml::Error> {
    yaml::read::<Section>(KEY, node)?;
    Ok(!is_empty(&node.data))
}

/// Returns whether a section is empty at every level.
fn is_empty(data: &Data) -> bool {
    match data {
        Data::Nothing => true,
        Data::List(items) => items.iter().all(|item| is_empty(&item.data)),
        Data::Map(entries) => entries.iter().all(|Entry { value, .. }| is_empty(&value.data)),
        _ => false,
    }
}

/// Upstream has removed version 1.
fn version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(), D::Error> {
    match String::deserialize(deserializer)?.as_str() {
        "" | "v2" => Ok(()),
        other => Err(D::Error::custom(format!("{other:?} is no version of the API: it is v2"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> Result<bool, String> {
        yaml::load(text).and_then(|node| read(&node)).map_err(|error| error.to_string())
    }

    #[test]
    fn an_alertmanager_is_found() {
        for (text, names_one) in [
            ("", false),
            ("{}", false),
            ("alertmanagers:\n- static_configs:\n  - targets:\n", false),
            ("alertmanagers:\n- static_configs: [{targets: [a]}]\n", true),
            ("alertmanagers: [{kubernetes_sd_configs: [{role: pod}], tls_config: {}}]", true),
            ("alertmanagers: [{api_version: v2, scheme: https, timeout: 5s, sigv4: {}}]", true),
        ] {
            assert_eq!(read_text(text), Ok(names_one), "{text}");
        }
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
        ] {
            let said = read_text(text).expect_err(text);
            assert!(said.starts_with(expected), "{text}: {said}");
        }
    }
}
