//! Texts within HTML, JavaScript and URLs, as Go escapes them.

use crate::template::format::is_printable;
use std::fmt::Write as _;

pub fn html(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\0' => out.push('\u{fffd}'),
            '"' => out.push_str("&#34;"),
            '\'' => out.push_str("&#39;"),
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            _ => out.push(letter),
        }
    }
    out
}

pub fn js(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\\' | '\'' | '"' => out.extend(['\\', letter]),
            '<' | '>' | '&' | '=' => push_escape(letter, &mut out),
            _ if letter < ' ' || letter > '\u{7f}' && !is_printable(letter) => {
                push_escape(letter, &mut out);
            }
            _ => out.push(letter),
        }
    }
    out
}

fn push_escape(letter: char, out: &mut String) {
    // Writing to a text does not fail.
    let _ = write!(out, "\\u{:04X}", u32::from(letter));
}

/// Escapes a value of a URL's query.
pub fn query(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b' ' => out.push('+'),
            b'-' | b'_' | b'.' | b'~' => out.push(char::from(byte)),
            _ if byte.is_ascii_alphanumeric() => out.push(char::from(byte)),
            _ => {
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected values are from Go's `text/template` and `net/url`.
    #[test]
    fn escapes_are_gos() {
        assert_eq!(html("<a b=\"c\">'&\0"), "&lt;a b=&#34;c&#34;&gt;&#39;&amp;\u{fffd}");
        assert_eq!(js("a='b\"\\<é\u{a0}\n\u{7f}"), {
            "a\\u003D\\'b\\\"\\\\\\u003Cé\\u00A0\\u000A\u{7f}"
        });
        assert_eq!(query("a b&c=é~*/"), "a+b%26c%3D%C3%A9~%2A%2F");
    }
}
