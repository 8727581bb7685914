//! The results of a probe: gauges with the names of blackbox_exporter.

use std::collections::BTreeMap;

/// A metric of a probe; always a gauge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Family {
    pub name: &'static str,
    pub help: &'static str,
    /// Name of the metric's only label, if it has one.
    pub label: Option<&'static str>,
}

const fn gauge(name: &'static str, help: &'static str) -> Family {
    Family { name, help, label: None }
}

pub(crate) const SUCCESS: Family =
    gauge("probe_success", "Whether the target answered as the module wants it.");
pub(crate) const DURATION: Family =
    gauge("probe_duration_seconds", "Time that the whole probe took.");
pub(crate) const TIMEOUT: Family =
    gauge("probe_timeout_seconds", "Longest time that the probe could take.");
pub(crate) const DNS_LOOKUP: Family =
    gauge("probe_dns_lookup_time_seconds", "Time to find the address of the target's host.");
pub(crate) const IP_PROTOCOL: Family =
    gauge("probe_ip_protocol", "Version of IP that was used: 4 or 6.");
pub(crate) const IP_HASH: Family =
    gauge("probe_ip_addr_hash", "FNV-1a hash of the address, which shows when it changes.");
pub(crate) const FAILED_REGEX: Family =
    gauge("probe_failed_due_to_regex", "Whether a regular expression made the probe fail.");
pub(crate) const FAILED_BYTES: Family =
    gauge("probe_failed_due_to_bytes", "Whether expected bytes made the probe fail.");
pub(crate) const HTTP_DURATION: Family = Family {
    name: "probe_http_duration_seconds",
    help: "Time of each phase of the request, with all redirects.",
    label: Some("phase"),
};
pub(crate) const HTTP_STATUS: Family =
    gauge("probe_http_status_code", "Status code of the last response; 0 without one.");
pub(crate) const HTTP_CONTENT_LENGTH: Family =
    gauge("probe_http_content_length", "Announced length of the body in bytes; -1 if unknown.");
pub(crate) const HTTP_BODY_LENGTH: Family =
    gauge("probe_http_uncompressed_body_length", "Bytes of the body that were read.");
pub(crate) const HTTP_REDIRECTS: Family =
    gauge("probe_http_redirects", "Redirects that the responses asked for.");
pub(crate) const HTTP_SSL: Family =
    gauge("probe_http_ssl", "Whether the last response came by TLS.");
pub(crate) const HTTP_VERSION: Family =
    gauge("probe_http_version", "Version of HTTP of the last response.");
pub(crate) const HTTP_LAST_MODIFIED: Family = gauge(
    "probe_http_last_modified_timestamp_seconds",
    "Header Last-Modified of the last response, as Unix time.",
);
pub(crate) const SSL_EARLIEST_EXPIRY: Family = gauge(
    "probe_ssl_earliest_cert_expiry",
    "When the first certificate that the server sent expires, as Unix time.",
);
pub(crate) const SSL_CHAIN_EXPIRY: Family = gauge(
    "probe_ssl_last_chain_expiry_timestamp_seconds",
    "When the verified chain of certificates expires, as Unix time.",
);
pub(crate) const TLS_VERSION: Family = Family {
    name: "probe_tls_version_info",
    help: "Version of TLS that was used.",
    label: Some("version"),
};
pub(crate) const TLS_CIPHER: Family = Family {
    name: "probe_tls_cipher_info",
    help: "Cipher suite that was used.",
    label: Some("cipher"),
};

/// Values of a family by label value, which is empty for a family without a label.
type Values = BTreeMap<String, f64>;

/// Results of one probe, complete or up to the timeout.
#[derive(Clone, Debug, Default)]
pub struct Report {
    families: BTreeMap<&'static str, (Family, Values)>,
    /// Reason for the failure; `None` after a success.
    pub failure: Option<String>,
}

impl Report {
    /// Returns the families with their values, in ascending order of their names.
    pub fn families(&self) -> impl Iterator<Item = (Family, impl Iterator<Item = (&str, f64)>)> {
        self.families.values().map(|(family, values)| {
            (*family, values.iter().map(|(label, value)| (label.as_str(), *value)))
        })
    }

    /// Returns a value; `label` is empty for a family without a label.
    pub fn value(&self, name: &str, label: &str) -> Option<f64> {
        self.families.get(name)?.1.get(label).copied()
    }

    pub(crate) fn set(&mut self, family: Family, value: f64) {
        *self.entry(family, "") = value;
    }

    pub(crate) fn set_of(&mut self, family: Family, label: &str, value: f64) {
        *self.entry(family, label) = value;
    }

    pub(crate) fn add_of(&mut self, family: Family, label: &str, value: f64) {
        *self.entry(family, label) += value;
    }

    fn entry(&mut self, family: Family, label: &str) -> &mut f64 {
        let (_, values) = self.families.entry(family.name).or_insert((family, Values::new()));
        values.entry(label.to_owned()).or_default()
    }
}
