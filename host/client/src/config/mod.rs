//! Settings of HTTP clients: the keys of Prometheus' `http_client_config` (prometheus/common,
//! `config/http_config.go` and `config/headers.go`).
//!
//! A section that has these keys besides its own is read as
//! [`With`](tidepool_settings::yaml::With)`<HttpClientConfig, Rest>`. Relative paths are kept until
//! [`HttpClientConfig::set_directory`] resolves them.
//!
//! Upstream's secrets by reference (`*_ref`), SOCKS proxies, and tokens by a signed JWT (RFC 7523)
//! are not supported; each is an error that names the setting.

mod section;

pub use section::HeaderText;

use hyper::header::{HeaderName, HeaderValue};
use std::fmt;
use std::path::{Path, PathBuf};
use tidepool_settings::redact::shown;
use tidepool_settings::{Secret, read_file};
use url::Url;

/// Settings of a client's requests and connections.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(try_from = "section::FullSection")]
pub struct HttpClientConfig {
    pub credentials: Credentials,
    pub tls: TlsConfig,
    pub proxy: ProxyConfig,
    /// Additional headers of each request.
    pub headers: Vec<(HeaderName, HeaderConfig)>,
    /// Whether redirects are followed; `None` means the default of the section that has the
    /// settings, which is usually yes.
    pub follow_redirects: Option<bool>,
    /// Whether HTTP/2 is offered in TLS; `None` means the default of the section that has the
    /// settings, which is usually yes.
    pub enable_http2: Option<bool>,
}

/// Credentials that requests are sent with.
#[derive(Clone, Default, PartialEq, Eq)]
pub enum Credentials {
    #[default]
    None,
    /// Basic authentication by name and password.
    Basic {
        /// Name of the user; it is not secret, but may be in a file.
        username: Secret,
        password: Secret,
    },
    /// A scheme such as `Bearer`, and the text after the scheme.
    Authorization {
        /// The authentication scheme, `Bearer` by default.
        kind: String,
        credentials: Secret,
    },
    /// A token that a token server issues.
    OAuth2(Box<OAuth2Config>),
}

/// Settings of requests for a token by client credentials (RFC 6749, section 4.4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OAuth2Config {
    pub client_id: String,
    pub client_secret: Secret,
    pub scopes: Vec<String>,
    pub token_url: ShownUrl,
    /// Additional parameters of the request.
    pub endpoint_params: Vec<(String, String)>,
    /// Settings of TLS connections to the token server.
    pub tls: TlsConfig,
    /// Proxy between this client and the token server.
    pub proxy: ProxyConfig,
}

/// Settings of connections that use TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(try_from = "section::TlsSection")]
pub struct TlsConfig {
    /// CA certificates in PEM that replace the system's trust store.
    pub ca: Option<Secret>,
    /// Certificate and key in PEM that this client presents.
    pub client: Option<(Secret, Secret)>,
    /// Name that the server's certificate must have, instead of the URL's.
    pub server_name: Option<String>,
    /// Whether any certificate is accepted, without verification.
    pub insecure_skip_verify: bool,
    /// The oldest version that is used.
    pub min_version: Option<TlsVersion>,
    /// The newest version that is used.
    pub max_version: Option<TlsVersion>,
}

/// A version of TLS. Versions 1.0 and 1.1 are never used; they may only bound a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TlsVersion {
    Tls10,
    Tls11,
    Tls12,
    Tls13,
}

/// The proxy that requests go through.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(try_from = "section::ProxySection")]
pub struct ProxyConfig {
    pub url: Option<ShownUrl>,
    /// Hosts that are reached without the proxy. If empty, even loopback addresses use the proxy.
    pub no_proxy: String,
    /// Whether environment variables define the proxy and the exceptions.
    pub from_environment: bool,
    /// Additional headers of `CONNECT` requests.
    pub connect_headers: Vec<(HeaderName, Vec<HeaderValue>)>,
}

/// Values of a configured header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeaderConfig {
    /// Values in the configuration; secret values are marked as sensitive.
    pub values: Vec<HeaderValue>,
    /// Files that each contain one value, read for each request.
    pub files: Vec<PathBuf>,
}

/// A URL that is shown without parts that may be secret.
#[derive(Clone, PartialEq, Eq)]
pub struct ShownUrl(pub Url);

impl HttpClientConfig {
    /// Returns the settings for use without a configuration: proxies of the environment only.
    pub fn of_environment() -> HttpClientConfig {
        let proxy = ProxyConfig { from_environment: true, ..ProxyConfig::default() };
        HttpClientConfig { proxy, ..HttpClientConfig::default() }
    }

    /// Resolves relative paths against a directory.
    pub fn set_directory(&mut self, directory: &Path) {
        self.tls.set_directory(directory);
        match &mut self.credentials {
            Credentials::None => {}
            Credentials::Basic { username, password } => {
                username.set_directory(directory);
                password.set_directory(directory);
            }
            Credentials::Authorization { credentials, .. } => credentials.set_directory(directory),
            Credentials::OAuth2(oauth2) => {
                oauth2.client_secret.set_directory(directory);
                oauth2.tls.set_directory(directory);
            }
        }
        for file in self.headers.iter_mut().flat_map(|(_, header)| &mut header.files) {
            *file = directory.join(&file);
        }
    }

    /// Returns whether each request has to read or check files.
    pub(crate) fn names_files(&self) -> bool {
        let is_file = |secret: &Secret| matches!(secret, Secret::File(_));
        let of_credentials = match &self.credentials {
            // The token source reads the client's secret.
            Credentials::None | Credentials::OAuth2(_) => false,
            Credentials::Basic { username, password } => is_file(username) || is_file(password),
            Credentials::Authorization { credentials, .. } => is_file(credentials),
        };
        // Each request checks the TLS files for changes.
        of_credentials
            || self.headers.iter().any(|(_, header)| !header.files.is_empty())
            || self.tls.files().next().is_some()
    }

    /// Returns a checksum over the contents of all certificate and key files.
    pub fn files_checksum(&self) -> u32 {
        let oauth2 = match &self.credentials {
            Credentials::OAuth2(oauth2) => Some(&oauth2.tls),
            _ => None,
        };
        let files = [Some(&self.tls), oauth2].into_iter().flatten().flat_map(TlsConfig::files);
        // An unreadable file counts as empty; the client that needs the file reports it.
        files.fold(0, |sum, path| {
            crc32c::crc32c_append(sum, &read_file("", path).unwrap_or_default())
        })
    }
}

impl TlsConfig {
    pub fn is_set(&self) -> bool {
        *self != TlsConfig::default()
    }

    /// Returns the paths of the certificate and key files.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Path> {
        let client = self.client.iter().flat_map(|(certificate, key)| [certificate, key]);
        self.ca.iter().chain(client).filter_map(|pem| match pem {
            Secret::Text(_) => None,
            Secret::File(path) => Some(path.as_path()),
        })
    }

    /// Resolves relative paths against a directory.
    pub fn set_directory(&mut self, directory: &Path) {
        let client = self.client.iter_mut().flat_map(|(certificate, key)| [certificate, key]);
        self.ca.iter_mut().chain(client).for_each(|pem| pem.set_directory(directory));
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Credentials::None => f.write_str("none"),
            Credentials::Basic { username, password } => match username {
                Secret::Text(username) => write!(f, "{username}:{password:?}"),
                Secret::File(_) => write!(f, "{username:?}:{password:?}"),
            },
            Credentials::Authorization { kind, credentials } => write!(f, "{kind} {credentials:?}"),
            Credentials::OAuth2(oauth2) => oauth2.fmt(f),
        }
    }
}

impl fmt::Debug for ShownUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&shown(&self.0))
    }
}

impl fmt::Display for ShownUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

#[cfg(test)]
mod tests;
