//! Splits the URL of a trial scrape into the parts that labels and settings of a target hold.

use super::TrialError;
use std::collections::BTreeMap;
use tidepool_client::Ask;
use tidepool_client::parts::percent_decoded;
use tidepool_settings::redact::shown_text;

/// Separator of scheme and host.
const MARK: &str = "://";

/// Parts of a URL. For absent parts, the settings of the job are used.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TargetUrl {
    pub scheme: Option<String>,
    /// Host and port as written in the URL.
    pub address: String,
    pub path: Option<String>,
    pub params: Option<BTreeMap<String, Vec<String>>>,
}

impl TargetUrl {
    pub fn parse(text: &str) -> Result<TargetUrl, TrialError> {
        let text = text.trim();
        let wrong = |what: String| TrialError::Url { url: shown_text(text), what };
        let (scheme, rest) = match text.split_once(MARK) {
            Some((scheme, rest)) => (Some(scheme.to_ascii_lowercase()), rest),
            None => (None, text),
        };
        if scheme.as_deref().is_some_and(|scheme| !matches!(scheme, "http" | "https")) {
            return Err(wrong("its scheme is neither http nor https".into()));
        }
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (address, behind) = rest.split_at(end);
        // A zone is escaped in URLs, but not in lists of targets; both are accepted.
        let address = address.replace("%25", "%");
        let escaped = address.replace('%', "%25");
        let whole = format!("{}{MARK}{escaped}{behind}", scheme.as_deref().unwrap_or("http"));
        let url = Ask::get_text(&whole).map_err(|error| wrong(error.to_string()))?.url;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(TrialError::Credentials);
        }
        let params = url.query().map(|_| {
            let mut params = BTreeMap::<String, Vec<String>>::new();
            for (name, value) in url.query_pairs() {
                params.entry(name.into_owned()).or_default().push(value.into_owned());
            }
            params
        });
        // Decoded, because paths in the configuration are not escaped.
        let path = behind.starts_with('/').then(|| percent_decoded(url.path()));
        Ok(TargetUrl { scheme, address, path, params })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_says_what_it_says_and_no_more() {
        let asked = |text: &str| {
            let TargetUrl { scheme, address, path, params } =
                TargetUrl::parse(text).expect("a URL");
            (scheme.unwrap_or_default(), address, path.unwrap_or_default(), params)
        };
        let own = |scheme: &str, address: &str, path: &str| {
            (scheme.to_owned(), address.to_owned(), path.to_owned(), None)
        };
        assert_eq!(asked("127.0.0.1:9100"), own("", "127.0.0.1:9100", ""));
        assert_eq!(asked("localhost:9100/x"), own("", "localhost:9100", "/x"));
        assert_eq!(asked(" HTTPS://[::1]:443"), own("https", "[::1]:443", ""));
        assert_eq!(asked("[fe80::1%eth0]:9100"), own("", "[fe80::1%eth0]:9100", ""));
        assert_eq!(asked("http://[fe80::1%25eth0]/a%20b"), own("http", "[fe80::1%eth0]", "/a b"));
        assert_eq!(asked("http://a:80/"), own("http", "a:80", "/"));
        let params = [("b".to_owned(), vec!["1 2".to_owned(), "3".to_owned()])];
        let expected = ("http".to_owned(), "a".to_owned(), String::new(), Some(params.into()));
        assert_eq!(asked("http://a?b=1%202&b=3#c"), expected);
        for (text, said) in [
            ("ftp://a/", "ftp://a/ is no URL such as http://127.0.0.1:9100/metrics: its scheme is"),
            ("", " is no URL"),
            ("http://", "empty host"),
            ("http://a:x/?p=secret", "invalid port"),
            ("http://me:secret@a/", "the URL has credentials"),
        ] {
            let error = TargetUrl::parse(text).map_err(|error| error.to_string()).unwrap_err();
            assert!(error.contains(said) && !error.contains("secret"), "{text}: {error}");
        }
    }
}
