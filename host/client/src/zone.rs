//! Zones of IPv6 addresses: `http://[fe80::1%25eth0]/` is the host `fe80::1` on the link of the
//! interface `eth0`. The crate `url` does not support zones, `http::Uri` does.
//!
//! Source: RFC 6874, as Go's `net/url` and `net` understand it.

use url::Url;

/// Separates address and zone in a URL: an escaped `%`.
const MARK: &str = "%25";

/// Parses a URL, and the zone of its host if it has one.
pub(crate) fn parse(text: &str) -> Result<(Url, Option<String>), url::ParseError> {
    let found = zone(text);
    let Some((begin, end)) = found else { return Ok((Url::parse(text)?, None)) };
    let zone = &text[begin + MARK.len()..end];
    // The URL is parsed without the zone, so nothing else checks these characters.
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | '~');
    if zone.is_empty() || !zone.chars().all(is_plain) {
        return Err(url::ParseError::InvalidIpv6Address);
    }
    let url = Url::parse(&format!("{}{}", &text[..begin], &text[end..]))?;
    Ok((url, Some(zone.to_owned())))
}

/// Returns the range of a zone, including its mark.
fn zone(text: &str) -> Option<(usize, usize)> {
    let (scheme, rest) = text.split_once("://")?;
    let begin = scheme.len() + "://".len();
    // After the authority, `%25` is an ordinary escape.
    let authority = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
    let end = authority.find(']')?;
    let mark = authority[..end].find(MARK)?;
    Some((begin + mark, begin + end))
}

/// Formats the host of a URI; inserts the zone before the closing bracket.
pub(crate) fn with_zone(host: &str, zone: Option<&str>) -> String {
    match (host.strip_suffix(']'), zone) {
        (Some(address), Some(zone)) => format!("{address}{MARK}{zone}]"),
        _ => host.to_owned(),
    }
}

/// Returns the host of a URI for the resolver, without brackets: `fe80::1%eth0`.
pub(crate) fn looked_up(host: &str) -> String {
    host.trim_matches(['[', ']']).replacen(MARK, "%", 1)
}
