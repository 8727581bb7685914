//! The keys of the configuration as the file has them, and their conversion.

use super::{
    Credentials, HeaderConfig, HttpClientConfig, OAuth2Config, ProxyConfig, ShownUrl, TlsConfig,
    TlsVersion,
};
use hyper::header::{HeaderName, HeaderValue, InvalidHeaderValue};
use serde::{Deserialize, Deserializer};
use std::path::PathBuf;
use std::str::FromStr as _;
use tidepool_settings::redact::shown;
use tidepool_settings::{Secret, yaml};
use url::Url;

/// Headers that the connection or each request sets itself; upstream's list.
const RESERVED_HEADERS: [&str; 18] = [
    "accept-encoding",
    "authorization",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "host",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "user-agent",
    "www-authenticate",
    "x-amz-content-sha256",
    "x-amz-date",
    "x-amz-security-token",
    "x-prometheus-remote-read-version",
    "x-prometheus-remote-write-version",
    "x-prometheus-scrape-timeout-seconds",
];

/// All keys: those of a proxy, and those of [`Section`].
pub(super) type FullSection = yaml::With<ProxyConfig, Section>;

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Section {
    #[serde(deserialize_with = "yaml::checked::<_, BasicAuth, _>")]
    basic_auth: Option<Credentials>,
    #[serde(deserialize_with = "yaml::checked::<_, Authorization, _>")]
    authorization: Option<Credentials>,
    #[serde(deserialize_with = "yaml::checked::<_, OAuth2Whole, _>")]
    oauth2: Option<OAuth2Config>,
    bearer_token: Option<String>,
    bearer_token_file: Option<PathBuf>,
    #[serde(deserialize_with = "yaml::checked::<_, TlsSection, _>")]
    tls_config: Option<TlsConfig>,
    #[serde(deserialize_with = "yaml::pairs")]
    http_headers: Vec<(OwnHeader, HeaderSection)>,
    follow_redirects: Option<bool>,
    enable_http2: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct BasicAuth {
    username: Option<String>,
    username_file: Option<PathBuf>,
    password: Option<String>,
    password_file: Option<PathBuf>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Authorization {
    r#type: String,
    credentials: Option<String>,
    credentials_file: Option<PathBuf>,
}

type OAuth2Whole = yaml::With<ProxyConfig, OAuth2Section>;

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct OAuth2Section {
    client_id: String,
    client_secret: Option<String>,
    client_secret_file: Option<PathBuf>,
    grant_type: String,
    scopes: Vec<String>,
    #[serde(deserialize_with = "url")]
    token_url: Option<ShownUrl>,
    #[serde(deserialize_with = "yaml::pairs")]
    endpoint_params: Vec<(String, String)>,
    #[serde(deserialize_with = "yaml::checked::<_, TlsSection, _>")]
    tls_config: Option<TlsConfig>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct TlsSection {
    ca: Option<String>,
    ca_file: Option<PathBuf>,
    cert: Option<String>,
    cert_file: Option<PathBuf>,
    key: Option<String>,
    key_file: Option<PathBuf>,
    server_name: Option<String>,
    insecure_skip_verify: bool,
    #[serde(deserialize_with = "tls_version")]
    min_version: Option<TlsVersion>,
    #[serde(deserialize_with = "tls_version")]
    max_version: Option<TlsVersion>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ProxySection {
    #[serde(deserialize_with = "url")]
    proxy_url: Option<ShownUrl>,
    no_proxy: String,
    proxy_from_environment: bool,
    #[serde(deserialize_with = "yaml::pairs")]
    proxy_connect_header: Vec<(AnyHeader, Vec<SecretText>)>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct HeaderSection {
    values: Vec<HeaderText>,
    secrets: Vec<SecretText>,
    files: Vec<PathBuf>,
}

/// Name of an additional header, which must not be reserved.
#[derive(Deserialize)]
#[serde(try_from = "String")]
struct OwnHeader(HeaderName);

#[derive(Deserialize)]
#[serde(try_from = "String")]
struct AnyHeader(HeaderName);

/// The value of a header.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "String")]
pub struct HeaderText(pub HeaderValue);

/// The value of a header that must not be shown.
#[derive(Deserialize)]
#[serde(try_from = "String")]
struct SecretText(HeaderValue);

impl yaml::Part for HttpClientConfig {
    const KEYS: &'static [&'static str] = &[
        "basic_auth",
        "authorization",
        "oauth2",
        "bearer_token",
        "bearer_token_file",
        "tls_config",
        "http_headers",
        "follow_redirects",
        "enable_http2",
        "proxy_url",
        "no_proxy",
        "proxy_from_environment",
        "proxy_connect_header",
    ];
}

impl yaml::Part for ProxyConfig {
    const KEYS: &'static [&'static str] =
        &["proxy_url", "no_proxy", "proxy_from_environment", "proxy_connect_header"];
}

/// Returns a secret as text or file, if one of them is given and not empty.
fn secret(
    text: Option<String>,
    file: Option<PathBuf>,
    both: &'static str,
) -> Result<Option<Secret>, &'static str> {
    // As upstream, an empty value means the same as an absent value.
    let text = text.filter(|text| !text.is_empty());
    let file = file.filter(|file| !file.as_os_str().is_empty());
    Secret::of(text, file, both)
}

/// Parses the URL of a proxy or a token server. An empty text is `None`.
fn url<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<ShownUrl>, D::Error> {
    yaml::parsed(deserializer, |text| {
        if text.is_empty() {
            return Ok(None);
        }
        // The error omits the URL, which may contain a password.
        let url = Url::parse(text)
            .map_err(|error| format!("no URL such as http://127.0.0.1:3128: {error}"))?;
        let is_http = matches!(url.scheme(), "http" | "https") && url.host_str().is_some();
        match is_http {
            true => Ok(Some(ShownUrl(url))),
            false => Err(format!("{} is no http or https URL, which it has to be", shown(&url))),
        }
    })
}

fn tls_version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<TlsVersion>, D::Error> {
    yaml::parsed(deserializer, |text| match text {
        "TLS10" => Ok(Some(TlsVersion::Tls10)),
        "TLS11" => Ok(Some(TlsVersion::Tls11)),
        "TLS12" => Ok(Some(TlsVersion::Tls12)),
        "TLS13" => Ok(Some(TlsVersion::Tls13)),
        _ => Err("expected TLS12 or TLS13"),
    })
}

impl TryFrom<FullSection> for HttpClientConfig {
    type Error = &'static str;

    fn try_from(whole: FullSection) -> Result<HttpClientConfig, &'static str> {
        let yaml::With { part: proxy, rest: section } = whole;
        let both = "bearer_token and bearer_token_file: only one of them is allowed";
        let bearer = secret(section.bearer_token, section.bearer_token_file, both)?;
        let bearer = bearer
            .map(|credentials| Credentials::Authorization { kind: "Bearer".into(), credentials });
        let oauth2 = section.oauth2.map(|oauth2| Credentials::OAuth2(Box::new(oauth2)));
        let credentials = match (section.basic_auth, section.authorization, oauth2, bearer) {
            (None, None, None, None) => Credentials::None,
            (Some(one), None, None, None)
            | (None, Some(one), None, None)
            | (None, None, Some(one), None)
            | (None, None, None, Some(one)) => one,
            (Some(_), Some(_), None, None) => {
                return Err("basic_auth and authorization: only one of them is allowed");
            }
            _ => {
                return Err(
                    "basic_auth, authorization, oauth2 and bearer_token: only one of them \
                            is allowed",
                );
            }
        };
        let headers = section.http_headers.into_iter().map(|(OwnHeader(name), header)| {
            let values = header.values.into_iter().map(|HeaderText(value)| value);
            let secrets = header.secrets.into_iter().map(|SecretText(value)| value);
            (name, HeaderConfig { values: values.chain(secrets).collect(), files: header.files })
        });
        Ok(HttpClientConfig {
            credentials,
            tls: section.tls_config.unwrap_or_default(),
            proxy,
            headers: headers.collect(),
            follow_redirects: section.follow_redirects,
            enable_http2: section.enable_http2,
        })
    }
}

impl TryFrom<BasicAuth> for Credentials {
    type Error = &'static str;

    fn try_from(basic: BasicAuth) -> Result<Credentials, &'static str> {
        let BasicAuth { username, username_file, password, password_file } = basic;
        let both = "username and username_file: only one of them is allowed";
        let username = secret(username, username_file, both)?;
        let both = "password and password_file: only one of them is allowed";
        let password = secret(password, password_file, both)?;
        // As upstream, an absent name or password is sent as an empty text.
        let or_empty = |given: Option<Secret>| given.unwrap_or(Secret::Text(String::new()));
        Ok(Credentials::Basic { username: or_empty(username), password: or_empty(password) })
    }
}

impl TryFrom<Authorization> for Credentials {
    type Error = &'static str;

    fn try_from(given: Authorization) -> Result<Credentials, &'static str> {
        let both = "credentials and credentials_file: only one of them is allowed";
        let credentials = secret(given.credentials, given.credentials_file, both)?;
        // As upstream, the type alone is sent without credentials.
        let credentials = credentials.unwrap_or(Secret::Text(String::new()));
        let kind = match given.r#type.trim() {
            "" => "Bearer".to_owned(),
            kind => kind.to_owned(),
        };
        match kind.eq_ignore_ascii_case("basic") {
            true => Err("use basic_auth for the type Basic"),
            false => Ok(Credentials::Authorization { kind, credentials }),
        }
    }
}

impl TryFrom<OAuth2Whole> for OAuth2Config {
    type Error = &'static str;

    fn try_from(whole: OAuth2Whole) -> Result<OAuth2Config, &'static str> {
        let yaml::With { part: proxy, rest: section } = whole;
        if !matches!(section.grant_type.as_str(), "" | "client_credentials") {
            return Err("grant_type: only client_credentials is supported");
        }
        if section.client_id.is_empty() {
            return Err("client_id is missing");
        }
        let both = "client_secret and client_secret_file: only one of them is allowed";
        let client_secret = secret(section.client_secret, section.client_secret_file, both)?;
        Ok(OAuth2Config {
            client_id: section.client_id,
            client_secret: client_secret.unwrap_or(Secret::Text(String::new())),
            scopes: section.scopes,
            token_url: section.token_url.ok_or("token_url is missing")?,
            endpoint_params: section.endpoint_params,
            tls: section.tls_config.unwrap_or_default(),
            proxy,
        })
    }
}

impl TryFrom<TlsSection> for TlsConfig {
    type Error = &'static str;

    fn try_from(section: TlsSection) -> Result<TlsConfig, &'static str> {
        let TlsSection { ca, ca_file, cert, cert_file, key, key_file, .. } = section;
        let ca = secret(ca, ca_file, "ca and ca_file: only one of them is allowed")?;
        let both = "cert and cert_file: only one of them is allowed";
        let certificate = secret(cert, cert_file, both)?;
        let key = secret(key, key_file, "key and key_file: only one of them is allowed")?;
        if certificate.is_some() != key.is_some() {
            return Err("cert_file and key_file belong together: give both or none (or cert and \
                        key)");
        }
        let (min_version, max_version) = (section.min_version, section.max_version);
        if max_version.is_some_and(|max| max < TlsVersion::Tls12) {
            return Err("max_version: TLS 1.0 and 1.1 are not supported; use TLS12 or TLS13");
        }
        if min_version.zip(max_version).is_some_and(|(min, max)| min > max) {
            return Err("min_version is above max_version");
        }
        Ok(TlsConfig {
            ca,
            client: certificate.zip(key),
            server_name: section.server_name.filter(|name| !name.is_empty()),
            insecure_skip_verify: section.insecure_skip_verify,
            min_version,
            max_version,
        })
    }
}

impl TryFrom<ProxySection> for ProxyConfig {
    type Error = &'static str;

    fn try_from(section: ProxySection) -> Result<ProxyConfig, &'static str> {
        let ProxySection { proxy_url, no_proxy, proxy_from_environment, .. } = section;
        let has_proxy = proxy_url.is_some() || proxy_from_environment;
        if !section.proxy_connect_header.is_empty() && !has_proxy {
            return Err("proxy_connect_header needs proxy_url or proxy_from_environment");
        }
        if proxy_from_environment && proxy_url.is_some() {
            return Err("proxy_from_environment and proxy_url: only one of them is allowed");
        }
        if proxy_from_environment && !no_proxy.is_empty() {
            return Err("proxy_from_environment and no_proxy: only one of them is allowed");
        }
        if proxy_url.is_none() && !no_proxy.is_empty() {
            return Err("no_proxy needs proxy_url");
        }
        let connect_headers = section.proxy_connect_header.into_iter();
        let connect_headers = connect_headers.map(|(AnyHeader(name), values)| {
            (name, values.into_iter().map(|SecretText(value)| value).collect())
        });
        Ok(ProxyConfig {
            url: proxy_url,
            no_proxy,
            from_environment: proxy_from_environment,
            connect_headers: connect_headers.collect(),
        })
    }
}

impl TryFrom<String> for OwnHeader {
    type Error = String;

    fn try_from(name: String) -> Result<OwnHeader, String> {
        let AnyHeader(name) = AnyHeader::try_from(name)?;
        match RESERVED_HEADERS.contains(&name.as_str()) {
            true => Err("this header cannot be set here".into()),
            false => Ok(OwnHeader(name)),
        }
    }
}

impl TryFrom<String> for AnyHeader {
    type Error = String;

    fn try_from(name: String) -> Result<AnyHeader, String> {
        HeaderName::from_str(&name).map(AnyHeader).map_err(|error| error.to_string())
    }
}

impl TryFrom<String> for HeaderText {
    type Error = InvalidHeaderValue;

    fn try_from(text: String) -> Result<HeaderText, InvalidHeaderValue> {
        HeaderValue::from_str(&text).map(HeaderText)
    }
}

impl TryFrom<String> for SecretText {
    type Error = InvalidHeaderValue;

    fn try_from(text: String) -> Result<SecretText, InvalidHeaderValue> {
        let mut value = HeaderValue::from_str(&text)?;
        // Sensitive values are neither shown nor sent to another host after a redirect.
        value.set_sensitive(true);
        Ok(SecretText(value))
    }
}
