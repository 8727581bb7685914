//! The browser page: `GET /` for clients that accept HTML, and the files that the page needs.
//!
//! Browsers revalidate the document on each visit, and cache all other files, whose names contain a
//! hash of their content. Only the page's own scripts may run, and they may send requests only to
//! this server (Content Security Policy Level 3).

use super::gzip;
use super::reply::{Reply, full, text};
use super::request::Request;
use super::route::{GET, Route, route};
use flate2::read::GzDecoder;
use hyper::StatusCode;
use hyper::header::{
    ACCEPT, ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY,
    CONTENT_TYPE, ETAG, HeaderMap, HeaderValue, IF_NONE_MATCH, LOCATION, REFERRER_POLICY, VARY,
    X_CONTENT_TYPE_OPTIONS,
};
use std::io::Read;
use tidepool_page::File;
use tidepool_protocol::prom::media_type::MediaType;

/// Allows only scripts, styles and requests of this origin, and forbids framing the page.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageEndpoint {
    /// A file referred to by the document.
    File,
    /// Links to queries, as in Prometheus' alerts.
    Graph,
}

/// Entries of the table of endpoints, in addition to `/`.
pub const ROUTES: &[Route<PageEndpoint>] = &[
    route(GET, "/ui/{}", PageEndpoint::File, "files of the page for browsers"),
    route(
        GET,
        "/graph",
        PageEndpoint::Graph,
        "the page's queries, at the address of Prometheus' page",
    ),
    route(GET, "/query", PageEndpoint::Graph, "the same, at the address since Prometheus 3"),
];

pub fn answer(endpoint: PageEndpoint, request: &Request) -> Reply {
    match endpoint {
        PageEndpoint::File => file(request.uri().path(), request.headers()),
        PageEndpoint::Graph => graph(request.uri().query()),
    }
}

/// Returns the document if there is a page and the client accepts HTML.
pub fn document(headers: &HeaderMap) -> Option<Reply> {
    let file = tidepool_page::file("")?;
    asks_for_html(headers).then(|| file_reply(file, headers))
}

/// `GET /ui/…`: a file referred to by the document.
fn file(path: &str, headers: &HeaderMap) -> Reply {
    match tidepool_page::file(path.trim_start_matches('/')) {
        // The document is served only at `/`, and must not be cached like other files.
        Some(file) if file.is_immutable() => file_reply(file, headers),
        _ => text(StatusCode::NOT_FOUND, "404 page not found\n"),
    }
}

/// `GET /graph` and `GET /query`: redirects links from alerts to the query page.
fn graph(query: Option<&str>) -> Reply {
    // Relative, so that the redirect keeps the prefix of a proxy.
    let target = query.map_or("./#/query".to_owned(), |query| format!("./?{query}#/query"));
    let target = HeaderValue::from_str(&target).unwrap_or(HeaderValue::from_static("./#/query"));
    let mut reply = text(StatusCode::FOUND, "");
    reply.headers_mut().insert(LOCATION, target);
    reply
}

/// Returns why there is no page, as a line below the list of endpoints.
pub fn why_missing() -> Option<String> {
    let reason = tidepool_page::why_missing()?;
    Some(format!(
        "There is no page for browsers in this program: {reason}.\n\
         With npm on the machine that builds it, cargo build makes the page, too.\n"
    ))
}

fn file_reply(file: &File, headers: &HeaderMap) -> Reply {
    let is_known = headers.get_all(IF_NONE_MATCH).iter().any(|tags| has_tag(tags, file.etag));
    let takes_gzip = gzip::is_taken(headers.get_all(ACCEPT_ENCODING));
    let mut reply = match (is_known, takes_gzip) {
        (true, _) => text(StatusCode::NOT_MODIFIED, ""),
        // Files are stored compressed, so the usual response needs no work.
        (false, true) => {
            full(StatusCode::OK, HeaderValue::from_static(file.content_type), file.gzip)
        }
        (false, false) => plain(file),
    };
    let caching =
        if file.is_immutable() { "public, max-age=31536000, immutable" } else { "no-cache" };
    // `/` also depends on `Accept`: clients other than browsers get the list of endpoints.
    let varies = if file.is_immutable() { "Accept-Encoding" } else { "Accept, Accept-Encoding" };
    let headers = reply.headers_mut();
    if is_known {
        headers.remove(CONTENT_TYPE);
    } else if takes_gzip {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    for (name, value) in [
        (ETAG, file.etag),
        (CACHE_CONTROL, caching),
        (VARY, varies),
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    reply
}

/// Decompresses a file for the few clients that do not accept gzip.
fn plain(file: &File) -> Reply {
    let mut content = Vec::new();
    match GzDecoder::new(file.gzip).read_to_end(&mut content) {
        Ok(_) => full(StatusCode::OK, HeaderValue::from_static(file.content_type), content),
        Err(error) => {
            text(StatusCode::INTERNAL_SERVER_ERROR, format!("the page is damaged: {error}\n"))
        }
    }
}

/// Returns whether a list of entity tags contains `etag` (RFC 9110, 13.1.2, weak comparison).
fn has_tag(tags: &HeaderValue, etag: &str) -> bool {
    let Ok(tags) = tags.to_str() else { return false };
    let mut tags = tags.split(',').map(str::trim);
    tags.any(|tag| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == etag)
}

/// Returns whether a client names HTML in `Accept`, as browsers do but agents and curl do not.
fn asks_for_html(headers: &HeaderMap) -> bool {
    let lists = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    lists.flat_map(|list| list.split(',')).filter_map(|item| MediaType::parse(item.trim())).any(
        |kind| {
            let is_refused = kind.values("q").any(|q| q.parse::<f64>().is_ok_and(|q| q == 0.0));
            kind.is("text/html") && !is_refused
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::InvalidHeaderValue;

    #[test]
    fn browsers_ask_for_html() -> Result<(), InvalidHeaderValue> {
        for (accept, expected) in [
            ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", true),
            ("application/json, TEXT/HTML;q=0.1", true),
            ("text/html;q=0, */*", false),
            ("*/*", false),
            ("text/plain", false),
            ("", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, HeaderValue::from_str(accept)?);
            assert_eq!(asks_for_html(&headers), expected, "{accept}");
        }
        assert!(!asks_for_html(&HeaderMap::new()));
        Ok(())
    }

    #[test]
    fn tags_are_compared_one_by_one() {
        for (tags, expected) in [
            ("\"a\"", true),
            ("W/\"a\"", true),
            ("\"b\", \"a\"", true),
            ("*", true),
            ("\"b\"", false),
            ("a", false),
        ] {
            assert_eq!(has_tag(&HeaderValue::from_static(tags), "\"a\""), expected, "{tags}");
        }
    }

    #[test]
    fn links_to_queries_lead_to_the_page() {
        let location = |query| graph(query).headers().get(LOCATION).cloned();
        let expected = HeaderValue::from_static("./?g0.expr=up&g0.tab=1#/query");
        assert_eq!(location(Some("g0.expr=up&g0.tab=1")), Some(expected));
        assert_eq!(location(None), Some(HeaderValue::from_static("./#/query")));
    }

    #[test]
    fn files_are_kept_and_the_document_is_asked_for() {
        for file in tidepool_page::files() {
            let reply = file_reply(file, &HeaderMap::new());
            let header = |name| reply.headers().get(name).and_then(|value| value.to_str().ok());
            assert_eq!(reply.status(), StatusCode::OK, "{}", file.path);
            assert_eq!(header(CONTENT_ENCODING), None, "{}", file.path);
            assert_eq!(header(CONTENT_SECURITY_POLICY), Some(POLICY));
            let is_kept = header(CACHE_CONTROL).is_some_and(|value| value.contains("immutable"));
            assert_eq!(is_kept, !file.path.is_empty(), "{}", file.path);

            let mut headers = HeaderMap::new();
            headers.insert(IF_NONE_MATCH, HeaderValue::from_static(file.etag));
            headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
            assert_eq!(
                file_reply(file, &headers).status(),
                StatusCode::NOT_MODIFIED,
                "{}",
                file.path
            );
        }
    }
}
