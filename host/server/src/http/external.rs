//! The URL under which users reach this server, and the prefix of all its paths.
//!
//! Source: `--web.external-url` and `--web.route-prefix` in prometheus/prometheus 3.16,
//! `cmd/prometheus/main.go` and `web/web.go`.

use super::config::HttpConfig;
use super::reply::{Reply, text};
use crate::access::{Access, machine_name};
use hyper::header::{HeaderValue, LOCATION};
use hyper::{StatusCode, Uri};
use std::str::FromStr;

/// The value of `--web.external-url`: a URL without its last slashes, or only a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExternalUrl {
    text: String,
    /// Empty, or with a slash at its beginning and none at its end.
    path: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExternalUrlError {
    #[error("the URL must not begin or end with a quote")]
    Quotes,
    #[error("expected a URL such as https://node.example/prometheus, or a path")]
    NoUrl,
}

impl FromStr for ExternalUrl {
    type Err = ExternalUrlError;

    fn from_str(text: &str) -> Result<ExternalUrl, ExternalUrlError> {
        if text.starts_with(['"', '\'']) || text.ends_with(['"', '\'']) {
            return Err(ExternalUrlError::Quotes);
        }
        let text = text.trim_end_matches('/');
        let path = match text.split_once("://") {
            Some((scheme, rest)) => {
                let is_scheme = scheme == "http" || scheme == "https";
                let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
                if !is_scheme || host.is_empty() {
                    return Err(ExternalUrlError::NoUrl);
                }
                path
            }
            None => text,
        };
        let path = prefix(path);
        // A query or fragment would be part of every link.
        let is_path =
            !path.contains(['?', '#']) && (path.is_empty() || path.parse::<Uri>().is_ok());
        match is_path {
            true => Ok(ExternalUrl { text: text.to_owned(), path }),
            false => Err(ExternalUrlError::NoUrl),
        }
    }
}

/// What a server knows of its URL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct External {
    pub url: Option<ExternalUrl>,
    /// Value of `--web.route-prefix`.
    pub route_prefix: Option<String>,
}

impl External {
    /// Returns the URL under which users reach the server, without a slash at its end.
    pub fn url(&self, host: &str, port: u16, has_tls: bool) -> String {
        match &self.url {
            Some(url) => url.text.clone(),
            None => format!("{}://{host}:{port}", if has_tls { "https" } else { "http" }),
        }
    }

    /// Returns the prefix of all paths: empty, or with a slash at its beginning only.
    fn prefix(&self) -> String {
        match (&self.route_prefix, &self.url) {
            (Some(route_prefix), _) => prefix(route_prefix),
            (None, Some(url)) => url.path.clone(),
            (None, None) => String::new(),
        }
    }

    /// Removes the prefix from the target of a request. The error is the reply to a request outside
    /// of the prefix.
    pub fn strip(&self, uri: &Uri) -> Result<Option<Uri>, Box<Reply>> {
        let prefix = self.prefix();
        if prefix.is_empty() {
            return Ok(None);
        }
        match uri.path().strip_prefix(prefix.as_str()) {
            Some(path) if path.starts_with('/') => {
                let mut parts = uri.clone().into_parts();
                let query = uri.query().map_or_else(String::new, |query| format!("?{query}"));
                parts.path_and_query = format!("{path}{query}").parse().ok();
                Ok(Uri::from_parts(parts).ok())
            }
            // With its slash, so that the relative links of the page begin at the prefix.
            Some("") => Err(Box::new(found(&prefix))),
            _ if uri.path() == "/" => Err(Box::new(found(&prefix))),
            _ => Err(Box::new(text(StatusCode::NOT_FOUND, "404 page not found\n"))),
        }
    }
}

/// Returns the URL under which users reach a server.
pub fn external_url(http: &HttpConfig, access: &Access) -> String {
    http.external.url(&machine_name(), http.listen.port(), access.tls().is_some())
}

fn prefix(text: &str) -> String {
    match text.trim_matches('/') {
        "" => String::new(),
        path => format!("/{path}"),
    }
}

fn found(prefix: &str) -> Reply {
    let mut reply = text(StatusCode::FOUND, "");
    if let Ok(target) = HeaderValue::from_str(&format!("{prefix}/")) {
        reply.headers_mut().insert(LOCATION, target);
    }
    reply
}

#[cfg(test)]
mod tests {
    use super::*;

    fn external(url: Option<&str>, route_prefix: Option<&str>) -> External {
        External {
            url: url.map(|url| url.parse().expect("a URL")),
            route_prefix: route_prefix.map(str::to_owned),
        }
    }

    /// Expectations: `computeExternalURL` of upstream. A path alone is taken as well.
    #[test]
    fn urls_are_those_of_upstream() {
        let default = External::default();
        assert_eq!(default.url("node", 9201, false), "http://node:9201");
        assert_eq!(default.url("node", 9201, true), "https://node:9201");
        for (text, url, prefix) in [
            ("http://proxy.com/prometheus", "http://proxy.com/prometheus", "/prometheus"),
            ("http://proxy.com/a/b/", "http://proxy.com/a/b", "/a/b"),
            ("https://proxy.com/", "https://proxy.com", ""),
            ("http://proxy.com", "http://proxy.com", ""),
            ("/prometheus/", "/prometheus", "/prometheus"),
        ] {
            let external = external(Some(text), None);
            assert_eq!(external.url("node", 9201, false), url, "{text}");
            assert_eq!(external.prefix(), prefix, "{text}");
        }
        for text in ["'http://url'", "\"http://url", "http:///a", "ftp://a", "http://a/ b"] {
            assert!(text.parse::<ExternalUrl>().is_err(), "{text}");
        }
    }

    #[test]
    fn paths_lose_the_prefix() {
        let stripped = |external: &External, path: &str| {
            let uri: Uri = path.parse().expect("a target");
            match external.strip(&uri) {
                Ok(uri) => uri.map_or_else(|| path.to_owned(), |uri| uri.to_string()),
                Err(reply) => {
                    let target = reply.headers().get(LOCATION);
                    let target = target.map_or("", |target| target.to_str().expect("text"));
                    format!("{} {target}", reply.status().as_u16())
                }
            }
        };
        let with = external(Some("http://a.example/tide/pool"), None);
        for (path, expected) in [
            ("/tide/pool/api/v1/query?query=up", "/api/v1/query?query=up"),
            ("/tide/pool/", "/"),
            ("/tide/pool", "302 /tide/pool/"),
            ("/", "302 /tide/pool/"),
            ("/tide/poolside", "404 "),
            ("/api/v1/query", "404 "),
        ] {
            assert_eq!(stripped(&with, path), expected, "{path}");
        }
        // A proxy removes the path of the URL itself.
        let behind_proxy = external(Some("http://a.example/tide"), Some("/"));
        assert_eq!(stripped(&behind_proxy, "/-/ready"), "/-/ready");
        let only_prefix = external(None, Some("tide/"));
        assert_eq!(stripped(&only_prefix, "/tide/-/ready"), "/-/ready");
    }
}
