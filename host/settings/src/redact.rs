//! URLs for metrics, logs and pages, without parts that may be secret.

use url::Url;

/// What stands for a value that is not shown, as in Go's `URL.Redacted`.
const HIDDEN: &str = "xxxxx";

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
}
