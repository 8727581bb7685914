//! Determines the next URL of a redirected request.
//!
//! Source: `net/http` of Go, `client.go`: after 301, 302 or 303 a GET follows, after 307 or 308 the
//! same request again; at most ten redirects are followed.

use crate::ClientError;
use hyper::header::{AUTHORIZATION, COOKIE, HeaderMap, HeaderName, LOCATION, PROXY_AUTHORIZATION};
use hyper::{Method, StatusCode};
use tidepool_settings::redact::shown;
use url::Url;

/// Maximum number of redirects that are followed.
pub const REDIRECTS_MAX: usize = 10;

/// The next request that a response asks for.
#[derive(Debug, PartialEq, Eq)]
pub struct Redirect {
    pub url: Url,
    /// Whether the request is repeated with its body, instead of a GET.
    pub repeats: bool,
}

/// Returns the redirect in the response to a request for `url`; `None` if there is none.
pub fn redirect(
    url: &Url,
    status: StatusCode,
    headers: &HeaderMap,
) -> Result<Option<Redirect>, ClientError> {
    let repeats = match status.as_u16() {
        301..=303 => false,
        307 | 308 => true,
        _ => return Ok(None),
    };
    let Some(location) = headers.get(LOCATION) else { return Ok(None) };
    let wrong = || ClientError::Url("a redirect whose Location is no URL".into());
    let location = location.to_str().map_err(|_| wrong())?;
    let mut next = url.join(location).map_err(|_| wrong())?;
    if !matches!(next.scheme(), "http" | "https") || !next.has_host() {
        return Err(ClientError::RedirectTarget(shown(&next)));
    }
    // Credentials in the Location are dropped: a server must not choose the client's identity.
    let _ = next.set_username("");
    let _ = next.set_password(None);
    Ok(Some(Redirect { url: next, repeats }))
}

/// Returns the method after a redirect that does not repeat the request.
pub fn method(method: &Method) -> Method {
    match *method {
        Method::HEAD => Method::HEAD,
        _ => Method::GET,
    }
}

/// Returns whether a host may receive the first host's secrets: it is equal or a subdomain.
pub fn is_trusted(first: &Url, next: &Url) -> bool {
    let (Some(first), Some(next)) = (first.host_str(), next.host_str()) else { return false };
    if first == next {
        return true;
    }
    // A host in brackets is an IPv6 address, which has no subdomains.
    let is_below = |rest: &str| rest.ends_with('.') && !next.starts_with('[');
    next.strip_suffix(first).is_some_and(is_below)
}

/// Removes the headers that only the configured host may receive: those that Go removes, and those
/// with sensitive values.
pub fn without_secrets(headers: HeaderMap) -> HeaderMap {
    const SECRET: [HeaderName; 3] = [AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION];
    const SECRET_TEXTS: [&str; 3] = ["cookie2", "proxy-authenticate", "www-authenticate"];
    let mut kept = HeaderMap::with_capacity(headers.len());
    for (name, value) in &headers {
        let is_secret = SECRET.contains(name) || SECRET_TEXTS.contains(&name.as_str());
        if !is_secret && !value.is_sensitive() {
            kept.append(name.clone(), value.clone());
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).expect("a URL")
    }

    fn next(status: u16, location: &str) -> Result<Option<Redirect>, ClientError> {
        let status = StatusCode::from_u16(status).unwrap_or_default();
        let value = hyper::header::HeaderValue::from_str(location);
        let headers = HeaderMap::from_iter([(LOCATION, value.expect("a value"))]);
        redirect(&url("https://a.example:8443/metrics?x=1"), status, &headers)
    }

    #[test]
    fn redirects_are_gos() {
        for (status, location, expected, repeats) in [
            (301, "/other", "https://a.example:8443/other", false),
            (302, "other?y=2", "https://a.example:8443/other?y=2", false),
            (303, "http://b.example", "http://b.example/", false),
            (307, "//b.example/c", "https://b.example/c", true),
            (308, "https://me:pass@b.example/", "https://b.example/", true),
        ] {
            let expected = Redirect { url: url(expected), repeats };
            assert_eq!(next(status, location), Ok(Some(expected)), "{status} {location}");
        }
        for status in [200, 300, 304, 305, 400] {
            assert_eq!(next(status, "/other"), Ok(None), "{status}");
        }
        assert!(next(302, "ftp://a/").is_err_and(|error| error.to_string().contains("ftp://a/")));
        let silent = redirect(&url("http://a/"), StatusCode::FOUND, &HeaderMap::new());
        assert_eq!(silent, Ok(None));
    }

    #[test]
    fn secrets_stay_below_the_first_host() {
        for (first, next, expected) in [
            ("https://a.example/", "https://a.example:9/", true),
            ("http://a.example/", "https://A.example/", true),
            ("http://a.example/", "http://b.a.example/", true),
            ("http://a.example/", "http://ba.example/", false),
            ("http://b.a.example/", "http://a.example/", false),
            ("http://127.0.0.1/", "http://localhost/", false),
            ("http://[::1]/", "http://[::1]:1/", true),
            ("http://[::1]/", "http://[::2]/", false),
        ] {
            assert_eq!(is_trusted(&url(first), &url(next)), expected, "{first} {next}");
        }
    }
}
