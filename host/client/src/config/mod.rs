//! How a client sends requests: the keys of Prometheus' `http_client_config` (prometheus/common,
//! `config/http_config.go` and `config/headers.go`).
//!
//! A section that has these keys among its own is read as
//! [`With`](tidepool_settings::yaml::With)`<HttpClientConfig, Rest>`. Paths are as they stand in
//! the file until [`HttpClientConfig::set_directory`] says what they are relative to.
//!
//! What upstream has and this has not: secrets by reference (`*_ref`), SOCKS proxies, and tokens by
//! a signed JWT (RFC 7523). Each is an error that says so.

mod section;

pub use section::HeaderText;

use hyper::header::{HeaderName, HeaderValue};
use std::fmt;
use std::path::{Path, PathBuf};
use tidepool_settings::redact::shown;
use tidepool_settings::{Secret, read_file};
use url::Url;

/// How a client sends requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(try_from = "section::Whole")]
pub struct HttpClientConfig {
    /// How requests say who sends them.
    pub credentials: Credentials,
    /// What connections by TLS need.
    pub tls: TlsConfig,
    /// Through whom requests go.
    pub proxy: ProxyConfig,
    /// Further headers of each request.
    pub headers: Vec<(HeaderName, HeaderConfig)>,
    /// Whether redirects are followed; if it is not said, as the section's default is, which is
    /// that they are.
    pub follow_redirects: Option<bool>,
    /// Whether HTTP/2 is offered in TLS; if it is not said, as the section's default is, which is
    /// that it is.
    pub enable_http2: Option<bool>,
}

/// How requests say who sends them.
#[derive(Clone, Default, PartialEq, Eq)]
pub enum Credentials {
    /// They do not.
    #[default]
    None,
    /// By name and password.
    Basic {
        /// The name, which is no secret, but may be in a file.
        username: Secret,
        /// The password.
        password: Secret,
    },
    /// By a type such as `Bearer` and what follows it.
    Authorization {
        /// The type.
        kind: String,
        /// What follows.
        credentials: Secret,
    },
    /// By a token that another server gives.
    OAuth2(Box<OAuth2Config>),
}

/// Whom to ask for a token, by client credentials (RFC 6749, section 4.4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OAuth2Config {
    /// Who asks.
    pub client_id: String,
    /// Its secret.
    pub client_secret: Secret,
    /// What is asked for.
    pub scopes: Vec<String>,
    /// Who is asked.
    pub token_url: ShownUrl,
    /// Further parameters of the question.
    pub endpoint_params: Vec<(String, String)>,
    /// What connections by TLS to it need.
    pub tls: TlsConfig,
    /// Through whom it is asked.
    pub proxy: ProxyConfig,
}

/// What connections by TLS need.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(try_from = "section::TlsSection")]
pub struct TlsConfig {
    /// Whom the server's certificate must be signed by, instead of whom the system trusts; PEM.
    pub ca: Option<Secret>,
    /// The certificate and the key that this client shows; PEM.
    pub client: Option<(Secret, Secret)>,
    /// The name that the server's certificate must have, instead of the URL's.
    pub server_name: Option<String>,
    /// Whether any certificate is taken.
    pub insecure_skip_verify: bool,
    /// The oldest version that is spoken.
    pub min_version: Option<TlsVersion>,
    /// The newest version that is spoken.
    pub max_version: Option<TlsVersion>,
}

/// A version of TLS. The two oldest are nothing that this client speaks: they only stand for the
/// end of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TlsVersion {
    /// 1.0
    Tls10,
    /// 1.1
    Tls11,
    /// 1.2
    Tls12,
    /// 1.3
    Tls13,
}

/// Through whom requests go.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(try_from = "section::ProxySection")]
pub struct ProxyConfig {
    /// The proxy.
    pub url: Option<ShownUrl>,
    /// Hosts that are reached without it; empty also lets loopback addresses go through it.
    pub no_proxy: String,
    /// Whether the environment says both.
    pub from_environment: bool,
    /// Further headers of `CONNECT`.
    pub connect_headers: Vec<(HeaderName, Vec<HeaderValue>)>,
}

/// Values of a header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeaderConfig {
    /// Themselves; those that are secret are marked as sensitive.
    pub values: Vec<HeaderValue>,
    /// Files that have one each, read for each request.
    pub files: Vec<PathBuf>,
}

/// A URL that is shown without what may be secret in it.
#[derive(Clone, PartialEq, Eq)]
pub struct ShownUrl(pub Url);

impl HttpClientConfig {
    /// Without configuration: with the proxies that the environment names.
    pub fn of_environment() -> HttpClientConfig {
        let proxy = ProxyConfig { from_environment: true, ..ProxyConfig::default() };
        HttpClientConfig { proxy, ..HttpClientConfig::default() }
    }

    /// Makes relative paths those below a directory.
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

    /// Whether files are read for each request.
    pub(crate) fn names_files(&self) -> bool {
        let is_file = |secret: &Secret| matches!(secret, Secret::File(_));
        let of_credentials = match &self.credentials {
            Credentials::None | Credentials::OAuth2(_) => false,
            Credentials::Basic { username, password } => is_file(username) || is_file(password),
            Credentials::Authorization { credentials, .. } => is_file(credentials),
        };
        of_credentials
            || self.headers.iter().any(|(_, header)| !header.files.is_empty())
            || self.tls.files().next().is_some()
    }

    /// A number that is another one once any of the certificates and keys has changed.
    pub fn files_checksum(&self) -> u32 {
        let oauth2 = match &self.credentials {
            Credentials::OAuth2(oauth2) => Some(&oauth2.tls),
            _ => None,
        };
        let files = [Some(&self.tls), oauth2].into_iter().flatten().flat_map(TlsConfig::files);
        // The client that needs an unreadable file reports it.
        files.fold(0, |sum, path| {
            crc32c::crc32c_append(sum, &read_file("", path).unwrap_or_default())
        })
    }
}

impl TlsConfig {
    /// Whether anything is configured.
    pub fn is_set(&self) -> bool {
        *self != TlsConfig::default()
    }

    /// The files of certificates and keys.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Path> {
        let client = self.client.iter().flat_map(|(certificate, key)| [certificate, key]);
        self.ca.iter().chain(client).filter_map(|pem| match pem {
            Secret::Text(_) => None,
            Secret::File(path) => Some(path.as_path()),
        })
    }

    /// Makes relative paths those below a directory.
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
