//! URLs for metrics, logs and pages, without parts that may be secret.

use url::Url;

/// Text in place of a value that is not shown, as in Go's `URL.Redacted`.
pub const HIDDEN: &str = "xxxxx";

/// Prints a URL without user information and fragment. The query keeps the names of its parameters,
/// but not their values, since some receivers expect a token there.
pub fn shown(url: &Url) -> String {
    let mut url = url.clone();
    // An error means that the URL has no host, and so neither password nor user name.
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

/// [`shown`] for a URL as text; a text without anything to hide stays unchanged.
pub fn shown_text(text: &str) -> String {
    // Parsing would change the spelling, so a text with nothing to hide is not parsed.
    match text.contains(['@', '?', '#']) {
        true => Url::parse(text).map_or_else(|_| HIDDEN.to_owned(), |url| shown(&url)),
        false => text.to_owned(),
    }
}

/// Words that make a parameter secret wherever they occur in its name.
const SECRET_WORDS: [&str; 8] =
    ["token", "secret", "passw", "pwd", "credential", "signature", "apikey", "session"];
/// Words that make a parameter secret if they are its whole name, or a whole word of its name.
const SECRET_NAMES: [&str; 6] = ["key", "auth", "sig", "pass", "code", "sid"];

/// Returns whether a parameter with this name may hold a secret.
pub fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    // Short words must be whole words of the name: `monkey` contains no key.
    SECRET_WORDS.iter().any(|word| name.contains(word))
        || name.split(|c: char| !c.is_ascii_alphanumeric()).any(|part| SECRET_NAMES.contains(&part))
}

/// Prints a request's URL or path without user information, and without the values of parameters
/// that may be secret. Readers of the log need other parameters, such as `module`.
pub fn shown_request(text: &str) -> String {
    // An encoded question mark counts, too, or the secrets after it would be shown as a path.
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
            // The last `@`, because a password may contain this character, too.
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
