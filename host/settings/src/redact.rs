//! URLs for metrics, logs and pages, without parts that may be secret.

use url::Url;

/// What stands for a value that is not shown, as in Go's `URL.Redacted`.
pub const HIDDEN: &str = "xxxxx";

/// A URL without user information and fragment, and with the names of its query but not their
/// values: some receivers take a token there.
pub fn shown(url: &Url) -> String {
    let mut url = url.clone();
    // A URL without a host has none of them.
    let _ = url.set_password(None);
    let _ = url.set_username("");
    url.set_fragment(None);
    if let Some(query) = url.query() {
        let hidden = |part: &str| match part.split_once('=') {
            Some((name, _)) => format!("{name}={HIDDEN}"),
            None if part.is_empty() => String::new(),
            None => HIDDEN.to_owned(),
        };
        let parts: Vec<String> = query.split('&').map(hidden).collect();
        url.set_query(Some(&parts.join("&")));
    }
    url.to_string()
}

/// The same of a text, which stays as it is if there is nothing to hide.
pub fn shown_text(text: &str) -> String {
    match text.contains(['@', '?', '#']) {
        true => Url::parse(text).map_or_else(|_| HIDDEN.to_owned(), |url| shown(&url)),
        false => text.to_owned(),
    }
}

/// Words within the names of parameters that hold secrets.
const SECRET_WORDS: [&str; 8] =
    ["token", "secret", "passw", "pwd", "credential", "signature", "apikey", "session"];
/// Names, and parts of names, of such parameters.
const SECRET_NAMES: [&str; 6] = ["key", "auth", "sig", "pass", "code", "sid"];

/// Whether a parameter of this name may well hold a secret.
pub fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET_WORDS.iter().any(|word| name.contains(word))
        || name.split(|c: char| !c.is_ascii_alphanumeric()).any(|part| SECRET_NAMES.contains(&part))
}

/// What is asked for, as a URL or a path: without user information, and without the values of
/// parameters that may well be secret. Others, such as `module`, are what a person looks for.
pub fn shown_request(text: &str) -> String {
    let is_mark = |at: usize| {
        let rest = &text.as_bytes()[at..];
        rest.starts_with(b"?") || rest.len() >= 3 && rest[..3].eq_ignore_ascii_case(b"%3f")
    };
    let mark = (0..text.len()).find(|at| is_mark(*at));
    let (place, query) = mark.map_or((text, None), |at| {
        let mark = if text.as_bytes()[at] == b'?' { 1 } else { 3 };
        (&text[..at + mark], Some(&text[at + mark..]))
    });
    let mut shown = match place.split_once("://") {
        None => place.to_owned(),
        Some((scheme, rest)) => {
            let end = rest.find('/').unwrap_or(rest.len());
            let host = rest[..end].rsplit('@').next().unwrap_or_default();
            format!("{scheme}://{host}{}", &rest[end..])
        }
    };
    for (number, part) in query.iter().flat_map(|query| query.split('&').enumerate()) {
        if number > 0 {
            shown.push('&');
        }
        match part.split_once('=') {
            Some((name, _)) if is_secret_name(name) => shown.push_str(&format!("{name}={HIDDEN}")),
            _ => shown.push_str(part),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_secret_is_hidden() {
        for (url, wanted) in [
            ("http://a:9090/api/v1/write", "http://a:9090/api/v1/write"),
            ("https://me:pass@a/w?u=paul&p=foo#tok", "https://a/w?u=xxxxx&p=xxxxx"),
            ("https://a/w?token", "https://a/w?xxxxx"),
            ("https://a/w?a=b=c&&d=", "https://a/w?a=xxxxx&&d=xxxxx"),
            ("s3://bucket/path", "s3://bucket/path"),
            ("no url?token=secret", "xxxxx"),
        ] {
            assert_eq!(shown_text(url), wanted);
        }
    }

    #[test]
    fn only_what_looks_like_a_secret_is_hidden_in_a_request() {
        for (asked, wanted) in [
            ("/probe", "/probe"),
            (
                "http://a:9115/probe?module=http_2xx&target=https%3A%2F%2Fx%3Fa%3D1",
                "http://a:9115/probe?module=http_2xx&target=https%3A%2F%2Fx%3Fa%3D1",
            ),
            (
                "http://me:pass@a/x?API_KEY=1&q=2&access_token=3&monkey=4&auth=5&sig",
                "http://a/x?API_KEY=xxxxx&q=2&access_token=xxxxx&monkey=4&auth=xxxxx&sig",
            ),
            ("http://a/x%3Ftoken=1&b=2", "http://a/x%3Ftoken=xxxxx&b=2"),
            ("/metrics?x-api-key=1", "/metrics?x-api-key=xxxxx"),
            ("ü%3", "ü%3"),
            ("", ""),
        ] {
            assert_eq!(shown_request(asked), wanted);
        }
    }
}
