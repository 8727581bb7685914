//! Label names as URL paths contain them.

use std::borrow::Cow;
use tidepool_exposition::NameEscaping;

/// Decodes percent escapes in a segment of a path; `None` if the result is not UTF-8.
pub fn decode_path_segment(segment: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(segment.len());
    let mut rest = segment.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        // `from_str_radix` would accept a sign before a digit.
        let digits = digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) if *first == b'%' => {
                bytes.push(byte);
                rest = after.get(2..).unwrap_or_default();
            }
            // A percent sign without two digits is kept.
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).ok()
}

/// Decodes an escaped name (`U__…`). Any other name is returned unchanged.
pub fn unescape(name: String) -> String {
    match NameEscaping::Values.unescape(&name) {
        Cow::Owned(unescaped) => unescaped,
        Cow::Borrowed(_) => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_lose_their_percent_signs() {
        for (segment, expected) in [
            ("job", Some("job")),
            ("a%2Fb%20c", Some("a/b c")),
            ("%c3%a9", Some("\u{e9}")),
            ("100%", Some("100%")),
            ("%zz%+1", Some("%zz%+1")),
            ("%ff", None),
        ] {
            assert_eq!(decode_path_segment(segment).as_deref(), expected, "{segment}");
        }
    }

    #[test]
    fn plain_names_become_what_they_stand_for() {
        for (name, expected) in [
            ("job", "job"),
            ("U__foo_2e_bar", "foo.bar"),
            // Not an escaped name.
            ("U__a_2e", "U__a_2e"),
        ] {
            assert_eq!(unescape(name.to_owned()), expected, "{name}");
        }
    }
}
