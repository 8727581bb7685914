//! Quotes text as Go's `strconv.Quote` does, for messages in upstream's words.

use std::fmt::Write as _;

/// Quotes a text with double quotes. Bytes that are not UTF-8 become `\x` and two digits.
pub fn quoted(text: &[u8]) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for chunk in text.utf8_chunks() {
        chunk.valid().chars().for_each(|letter| push(letter, '"', &mut out));
        for byte in chunk.invalid() {
            // Writing to a string does not fail.
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
    out.push('"');
    out
}

/// Quotes a byte with single quotes, as the character with its number (Go's `%q` of a byte).
pub fn quoted_byte(byte: u8) -> String {
    let mut out = String::from("'");
    push(char::from(byte), '\'', &mut out);
    out.push('\'');
    out
}

fn push(letter: char, quote: char, out: &mut String) {
    let code = u32::from(letter);
    // Writing to a string does not fail.
    let _ = match letter {
        '\\' => write!(out, "\\\\"),
        _ if letter == quote => write!(out, "\\{letter}"),
        '\u{7}' => write!(out, "\\a"),
        '\u{8}' => write!(out, "\\b"),
        '\u{c}' => write!(out, "\\f"),
        '\n' => write!(out, "\\n"),
        '\r' => write!(out, "\\r"),
        '\t' => write!(out, "\\t"),
        '\u{b}' => write!(out, "\\v"),
        ' '..='~' => write!(out, "{letter}"),
        '\0'..='\u{7f}' => write!(out, "\\x{code:02x}"),
        _ if is_printable(letter) => write!(out, "{letter}"),
        '\u{80}'..='\u{ffff}' => write!(out, "\\u{code:04x}"),
        _ => write!(out, "\\U{code:08x}"),
    };
}

/// Returns whether a character is printable, judged by how the standard library escapes it. The `a`
/// before it is needed for combining marks, which are escaped if nothing precedes them.
fn is_printable(letter: char) -> bool {
    ['a', letter].iter().collect::<String>().escape_debug().count() == 2
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Quotes as Go's `strconv.Quote` and `%q` write them.
    #[test]
    fn texts_are_quoted_as_in_go() {
        let text = "a\"b\\\n\u{1}\u{7f}\u{a0}\u{e9}e\u{301}\u{e0001}'";
        let expected = "\"a\\\"b\\\\\\n\\x01\\x7f\\u00a0\u{e9}e\u{301}\\U000e0001'\"";
        assert_eq!(quoted(text.as_bytes()), expected);
        assert_eq!(quoted(b"a\xff\xc3b\xe9"), "\"a\\xff\\xc3b\\xe9\"");
        for (byte, expected) in [
            (b'a', "'a'"),
            (b'\'', "'\\''"),
            (b'"', "'\"'"),
            (0xe9, "'\u{e9}'"),
            (0x85, "'\\u0085'"),
        ] {
            assert_eq!(quoted_byte(byte), expected);
        }
    }
}
