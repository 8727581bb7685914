//! Hosts, ports, and URLs.

use super::Parameter::Text;
use super::escape::query;
use super::{Function, plain, text};
use crate::template::value::Value;
use std::net::{Ipv4Addr, Ipv6Addr};

pub const FUNCTIONS: &[Function] = &[
    plain("externalURL", &[], |context, _| Ok(Value::text(context.external_url))),
    plain("graphLink", &[Text], |_, values| {
        Ok(Value::text(format!("/graph?g0.expr={}&g0.tab=0", query(text(values, 0)))))
    }),
    plain("pathPrefix", &[], |context, _| Ok(Value::text(path(context.external_url)))),
    plain("stripDomain", &[Text], |_, values| Ok(Value::text(strip_domain(text(values, 0))))),
    plain("stripPort", &[Text], |_, values| {
        let whole = text(values, 0);
        Ok(Value::text(split(whole).map_or(whole, |(host, _)| host)))
    }),
    plain("tableLink", &[Text], |_, values| {
        Ok(Value::text(format!("/graph?g0.expr={}&g0.tab=1", query(text(values, 0)))))
    }),
    plain("urlQueryEscape", &[Text], |_, values| Ok(Value::text(query(text(values, 0))))),
];

/// Splits `host:port` and `[host]:port` as Go does; `None` if there is no port.
fn split(text: &str) -> Option<(&str, &str)> {
    let (before, port) = text.rsplit_once(':')?;
    let host = match before.strip_prefix('[') {
        Some(inner) => inner.strip_suffix(']').filter(|host| !host.contains(']'))?,
        None => Some(before).filter(|host| !host.contains([':', ']']))?,
    };
    (!host.contains('[') && !port.contains(['[', ']'])).then_some((host, port))
}

fn strip_domain(text: &str) -> String {
    let (host, port) = split(text).unwrap_or((text, ""));
    if is_address(host) {
        return text.to_owned();
    }
    let host = host.split('.').next().unwrap_or_default();
    match port {
        "" => host.to_owned(),
        _ if host.contains(':') => format!("[{host}]:{port}"),
        _ => format!("{host}:{port}"),
    }
}

/// Returns whether the host is an address, which may have a zone.
fn is_address(host: &str) -> bool {
    match host.split_once('%') {
        Some((host, zone)) => !zone.is_empty() && host.parse::<Ipv6Addr>().is_ok(),
        None => host.parse::<Ipv6Addr>().is_ok() || host.parse::<Ipv4Addr>().is_ok(),
    }
}

/// Returns the path of a URL, without escapes.
fn path(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    let path = match url.split_once("://") {
        Some((_, rest)) => rest.find('/').map_or("", |slash| &rest[slash..]),
        None => url,
    };
    percent_encoding::percent_decode_str(path).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_those_of_urls() {
        for (url, expected) in [
            ("http://host:9090/a/b?c#d", "/a/b"),
            ("http://host", ""),
            ("http://host?x=/y", ""),
            ("http://host/a%20b/", "/a b/"),
            ("", ""),
        ] {
            assert_eq!(path(url), expected, "{url}");
        }
    }
}
