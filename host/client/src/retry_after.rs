//! The pause that an answer asks for (RFC 9110, section 10.2.3).

use hyper::header::{HeaderMap, RETRY_AFTER};
use jiff::fmt::rfc2822::DateTimeParser;
use std::time::Duration;

/// Longest pause that is granted.
pub const RETRY_AFTER_MAX: Duration = Duration::from_secs(5 * 60);

/// Returns the pause of `Retry-After`, given in seconds or as a date; `None` if it is zero.
/// `now_ms` is the time since the epoch in milliseconds.
pub fn retry_after(headers: &HeaderMap, now_ms: i64) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let pause = match text.parse::<u64>() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => {
            static PARSER: DateTimeParser = DateTimeParser::new();
            let at = PARSER.parse_timestamp(text).ok()?;
            let ms = at.as_millisecond().saturating_sub(now_ms);
            Duration::from_millis(u64::try_from(ms).unwrap_or(0))
        }
    };
    (!pause.is_zero()).then(|| pause.min(RETRY_AFTER_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;

    /// 1994-11-06T08:49:30Z.
    const NOW_MS: i64 = 784_111_770_000;

    #[test]
    fn pauses_are_read_in_both_forms() {
        for (text, seconds) in [
            ("7", Some(7)),
            ("86400", Some(300)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(7)),
            ("Fri, 31 Dec 2100 08:49:37 GMT", Some(300)),
            ("0", None),
            ("Sun, 06 Nov 1994 08:49:29 GMT", None),
            ("soon", None),
        ] {
            let value = HeaderValue::from_str(text).expect("a value");
            let headers = HeaderMap::from_iter([(RETRY_AFTER, value)]);
            assert_eq!(retry_after(&headers, NOW_MS), seconds.map(Duration::from_secs), "{text}");
        }
    }
}
