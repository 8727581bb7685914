//! Decides what a receiver's answer means for the rows of its request.
//!
//! Source: Remote-Write 2.0 specification, sections "Response" and "Retries & Backoff".

use super::client::Answer;
use super::config::RetryOn429;
use hyper::StatusCode;
use hyper::header::{CONTENT_TYPE, HeaderMap, LOCATION, RETRY_AFTER};
use std::time::Duration;
use tidepool_client::retry_after;
use tidepool_lifecycle::clock::system_now_ms;
use tidepool_runtime::RemoteWriteVersion;
use tidepool_settings::redact::shown_text;

/// Numbers of float samples, native histograms and exemplars.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub samples: u64,
    pub histograms: u64,
    pub exemplars: u64,
}

/// Meaning of an answer for its request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// The receiver stored the rows that `written` counts.
    Delivered { written: Counts },
    /// The receiver will not store the rows, except for those that `written` counts.
    Refused { why: String, written: Counts },
    /// The receiver does not accept messages of this version.
    UnknownVersion,
    /// A retry may succeed, because the failure of receiver or network may pass.
    Again { why: String, after: Option<Duration> },
}

/// The request and earlier experience with its receiver, which decide on an answer's meaning.
#[derive(Clone, Copy)]
pub(super) struct Asked {
    pub version: RemoteWriteVersion,
    pub sent: Counts,
    pub retry_on_429: RetryOn429,
    /// Whether the receiver has ever returned the counts that 2.0 defines.
    pub has_counted: bool,
}

impl Counts {
    pub fn is_nothing(&self) -> bool {
        *self == Counts::default()
    }

    /// Returns these counts minus `other`.
    pub fn without(&self, other: &Counts) -> Counts {
        Counts {
            samples: self.samples.saturating_sub(other.samples),
            histograms: self.histograms.saturating_sub(other.histograms),
            exemplars: self.exemplars.saturating_sub(other.exemplars),
        }
    }

    fn at_most(&self, other: &Counts) -> Counts {
        Counts {
            samples: self.samples.min(other.samples),
            histograms: self.histograms.min(other.histograms),
            exemplars: self.exemplars.min(other.exemplars),
        }
    }
}

pub(super) fn meaning(asked: Asked, answer: &Answer) -> Meaning {
    let Answer { status, headers, text } = answer;
    let is_v2 = asked.version == RemoteWriteVersion::V2;
    // Only 2.0 defines the counts.
    let written = written(headers).filter(|_| is_v2);
    let why = || format!("{status}: {}", text.trim());
    if status.is_success() {
        return match written {
            // Prometheus calls this a failure as well (`queue_manager.go`).
            Some(written) if written.is_nothing() && !asked.sent.is_nothing() => {
                let why = "a success that says that nothing was written".to_owned();
                Meaning::Refused { why, written }
            }
            Some(written) => Meaning::Delivered { written: written.at_most(&asked.sent) },
            // A server that answers with a web page is no receiver, so nothing was stored.
            None if is_page(answer) => {
                let why = format!(
                    "{status} with a page of HTML, as from a gateway or a login: no receiver of \
                     remote write answers so"
                );
                Meaning::Again { why, after: retry_after(headers, system_now_ms()) }
            }
            None if is_v2 && asked.has_counted => {
                let why = format!(
                    "{status} without the counts of what was written, which the receiver gave \
                     before: another server answers in its place"
                );
                Meaning::Again { why, after: retry_after(headers, system_now_ms()) }
            }
            // The specification asks for the fallback to 1.0 here: a 1.0 receiver that ignores the
            // content type parses a message of 2.0 as an empty message of 1.0.
            None if is_v2 => Meaning::UnknownVersion,
            None => Meaning::Delivered { written: asked.sent },
        };
    }
    // The specification's answer to a type of message that is not known.
    if *status == StatusCode::UNSUPPORTED_MEDIA_TYPE && is_v2 {
        return Meaning::UnknownVersion;
    }
    if status.is_redirection() {
        let to = headers.get(LOCATION).map(|to| String::from_utf8_lossy(to.as_bytes()));
        let to = to.map(|to| format!(" (to {})", shown_text(&to))).unwrap_or_default();
        // A redirected request was not stored. The redirect may be temporary, such as to the login
        // page of a network gate, so the request is retried.
        let why = format!("{status}: redirects are not followed{to}; name the receiver's own URL");
        return Meaning::Again { why, after: retry_after(headers, system_now_ms()) };
    }
    // The specification demands retries after 5xx, and leaves retries after 429 to the sender.
    let is_cured_by_time = match *status {
        StatusCode::TOO_MANY_REQUESTS => match asked.retry_on_429 {
            RetryOn429::Always => true,
            RetryOn429::IfAnnounced => headers.contains_key(RETRY_AFTER),
            RetryOn429::Never => false,
        },
        status => status.is_server_error(),
    };
    match is_cured_by_time {
        true => Meaning::Again { why: why(), after: retry_after(headers, system_now_ms()) },
        false => {
            let written = written.unwrap_or_default().at_most(&asked.sent);
            Meaning::Refused { why: why(), written }
        }
    }
}

/// Returns the counts that a 2.0 receiver reports as written; `None` without count headers.
fn written(headers: &HeaderMap) -> Option<Counts> {
    let count = |kind: &str| {
        let name = format!("x-prometheus-remote-write-{kind}-written");
        headers.get(name)?.to_str().ok()?.trim().parse::<u64>().ok()
    };
    let counts = [count("samples"), count("histograms"), count("exemplars")];
    if counts.iter().all(Option::is_none) {
        return None;
    }
    let [samples, histograms, exemplars] = counts.map(Option::unwrap_or_default);
    Some(Counts { samples, histograms, exemplars })
}

/// Returns whether the answer is a page for people to read.
fn is_page(answer: &Answer) -> bool {
    let kind = answer.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = kind.unwrap_or_default().trim_start().to_ascii_lowercase();
    let text = answer.text.trim_start_matches('\u{feff}').trim_start().to_ascii_lowercase();
    // The content type alone proves little: some servers send `text/html` by default.
    let says_html = kind.starts_with("text/html") || kind.starts_with("application/xhtml");
    text.starts_with("<!doctype html")
        || text.starts_with("<html")
        || (says_html && text.starts_with('<'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::{HeaderName, HeaderValue};

    const SENT: Counts = Counts { samples: 5, histograms: 2, exemplars: 1 };

    fn asked(version: RemoteWriteVersion) -> Asked {
        let retry_on_429 = RetryOn429::IfAnnounced;
        Asked { version, sent: SENT, retry_on_429, has_counted: false }
    }

    fn answer(status: u16, headers: &[(&'static str, &str)], text: &str) -> Answer {
        let header = |(name, value): &(&'static str, &str)| {
            (HeaderName::from_static(name), HeaderValue::from_str(value).expect("a value"))
        };
        let status = StatusCode::from_u16(status).expect("a status");
        Answer { status, headers: headers.iter().map(header).collect(), text: text.into() }
    }

    const SAMPLES: &str = "x-prometheus-remote-write-samples-written";
    const HISTOGRAMS: &str = "x-prometheus-remote-write-histograms-written";
    const EXEMPLARS: &str = "x-prometheus-remote-write-exemplars-written";

    #[test]
    fn only_counts_make_a_success_of_2_0() {
        use RemoteWriteVersion::{V1, V2};
        let all = [(SAMPLES, "5"), (HISTOGRAMS, "2"), (EXEMPLARS, "1")];
        let whole = Meaning::Delivered { written: SENT };
        assert_eq!(meaning(asked(V2), &answer(200, &all, "<html>")), whole);
        // More than was sent is not believed, and what is not named was not written.
        let written = Counts { samples: 4, histograms: 0, exemplars: 0 };
        let some = answer(204, &[(SAMPLES, "4")], "");
        assert_eq!(meaning(asked(V2), &some), Meaning::Delivered { written });
        let many = [(SAMPLES, "900"), (HISTOGRAMS, "900"), (EXEMPLARS, "900")];
        assert_eq!(meaning(asked(V2), &answer(204, &many, "")), whole);
        let none = answer(204, &[(SAMPLES, "0")], "");
        assert!(matches!(meaning(asked(V2), &none), Meaning::Refused { .. }));
        // 1.0 has no counts.
        assert_eq!(meaning(asked(V1), &answer(200, &[], "thank you")), whole);
        assert_eq!(meaning(asked(V1), &some), whole);

        let silent = answer(204, &[(SAMPLES, "many")], "");
        assert_eq!(meaning(asked(V2), &silent), Meaning::UnknownVersion);
        let known = Asked { has_counted: true, ..asked(V2) };
        assert!(matches!(meaning(known, &silent), Meaning::Again { .. }));
        assert_eq!(meaning(asked(V2), &answer(415, &[], "")), Meaning::UnknownVersion);
        assert!(matches!(meaning(asked(V1), &answer(415, &[], "")), Meaning::Refused { .. }));
    }

    #[test]
    fn a_page_is_no_success() {
        let html = [("content-type", "text/html; charset=utf-8")];
        for version in [RemoteWriteVersion::V1, RemoteWriteVersion::V2] {
            for page in [
                answer(200, &html, "\n<p>Please log in</p>"),
                answer(200, &[], "<!DOCTYPE html><html>"),
                answer(202, &[("content-type", "text/plain")], "<HTML><body>"),
            ] {
                let meaning = meaning(asked(version), &page);
                assert!(matches!(meaning, Meaning::Again { .. }), "{page:?} {meaning:?}");
            }
        }
        // The default type of some servers.
        let written = SENT;
        let ok = answer(200, &html, "ok");
        assert_eq!(meaning(asked(RemoteWriteVersion::V1), &ok), Meaning::Delivered { written });
    }

    #[test]
    fn what_time_cures_is_tried_again() {
        let is_again =
            |asked: Asked, answer: &Answer| matches!(meaning(asked, answer), Meaning::Again { .. });
        let v2 = asked(RemoteWriteVersion::V2);
        for status in [301, 302, 307, 500, 502, 503, 504, 507, 599] {
            assert!(is_again(v2, &answer(status, &[], "")), "{status}");
        }
        for status in [400, 401, 403, 404, 408, 413, 422] {
            assert!(!is_again(v2, &answer(status, &[("retry-after", "5")], "")), "{status}");
        }
        let (announced, plain) = (answer(429, &[("retry-after", "0")], ""), answer(429, &[], ""));
        for (retry_on_429, wanted) in [
            (RetryOn429::Never, [false, false]),
            (RetryOn429::IfAnnounced, [true, false]),
            (RetryOn429::Always, [true, true]),
        ] {
            let asked = Asked { retry_on_429, ..v2 };
            let got = [is_again(asked, &announced), is_again(asked, &plain)];
            assert_eq!(got, wanted, "{retry_on_429:?}");
        }
        // What a refusal says that was written was.
        let partly = answer(400, &[(SAMPLES, "3"), (EXEMPLARS, "9")], "2 samples refused");
        let Meaning::Refused { written, why } = meaning(v2, &partly) else { panic!("{partly:?}") };
        assert_eq!(written, Counts { samples: 3, histograms: 0, exemplars: 1 });
        assert!(why.contains("400") && why.contains("2 samples refused"), "{why}");
    }
}
