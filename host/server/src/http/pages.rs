//! Protection against web pages: any page that a user visits can make the browser send requests to
//! this server from inside the network, without asking the user.
//!
//! - Pages of other origins cannot change data. Browsers state how origin and target are related
//!   (Fetch metadata), or, on insecure connections, the page's origin. Agents send neither header
//!   and are accepted.
//! - A page whose own host name points at this server has the same origin. Where no credential is
//!   needed, the host name of a request must therefore be known to the server.
//!
//! Sources: Fetch Metadata Request Headers (W3C), RFC 6454, section 7.

use super::context::Context;
use super::reply::{Reply, retry_later, text};
use crate::access::{Scope, host_name_of, is_known_host};
use crate::http::request::Request;
use hyper::header::{HOST, HeaderMap, HeaderValue, ORIGIN};
use hyper::{Method, StatusCode, Uri};
use std::sync::atomic::Ordering::Relaxed;

const SEC_FETCH_SITE: &str = "sec-fetch-site";

/// Returns the refusal of a request that may come from a foreign page.
pub fn refusal(context: &Context, scope: Scope, request: &Request) -> Option<Reply> {
    let (uri, headers) = (request.uri(), request.headers());
    let refused = |status, message: &str| {
        context.counters.refused_foreign.fetch_add(1, Relaxed);
        retry_later(text(status, format!("{message}\n")))
    };
    // With several fields, a proxy and this server could use different host names.
    if headers.get_all(HOST).iter().count() > 1 {
        return Some(refused(StatusCode::BAD_REQUEST, "the request has more than one Host"));
    }
    let changes = matches!(scope, Scope::Write | Scope::Admin)
        && !matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    if changes && !is_of_own_origin(uri, headers) {
        let message =
            "the request comes from a page of another origin, which may not change anything";
        return Some(refused(StatusCode::FORBIDDEN, message));
    }
    if context.access.is_open(scope) {
        let is_known = |name: &str| is_known_host(name, &context.http.allowed_hosts);
        if let Some(foreign) = names(uri, headers).find(|name| !is_known(name)) {
            // A sender drops samples after a 4xx; after a 503 it retries until the name is allowed.
            let status = match scope {
                Scope::Write => StatusCode::SERVICE_UNAVAILABLE,
                Scope::Read | Scope::Admin => StatusCode::FORBIDDEN,
            };
            // The log cuts the text at a quote or colon, so the name is first and without quotes.
            let message = match host_name_of(foreign) {
                Some(name) => format!(
                    "the host name {name} is not allowed; if it is right, set \
                     --allowed-host={name}. A page in a browser could have pointed any other name \
                     at this server"
                ),
                None => format!("the host name is none that could be allowed: {foreign:?}"),
            };
            return Some(refused(status, &message));
        }
    }
    None
}

/// Returns the host names in a request, from target (RFC 9112, section 3.2.2) and `Host`.
fn names<'a>(uri: &'a Uri, headers: &'a HeaderMap) -> impl Iterator<Item = &'a str> {
    let of_target = uri.authority().map(|authority| authority.as_str());
    of_target.into_iter().chain(words(headers, HOST.as_str()))
}

/// Returns the text of a header; if it is no text, a text that matches no known name or origin.
fn words<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).map(|value: &HeaderValue| value.to_str().unwrap_or("?.?"))
}

fn is_of_own_origin(uri: &Uri, headers: &HeaderMap) -> bool {
    // Browsers set this header themselves, so a page cannot forge it.
    if let Some(site) = words(headers, SEC_FETCH_SITE) {
        return matches!(site, "same-origin" | "none");
    }
    // Only browsers send `Origin`, so a client without it is an agent.
    let Some(origin) = words(headers, ORIGIN.as_str()) else { return true };
    names(uri, headers).any(|name| is_origin_of(origin, name))
}

/// Returns whether an origin such as `http://node` has this host name. Schemes may differ.
fn is_origin_of(origin: &str, name: &str) -> bool {
    let Some((scheme, authority)) = origin.split_once("://") else { return false };
    let default_port = match scheme {
        "http" => ":80",
        "https" => ":443",
        _ => return false,
    };
    let without_default =
        |name: &str| name.strip_suffix(default_port).unwrap_or(name).to_ascii_lowercase();
    without_default(authority) == without_default(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::InvalidHeaderValue;

    #[test]
    fn origins_are_compared_with_the_name_that_is_asked() {
        for (origin, name) in [
            ("http://127.0.0.1:9201", "127.0.0.1:9201"),
            ("http://node", "node:80"),
            ("https://node:443", "Node"),
            ("http://[::1]:9201", "[::1]:9201"),
        ] {
            assert!(is_origin_of(origin, name), "{origin} {name}");
        }
        for (origin, name) in [
            ("null", "null"),
            ("http://node:9201", "node:9202"),
            ("http://node", "node:9201"),
            ("http://node:443", "node"),
            ("http://node.evil.example", "node"),
            ("chrome-extension://node", "node"),
            ("", ""),
        ] {
            assert!(!is_origin_of(origin, name), "{origin} {name}");
        }
    }

    #[test]
    fn browsers_are_believed_and_agents_let_in() -> Result<(), InvalidHeaderValue> {
        for (site, origin, expected) in [
            (None, None, true),
            (Some("same-origin"), Some("http://proxy.example"), true),
            (Some("none"), None, true),
            (Some("same-site"), None, false),
            (Some("cross-site"), Some("http://node:9201"), false),
            (Some("whatever comes"), None, false),
            (None, Some("http://node:9201"), true),
            (None, Some("http://evil.example"), false),
            (None, Some("null"), false),
            (None, Some("\u{e9}"), false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, HeaderValue::from_static("node:9201"));
            if let Some(site) = site {
                headers.insert(SEC_FETCH_SITE, HeaderValue::from_static(site));
            }
            if let Some(origin) = origin {
                headers.insert(ORIGIN, HeaderValue::from_bytes(origin.as_bytes())?);
            }
            let is_own = is_of_own_origin(&Uri::from_static("/-/reload"), &headers);
            assert_eq!(is_own, expected, "{site:?} {origin:?}");
        }
        Ok(())
    }
}
