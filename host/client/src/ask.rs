//! A request before it is sent, and the URI of its URL.

use crate::ClientError;
use crate::zone::{self, with_zone};
use bytes::Bytes;
use hyper::header::HeaderMap;
use hyper::{Method, Uri};
use std::time::Duration;
use url::Url;

#[derive(Clone, Debug)]
pub struct Ask {
    pub method: Method,
    /// URL of the request. Its credentials are sent unless others are configured.
    pub url: Url,
    /// The zone of an IPv6 address in the URL, such as `eth0`.
    pub zone: Option<String>,
    /// Headers of the caller; configured headers are added to these.
    pub headers: HeaderMap,
    pub body: Bytes,
    /// Maximum time until the end of the response's body; `None` means no limit.
    pub timeout: Option<Duration>,
    /// Maximum size of the response's body in bytes.
    pub answer_bytes_max: u64,
}

impl Ask {
    /// Creates a GET request without headers, body and limits.
    pub fn get(url: Url) -> Ask {
        let (headers, body) = Default::default();
        let (method, zone) = (Method::GET, None);
        Ask { method, url, zone, headers, body, timeout: None, answer_bytes_max: u64::MAX }
    }

    /// Like [`Ask::get`] for a URL as text, in which an IPv6 address may have a zone.
    pub fn get_text(url: &str) -> Result<Ask, url::ParseError> {
        let (url, zone) = zone::parse(url)?;
        Ok(Ask { zone, ..Ask::get(url) })
    }

    /// Returns the URL with its zone, for messages.
    pub fn url_text(&self) -> String {
        match (&self.zone, uri(&self.url, self.zone.as_deref())) {
            (Some(_), Ok(uri)) => uri.to_string(),
            _ => self.url.to_string(),
        }
    }
}

/// Appends the port of a URL to a host, if the URL has one.
pub(crate) fn with_port(host: String, url: &Url) -> String {
    match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host,
    }
}

/// Converts a URL to the URI of a request, without credentials and fragment.
pub(crate) fn uri(url: &Url, zone: Option<&str>) -> Result<Uri, ClientError> {
    let wrong = |what: &str| ClientError::Url(what.to_owned());
    let (Some(host), true) = (url.host_str(), matches!(url.scheme(), "http" | "https")) else {
        return Err(wrong("the URL is no http or https URL"));
    };
    let authority = with_port(with_zone(host, zone), url);
    let target = match url.query() {
        Some(query) => format!("{}?{query}", url.path()),
        None => url.path().to_owned(),
    };
    let uri = Uri::builder().scheme(url.scheme()).authority(authority).path_and_query(target);
    uri.build().map_err(|error| wrong(&error.to_string()))
}
