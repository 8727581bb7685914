//! Helpers for text from the kernel, and for labels and metric names.

use std::borrow::Cow;
use std::fmt::Write;

/// Replaces each run of invalid UTF-8 by one U+FFFD, as Go's `strings.ToValidUTF8` does.
pub(crate) fn valid_utf8(bytes: &[u8]) -> Cow<'_, str> {
    let Err(_) = std::str::from_utf8(bytes) else {
        // The bytes are valid UTF-8, so this borrows.
        return String::from_utf8_lossy(bytes);
    };
    let mut text = String::with_capacity(bytes.len());
    let mut is_in_run = false;
    for chunk in bytes.utf8_chunks() {
        // A run continues only if there is no valid text before the next invalid bytes.
        is_in_run &= chunk.valid().is_empty();
        text.push_str(chunk.valid());
        if !chunk.invalid().is_empty() && !is_in_run {
            text.push(char::REPLACEMENT_CHARACTER);
            is_in_run = true;
        }
    }
    Cow::Owned(text)
}

/// Returns whether a text may be part of a metric name, except at its start.
pub(crate) fn is_name_part(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Formats into an existing string, whose memory is reused.
pub(crate) fn format_into<'t>(text: &'t mut String, arguments: std::fmt::Arguments) -> &'t str {
    text.clear();
    // Writing to a string cannot fail.
    let _written = text.write_fmt(arguments);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_run_of_bytes_that_are_no_text_is_replaced_once() {
        let cases: [(&[u8], &str); 5] = [
            (b"", ""),
            ("grün".as_bytes(), "grün"),
            (b"a\xff\xfe\x80b\xc3", "a\u{fffd}b\u{fffd}"),
            (b"\xe2\x82\xe2\x82\xac", "\u{fffd}\u{20ac}"),
            (b"\xff", "\u{fffd}"),
        ];
        for (bytes, expected) in cases {
            assert_eq!(valid_utf8(bytes), expected);
        }
    }

    #[test]
    fn parts_of_names() {
        assert!(["TCP6", "pgfault", "nr_0"].into_iter().all(is_name_part));
        assert!(!["", "a b", "a-b", "é", "a\n"].into_iter().any(is_name_part));
    }
}
