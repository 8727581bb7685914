//! How is probed: the section `probe_modules`, with the names and defaults of `modules` in
//! blackbox_exporter's configuration.
//!
//! What upstream has and this has not is an error that names the key.

mod section;

pub use crate::pattern::Pattern;
pub use crate::resolve::{IpChoice, IpProtocol};
pub use section::read;

use bytes::Bytes;
use hyper::Method;
use hyper::header::{HeaderName, HeaderValue};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tidepool_client::HttpClientConfig;
use tidepool_client::config::TlsConfig;

/// Largest body of a module without `body_size_limit`.
pub const BODY_BYTES_MAX: u64 = 10 << 20;

/// The module of jobs that name none.
pub const MODULE_DEFAULT: &str = "http_2xx";

/// Modules by name; the built-in ones among them.
pub type ModuleSet = BTreeMap<String, Arc<Module>>;

/// How is probed.
#[derive(Clone, Debug, PartialEq, serde::Deserialize)]
#[serde(try_from = "section::ModuleSection")]
pub struct Module {
    /// By which protocol.
    pub prober: Prober,
    /// Longest time of a probe; that of the job if there is none.
    pub timeout: Option<Duration>,
}

/// The protocol of a probe.
#[derive(Clone, Debug, PartialEq)]
pub enum Prober {
    /// HTTP, with TLS by the URL.
    Http(Box<HttpProbe>),
    /// TCP
    Tcp(Box<TcpProbe>),
}

/// The section `http`.
#[derive(Clone, Debug, PartialEq)]
pub struct HttpProbe {
    /// Empty: 2xx.
    pub valid_status_codes: Vec<u16>,
    /// Empty: all.
    pub valid_http_versions: Vec<String>,
    /// Which address is probed.
    pub ip: IpChoice,
    /// `fail_if_ssl`
    pub fail_if_ssl: bool,
    /// `fail_if_not_ssl`
    pub fail_if_not_ssl: bool,
    /// `method`
    pub method: Method,
    /// `headers`
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// `body`
    pub body: Bytes,
    /// `fail_if_body_matches_regexp`
    pub fail_if_body_matches_regexp: Vec<Pattern>,
    /// `fail_if_body_not_matches_regexp`
    pub fail_if_body_not_matches_regexp: Vec<Pattern>,
    /// `fail_if_header_matches`
    pub fail_if_header_matches: Vec<HeaderMatch>,
    /// `fail_if_header_not_matches`
    pub fail_if_header_not_matches: Vec<HeaderMatch>,
    /// `body_size_limit`, in bytes.
    pub body_bytes_max: u64,
    /// Credentials, TLS, and whether redirects are followed.
    pub client: HttpClientConfig,
}

/// What a header must or must not say.
#[derive(Clone, Debug, PartialEq)]
pub struct HeaderMatch {
    /// The header.
    pub header: HeaderName,
    /// What one of its values is matched with.
    pub regexp: Pattern,
    /// Whether the header may be missing.
    pub allow_missing: bool,
}

/// The section `tcp`.
#[derive(Clone, Debug, PartialEq)]
pub struct TcpProbe {
    /// Which address is probed.
    pub ip: IpChoice,
    /// Whether there is a handshake of TLS.
    pub tls: bool,
    /// Whom that trusts.
    pub tls_config: TlsConfig,
}

impl Module {
    /// Makes relative paths those below a directory.
    pub fn set_directory(&mut self, directory: &Path) {
        match &mut self.prober {
            Prober::Http(probe) => probe.client.set_directory(directory),
            Prober::Tcp(probe) => probe.tls_config.set_directory(directory),
        }
    }

    /// The longest time of a probe in a scrape that may take this long. Some of that is left to
    /// store what the probe has found: half a second as upstream, but no more than a quarter.
    pub fn timeout_within(&self, scrape_timeout: Duration) -> Duration {
        let reserved = Duration::from_millis(500).min(scrape_timeout / 4);
        let available = scrape_timeout - reserved;
        self.timeout.map_or(available, |timeout| timeout.min(available))
    }

    /// What URLs of targets begin with if they have no scheme.
    pub fn scheme(&self) -> Option<&'static str> {
        match self.prober {
            Prober::Http(_) => Some("http"),
            Prober::Tcp(_) => None,
        }
    }
}

impl HttpProbe {
    /// Whether the body is matched with anything.
    pub fn looks_at_body(&self) -> bool {
        !self.fail_if_body_matches_regexp.is_empty()
            || !self.fail_if_body_not_matches_regexp.is_empty()
    }
}

impl Default for IpChoice {
    fn default() -> IpChoice {
        IpChoice { preferred: IpProtocol::default(), falls_back: true }
    }
}

#[cfg(test)]
mod tests;
