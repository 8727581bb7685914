//! The keys of the section `probe_modules` as the file writes them, and their conversion to
//! [`Module`].

use super::{
    BODY_BYTES_MAX, HeaderMatch, HttpProbe, IpChoice, IpProtocol, Module, ModuleSet, Pattern,
    Prober, TcpProbe,
};
use bytes::Bytes;
use hyper::Method;
use hyper::header::{AUTHORIZATION, COOKIE, HeaderName, HeaderValue, PROXY_AUTHORIZATION};
use serde::{Deserialize, Deserializer};
use std::path::Path;
use std::str::FromStr as _;
use std::sync::Arc;
use std::time::Duration;
use tidepool_client::HttpClientConfig;
use tidepool_client::config::{Credentials, HeaderText, ProxyConfig, TlsConfig};
use tidepool_settings::duration::{bytes, read_duration_or_zero};
use tidepool_settings::yaml;

const KEY: &str = "probe_modules";

/// Values of `valid_http_versions`: the version strings of Go's HTTP responses.
const VERSIONS: [&str; 3] = ["HTTP/1.0", "HTTP/1.1", "HTTP/2.0"];

/// Modules that exist without a section, each with its prober.
const BUILTIN: [(&str, &str); 2] = [("http_2xx", "http"), ("tcp_connect", "tcp")];

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ModuleSection {
    prober: String,
    #[serde(deserialize_with = "read_duration_or_zero")]
    timeout: Duration,
    http: Option<yaml::With<HttpClientConfig, HttpSection>>,
    tcp: Option<TcpSection>,
}

#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct HttpSection {
    valid_status_codes: Vec<u16>,
    valid_http_versions: Vec<String>,
    preferred_ip_protocol: IpProtocol,
    ip_protocol_fallback: bool,
    fail_if_ssl: bool,
    fail_if_not_ssl: bool,
    method: String,
    #[serde(deserialize_with = "yaml::pairs")]
    headers: Vec<(String, HeaderText)>,
    body: String,
    fail_if_body_matches_regexp: Vec<Pattern>,
    fail_if_body_not_matches_regexp: Vec<Pattern>,
    fail_if_header_matches: Vec<HeaderSection>,
    fail_if_header_not_matches: Vec<HeaderSection>,
    #[serde(deserialize_with = "size")]
    body_size_limit: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HeaderSection {
    header: String,
    regexp: Pattern,
    #[serde(default)]
    allow_missing: bool,
}

#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct TcpSection {
    preferred_ip_protocol: IpProtocol,
    ip_protocol_fallback: bool,
    tls: bool,
    tls_config: TlsConfig,
}

impl Default for HttpSection {
    fn default() -> HttpSection {
        HttpSection {
            valid_status_codes: Vec::new(),
            valid_http_versions: Vec::new(),
            preferred_ip_protocol: IpProtocol::default(),
            ip_protocol_fallback: true,
            fail_if_ssl: false,
            fail_if_not_ssl: false,
            method: String::new(),
            headers: Vec::new(),
            body: String::new(),
            fail_if_body_matches_regexp: Vec::new(),
            fail_if_body_not_matches_regexp: Vec::new(),
            fail_if_header_matches: Vec::new(),
            fail_if_header_not_matches: Vec::new(),
            body_size_limit: BODY_BYTES_MAX,
        }
    }
}

impl Default for TcpSection {
    fn default() -> TcpSection {
        TcpSection {
            preferred_ip_protocol: IpProtocol::default(),
            ip_protocol_fallback: true,
            tls: false,
            tls_config: TlsConfig::default(),
        }
    }
}

#[derive(Deserialize)]
#[serde(transparent)]
struct All(#[serde(deserialize_with = "yaml::pairs")] Vec<(String, Module)>);

/// Reads the section, if there is one, and adds the built-in modules. Relative paths are resolved
/// against `directory`.
pub fn read(node: Option<&yaml::Node>, directory: &Path) -> Result<ModuleSet, yaml::Error> {
    let mut modules = ModuleSet::new();
    for (name, prober) in BUILTIN {
        let section = ModuleSection { prober: prober.to_owned(), ..ModuleSection::default() };
        // A built-in module has no settings that could be refused.
        if let Ok(module) = Module::try_from(section) {
            modules.insert(name.to_owned(), Arc::new(module));
        }
    }
    if let Some(node) = node {
        // Inserted after the built-in modules, so that the file can redefine them.
        let All(read) = yaml::read(KEY, node)?;
        for (name, mut module) in read {
            module.set_directory(directory);
            modules.insert(name, Arc::new(module));
        }
    }
    Ok(modules)
}

/// Reads a size with a unit. An empty value and 0 mean the default.
fn size<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    yaml::parsed(deserializer, |text| match text {
        // Upstream treats 0 as no limit; here every body has a limit.
        "" | "0" => Ok(BODY_BYTES_MAX),
        text => bytes(text),
    })
}

impl TryFrom<ModuleSection> for Module {
    type Error = String;

    fn try_from(section: ModuleSection) -> Result<Module, String> {
        let ModuleSection { prober, timeout, http, tcp } = section;
        let none =
            || yaml::With { part: HttpClientConfig::default(), rest: HttpSection::default() };
        // The other prober's section is validated, too, so that its errors appear early.
        let http = HttpProbe::try_from(http.unwrap_or_else(none))?;
        let tcp = TcpProbe::from(tcp.unwrap_or_default());
        let prober = match prober.as_str() {
            "http" => Prober::Http(Box::new(http)),
            "tcp" => Prober::Tcp(Box::new(tcp)),
            "" => return Err("prober is missing: http or tcp".to_owned()),
            _ => return Err(format!("prober {prober:?} is not supported: use http or tcp")),
        };
        // Without a timeout, or with 0, the scrape's timeout applies.
        Ok(Module { prober, timeout: Some(timeout).filter(|timeout| !timeout.is_zero()) })
    }
}

impl TryFrom<yaml::With<HttpClientConfig, HttpSection>> for HttpProbe {
    type Error = String;

    fn try_from(whole: yaml::With<HttpClientConfig, HttpSection>) -> Result<HttpProbe, String> {
        let yaml::With { part: client, rest: section } = whole;
        if client.proxy != ProxyConfig::default() {
            return Err("http: probes go through no proxy: leave the proxy out".to_owned());
        }
        if matches!(client.credentials, Credentials::OAuth2(_)) {
            return Err("http: oauth2 is not supported for probes".to_owned());
        }
        let known = |version: &&String| !VERSIONS.contains(&version.as_str());
        if let Some(other) = section.valid_http_versions.iter().find(known) {
            let known = VERSIONS.join(", ");
            return Err(format!("http: valid_http_versions: {other:?} is none of {known}"));
        }
        let method = match section.method.as_str() {
            "" => Method::GET,
            text => Method::from_str(text)
                .map_err(|_| format!("http: method: {text:?} is no method of HTTP"))?,
        };
        let headers = section.headers.into_iter().map(header).collect::<Result<_, _>>()?;
        let rules = |rules: Vec<HeaderSection>| -> Result<Vec<HeaderMatch>, String> {
            rules.into_iter().map(HeaderMatch::try_from).collect()
        };
        Ok(HttpProbe {
            valid_status_codes: section.valid_status_codes,
            valid_http_versions: section.valid_http_versions,
            ip: IpChoice {
                preferred: section.preferred_ip_protocol,
                falls_back: section.ip_protocol_fallback,
            },
            fail_if_ssl: section.fail_if_ssl,
            fail_if_not_ssl: section.fail_if_not_ssl,
            method,
            headers,
            body: Bytes::from(section.body),
            fail_if_body_matches_regexp: section.fail_if_body_matches_regexp,
            fail_if_body_not_matches_regexp: section.fail_if_body_not_matches_regexp,
            fail_if_header_matches: rules(section.fail_if_header_matches)?,
            fail_if_header_not_matches: rules(section.fail_if_header_not_matches)?,
            body_bytes_max: section.body_size_limit,
            client,
        })
    }
}

impl From<TcpSection> for TcpProbe {
    fn from(section: TcpSection) -> TcpProbe {
        let TcpSection { preferred_ip_protocol, ip_protocol_fallback, tls, tls_config } = section;
        let ip = IpChoice { preferred: preferred_ip_protocol, falls_back: ip_protocol_fallback };
        TcpProbe { ip, tls, tls_config }
    }
}

impl TryFrom<HeaderSection> for HeaderMatch {
    type Error = String;

    fn try_from(section: HeaderSection) -> Result<HeaderMatch, String> {
        let HeaderSection { header, regexp, allow_missing } = section;
        Ok(HeaderMatch { header: header_name(&header)?, regexp, allow_missing })
    }
}

fn header_name(text: &str) -> Result<HeaderName, String> {
    HeaderName::from_str(text).map_err(|_| format!("http: {text:?} is no name of a header"))
}

/// Converts a header. Credentials and cookies are marked sensitive, so that no `Debug` output shows
/// them.
fn header(
    (name, HeaderText(mut value)): (String, HeaderText),
) -> Result<(HeaderName, HeaderValue), String> {
    let name = header_name(&name)?;
    value.set_sensitive([AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION].contains(&name));
    Ok((name, value))
}
