//! Quoting of texts and characters by Go's rules.

use std::fmt::Write as _;

/// Returns the text in double quotes.
pub fn quoted(text: &str) -> String {
    quoted_within(text, '"', false)
}

/// Returns the text within quotes of this mark. With `is_ascii`, all other characters are escaped.
pub fn quoted_within(text: &str, mark: char, is_ascii: bool) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push(mark);
    for letter in text.chars() {
        push_letter(letter, mark, is_ascii, &mut out);
    }
    out.push(mark);
    out
}

fn push_letter(letter: char, mark: char, is_ascii: bool, out: &mut String) {
    let plain = match letter {
        '\\' => "\\\\",
        _ if letter == mark => {
            out.extend(['\\', mark]);
            return;
        }
        '\u{7}' => "\\a",
        '\u{8}' => "\\b",
        '\u{c}' => "\\f",
        '\n' => "\\n",
        '\r' => "\\r",
        '\t' => "\\t",
        '\u{b}' => "\\v",
        ' '..='~' => return out.push(letter),
        _ if !is_ascii && is_printable(letter) => return out.push(letter),
        _ => "",
    };
    out.push_str(plain);
    if !plain.is_empty() {
        return;
    }
    // Writing to a text does not fail.
    let _ = match letter {
        '\0'..='\u{7f}' => write!(out, "\\x{:02x}", u32::from(letter)),
        '\u{80}'..='\u{ffff}' => write!(out, "\\u{:04x}", u32::from(letter)),
        _ => write!(out, "\\U{:08x}", u32::from(letter)),
    };
}

/// Returns whether a letter is printable, judged by the library's escapes. The letter before it
/// carries combining marks, which would be escaped when alone.
pub fn is_printable(letter: char) -> bool {
    if matches!(letter, '"' | '\'' | '\\') {
        return true;
    }
    let mut bytes = [b'a', 0, 0, 0, 0];
    let len = letter.encode_utf8(&mut bytes[1..]).len();
    let text = std::str::from_utf8(&bytes[..=len]).unwrap_or_default();
    text.escape_debug().count() == 2
}

/// Returns whether a raw string can hold the text.
pub fn can_be_raw(text: &str) -> bool {
    let is_control = |letter: char| letter < ' ' && letter != '\t';
    !text.contains(|c| is_control(c) || matches!(c, '`' | '\u{7f}' | '\u{feff}'))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected values are from Go's `strconv`.
    #[test]
    fn quotes_are_gos() {
        assert_eq!(quoted("a\"'\\\n\u{1}é\u{a0}\u{301}\u{1f600}"), {
            "\"a\\\"'\\\\\\n\\x01é\\u00a0\u{301}\u{1f600}\""
        });
        assert_eq!(quoted_within("'é", '\'', true), "'\\'\\u00e9'");
        assert!(can_be_raw("a\tb\"") && !can_be_raw("a`") && !can_be_raw("\n"));
    }
}
