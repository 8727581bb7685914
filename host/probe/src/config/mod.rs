//! Configuration of probes: the section `probe_modules`, with the names and defaults of `modules`
//! in blackbox_exporter's configuration.
//!
//! A key that upstream has and tidepool lacks is an error that names the key.

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

/// Maximum size of a body in bytes for a module without `body_size_limit`.
pub const BODY_BYTES_MAX: u64 = 10 << 20;

/// Module of scrape jobs that name none.
pub const MODULE_DEFAULT: &str = "http_2xx";

/// Modules by name, including the built-in ones.
pub type ModuleSet = BTreeMap<String, Arc<Module>>;

#[derive(Clone, Debug, PartialEq, serde::Deserialize)]
#[serde(try_from = "section::ModuleSection")]
pub struct Module {
    pub prober: Prober,
    /// Longest duration of a probe; the scrape job's timeout if absent.
    pub timeout: Option<Duration>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Prober {
    /// HTTP; the scheme of the URL decides about TLS.
    Http(Box<HttpProbe>),
    Tcp(Box<TcpProbe>),
}

/// Settings of an HTTP probe. Fields without a comment have the name of their key.
#[derive(Clone, Debug, PartialEq)]
pub struct HttpProbe {
    /// Accepted status codes; empty accepts all of 2xx.
    pub valid_status_codes: Vec<u16>,
    /// Accepted HTTP versions; empty accepts all versions.
    pub valid_http_versions: Vec<String>,
    pub ip: IpChoice,
    pub fail_if_ssl: bool,
    pub fail_if_not_ssl: bool,
    pub method: Method,
    pub headers: Vec<(HeaderName, HeaderValue)>,
    pub body: Bytes,
    pub fail_if_body_matches_regexp: Vec<Pattern>,
    pub fail_if_body_not_matches_regexp: Vec<Pattern>,
    pub fail_if_header_matches: Vec<HeaderMatch>,
    pub fail_if_header_not_matches: Vec<HeaderMatch>,
    /// Maximum size of the body in bytes (`body_size_limit`).
    pub body_bytes_max: u64,
    /// Credentials, TLS settings, and whether redirects are followed.
    pub client: HttpClientConfig,
}

/// A rule of `fail_if_header_matches` or `fail_if_header_not_matches`.
#[derive(Clone, Debug, PartialEq)]
pub struct HeaderMatch {
    pub header: HeaderName,
    /// Expression that one of the header's values must match.
    pub regexp: Pattern,
    pub allow_missing: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct TcpProbe {
    pub ip: IpChoice,
    pub tls: bool,
    pub tls_config: TlsConfig,
}

impl Module {
    /// Resolves relative paths against a directory.
    pub fn set_directory(&mut self, directory: &Path) {
        match &mut self.prober {
            Prober::Http(probe) => probe.client.set_directory(directory),
            Prober::Tcp(probe) => probe.tls_config.set_directory(directory),
        }
    }

    /// Returns the longest duration of a probe within a scrape of this timeout. A part of the
    /// timeout is left for storing the report: half a second as upstream, but at most a quarter.
    pub fn timeout_within(&self, scrape_timeout: Duration) -> Duration {
        let reserved = Duration::from_millis(500).min(scrape_timeout / 4);
        // The reserve is at most a quarter of the timeout, so the subtraction cannot underflow.
        let available = scrape_timeout - reserved;
        self.timeout.map_or(available, |timeout| timeout.min(available))
    }

    /// Returns the scheme of targets whose URL has none.
    pub fn scheme(&self) -> Option<&'static str> {
        match self.prober {
            Prober::Http(_) => Some("http"),
            Prober::Tcp(_) => None,
        }
    }
}

impl HttpProbe {
    /// Returns whether any rule matches the body, so that it must be kept.
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
