//! A probe by HTTP: a request, the redirects that follow it, and the last response.
//!
//! Source: `prober/http.go` of prometheus/blackbox_exporter.
//!
//! `exchange` sends one request over a connection of its own; `judge` compares the last response
//! with the module.

mod exchange;
mod judge;

use crate::config::HttpProbe;
use crate::error::ProbeError;
use crate::report::{
    FAILED_REGEX, HTTP_BODY_LENGTH, HTTP_CONTENT_LENGTH, HTTP_DURATION, HTTP_LAST_MODIFIED,
    HTTP_REDIRECTS, HTTP_SSL, HTTP_STATUS, HTTP_VERSION, Report,
};
use crate::resolve::{lookup, resolve};
use exchange::{Answer, Hop};
use hyper::header::{CONTENT_LENGTH, HOST, HeaderMap, HeaderValue, LAST_MODIFIED, USER_AGENT};
use hyper::{Method, Version};
use std::time::{Instant, UNIX_EPOCH};
use tidepool_client::parts::{
    add_headers, authorization, is_trusted, method, redirect, url_credentials, without_secrets,
};
use url::Url;

/// Maximum number of redirects that are followed.
const REDIRECTS_MAX: u32 = 10;

/// User agent of requests, unless the module sets another one.
const AGENT: &str = concat!("tidepool/", env!("CARGO_PKG_VERSION"));

/// Phases that follow the resolution of the address.
const PHASES: [&str; 4] = ["connect", "tls", "processing", "transfer"];

/// Probes a URL. A target without a scheme is probed by HTTP without TLS.
pub(crate) async fn probe(
    probe: &HttpProbe,
    target: &str,
    report: &mut Report,
) -> Result<(), ProbeError> {
    // Upstream registers these gauges first, so that every failure reports them.
    for family in [
        FAILED_REGEX,
        HTTP_BODY_LENGTH,
        HTTP_CONTENT_LENGTH,
        HTTP_REDIRECTS,
        HTTP_SSL,
        HTTP_STATUS,
        HTTP_VERSION,
    ] {
        report.set(family, 0.0);
    }
    let url = url_of(target)?;
    let begun = Instant::now();
    let address = resolve(host_of(&url), probe.ip, report).await;
    report.set_of(HTTP_DURATION, "resolve", begun.elapsed().as_secs_f64());
    let address = address?;
    for phase in PHASES {
        report.set_of(HTTP_DURATION, phase, 0.0);
    }
    let mut hop = Hop {
        headers: headers(probe, &url)?,
        method: probe.method.clone(),
        body: probe.body.clone(),
        is_first_host: true,
        address,
        url: url.clone(),
    };
    let mut redirects = 0;
    let answer = loop {
        let answer = exchange::send(probe, &hop, report).await?;
        let asked = redirect(&hop.url, answer.response.status(), answer.response.headers())?;
        let Some(next) = asked else { break answer };
        redirects += 1;
        report.set(HTTP_REDIRECTS, f64::from(redirects));
        // As upstream, a redirect that is not followed is counted, and its response is judged.
        if redirects > REDIRECTS_MAX || !probe.client.follow_redirects.unwrap_or(true) {
            break answer;
        }
        hop = followed(hop, next, &url, probe, report).await?;
    };
    finish(probe, answer, report).await
}

/// Returns the request that follows a redirect.
async fn followed(
    mut hop: Hop,
    next: tidepool_client::parts::Redirect,
    first: &Url,
    probe: &HttpProbe,
    report: &mut Report,
) -> Result<Hop, ProbeError> {
    if !next.repeats {
        hop.method = method(&hop.method);
        hop.body = bytes::Bytes::new();
    }
    // Credentials must not reach a host that the target's operator does not control.
    if !is_trusted(first, &next.url) {
        hop.headers = without_secrets(hop.headers);
    }
    if next.url.host() != hop.url.host() {
        let begun = Instant::now();
        let found = lookup(host_of(&next.url), probe.ip).await;
        report.add_of(HTTP_DURATION, "resolve", begun.elapsed().as_secs_f64());
        hop.address = found?;
    }
    hop.is_first_host = next.url.host() == first.host()
        && next.url.port_or_known_default() == first.port_or_known_default();
    if !hop.is_first_host {
        // A configured `Host` belongs to the target, and would be wrong on another host.
        hop.headers.remove(HOST);
    }
    hop.url = next.url;
    Ok(hop)
}

/// Reads the body of the last response, then reports and judges the response.
async fn finish(
    probe: &HttpProbe,
    mut answer: Answer,
    report: &mut Report,
) -> Result<(), ProbeError> {
    let response = &answer.response;
    report.set(HTTP_STATUS, f64::from(response.status().as_u16()));
    report.set(HTTP_VERSION, version(response.version()).0);
    report.set(HTTP_CONTENT_LENGTH, content_length(&answer));
    if let Some(at) = response.headers().get(LAST_MODIFIED).and_then(seconds) {
        report.set(HTTP_LAST_MODIFIED, at);
    }
    if let Some(facts) = &answer.tls {
        report.set(HTTP_SSL, 1.0);
        facts.report(true, report);
    }
    let read = answer.read(probe, report).await;
    report.add_of(HTTP_DURATION, "transfer", answer.begun.elapsed().as_secs_f64());
    // Judged even if the body was cut off, because `probe_failed_due_to_regex` must be reported. An
    // error of the body takes precedence.
    let judged = judge::judge(probe, &answer, report);
    read.and(judged)
}

fn url_of(target: &str) -> Result<Url, ProbeError> {
    let wrong =
        |what: &str| ProbeError::Target { target: target.to_owned(), what: what.to_owned() };
    let has = |scheme: &str| {
        target.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    };
    // Without a scheme, `host:port` would parse as a URL whose scheme is `host`.
    let url = match has("http://") || has("https://") {
        true => Url::parse(target),
        false => Url::parse(&format!("http://{target}")),
    };
    let url = url.map_err(|error| wrong(&error.to_string()))?;
    if url.has_host() { Ok(url) } else { Err(wrong("it has no host")) }
}

/// Returns the host of a URL without the brackets of an IPv6 address.
fn host_of(url: &Url) -> &str {
    url.host_str().unwrap_or_default().trim_matches(['[', ']'])
}

fn headers(probe: &HttpProbe, url: &Url) -> Result<HeaderMap, ProbeError> {
    let mut headers = HeaderMap::new();
    add_headers(&mut headers, &probe.client.headers)?;
    for (name, value) in &probe.headers {
        // Headers of the module replace those of the shared client settings.
        headers.insert(name.clone(), value.clone());
    }
    headers.entry(USER_AGENT).or_insert(HeaderValue::from_static(AGENT));
    let configured = authorization(&probe.client.credentials)?;
    let value = match configured {
        None => url_credentials("the target", url)?,
        configured => configured,
    };
    if let Some(value) = value {
        // A configured `Authorization` header takes precedence over credentials, also those in the
        // URL.
        headers.entry(hyper::header::AUTHORIZATION).or_insert(value);
    }
    Ok(headers)
}

/// Returns a version as a number, and in Go's notation.
fn version(version: Version) -> (f64, &'static str) {
    match version {
        Version::HTTP_09 => (0.9, "HTTP/0.9"),
        Version::HTTP_10 => (1.0, "HTTP/1.0"),
        Version::HTTP_11 => (1.1, "HTTP/1.1"),
        Version::HTTP_2 => (2.0, "HTTP/2.0"),
        _ => (3.0, "HTTP/3.0"),
    }
}

/// Returns the announced length of the body in bytes; -1 if it is unknown.
fn content_length(answer: &Answer) -> f64 {
    use hyper::body::Body as _;
    let said = answer.response.headers().get(CONTENT_LENGTH);
    let said = said.and_then(|value| value.to_str().ok()?.trim().parse::<u64>().ok());
    let is_head = answer.method == Method::HEAD;
    // hyper reports a size of 0 for a response to `HEAD`, which says nothing about the resource.
    let known = || answer.response.body().size_hint().exact().filter(|_| !is_head);
    said.or_else(known).map_or(-1.0, |bytes| bytes as f64)
}

/// Parses an HTTP date into Unix time in seconds.
fn seconds(value: &HeaderValue) -> Option<f64> {
    let at = httpdate::parse_http_date(value.to_str().ok()?).ok()?;
    Some(at.duration_since(UNIX_EPOCH).ok()?.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_urls_or_hosts() {
        for (target, expected) in [
            ("example.com", Some("http://example.com/")),
            ("127.0.0.1:9090/x?y", Some("http://127.0.0.1:9090/x?y")),
            ("HTTPS://a/", Some("https://a/")),
            ("http://", None),
            ("http://[::1", None),
            ("", None),
        ] {
            let url = url_of(target).ok().map(String::from);
            assert_eq!(url.as_deref(), expected, "{target}");
        }
    }
}
