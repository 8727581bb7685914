//! Quoting and unquoting of strings by Go's rules.

/// Appends a letter, escaped as in a text that is quoted with `mark`.
fn push_letter(letter: char, mark: char, out: &mut String) {
    use std::fmt::Write as _;
    match letter {
        '\\' => out.push_str("\\\\"),
        _ if letter == mark => out.extend(['\\', mark]),
        '\u{7}' => out.push_str("\\a"),
        '\u{8}' => out.push_str("\\b"),
        '\u{c}' => out.push_str("\\f"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        '\u{b}' => out.push_str("\\v"),
        ' '..='~' => out.push(letter),
        // Writing to a string cannot fail.
        '\0'..='\u{7f}' => drop(write!(out, "\\x{:02x}", letter as u32)),
        _ if is_printable(letter) => out.push(letter),
        '\u{80}'..='\u{ffff}' => drop(write!(out, "\\u{:04x}", letter as u32)),
        _ => drop(write!(out, "\\U{:08x}", letter as u32)),
    }
}

/// Returns whether a letter is printable, judged by the escapes of `escape_debug`. The `a` before
/// the letter keeps combining marks from being escaped.
fn is_printable(letter: char) -> bool {
    let mut bytes = [b'a', 0, 0, 0, 0];
    let len = letter.encode_utf8(&mut bytes[1..]).len();
    let text = std::str::from_utf8(&bytes[..=len]).unwrap_or_default();
    text.escape_debug().count() == 2
}

/// Returns the text in double quotes.
pub fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    push_quoted(text, &mut out);
    out
}

/// Appends the text in double quotes.
pub fn push_quoted(text: &str, out: &mut String) {
    out.push('"');
    push_letters(text, out);
    out.push('"');
}

/// Appends the text without quotes, but with the escapes of double quotes.
pub fn push_letters(text: &str, out: &mut String) {
    text.chars().for_each(|letter| push_letter(letter, '"', out));
}

/// Appends the name of a label, quoted unless it is a plain identifier.
pub fn push_name(name: &str, out: &mut String) {
    let is_part = |byte: u8| byte == b'_' || byte.is_ascii_alphanumeric();
    let starts = name.bytes().next().is_some_and(|byte| !byte.is_ascii_digit());
    match starts && name.bytes().all(is_part) {
        true => out.push_str(name),
        false => push_quoted(name, out),
    }
}

pub fn quoted_letter(letter: char) -> String {
    let mut out = String::from("'");
    push_letter(letter, '\'', &mut out);
    out.push('\'');
    out
}

/// Returns the bytes of a quoted token whose escapes are valid; `None` for other texts.
pub fn unquoted(token: &str) -> Option<Vec<u8>> {
    let inner = token.get(1..token.len().saturating_sub(1))?;
    // Raw strings have no escapes, and most other strings use none.
    if token.starts_with('`') || !inner.contains('\\') {
        return Some(inner.into());
    }
    let mut out = Vec::with_capacity(inner.len());
    let mut rest = inner;
    while let Some((before, after)) = rest.split_once('\\') {
        out.extend_from_slice(before.as_bytes());
        let mut letters = after.chars();
        let digits = |from: usize, count: usize, base| {
            u32::from_str_radix(after.get(from..from + count)?, base).ok()
        };
        let mut used = 1;
        match letters.next()? {
            'a' => out.push(7),
            'b' => out.push(8),
            'f' => out.push(12),
            'n' => out.push(b'\n'),
            'r' => out.push(b'\r'),
            't' => out.push(b'\t'),
            'v' => out.push(11),
            'x' => {
                // `\x` and octal escapes are bytes, which need not form UTF-8; `\u` is a letter.
                out.push(digits(1, 2, 16)? as u8);
                used = 3;
            }
            long @ ('u' | 'U') => {
                let count = if long == 'u' { 4 } else { 8 };
                let letter = char::from_u32(digits(1, count, 16)?)?;
                out.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
                used = 1 + count;
            }
            '0'..='7' => {
                out.push(digits(0, 3, 8)? as u8);
                used = 3;
            }
            other => {
                out.extend_from_slice(other.encode_utf8(&mut [0; 4]).as_bytes());
                used = other.len_utf8();
            }
        }
        rest = after.get(used..)?;
    }
    out.extend_from_slice(rest.as_bytes());
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_gos() {
        for (text, expected) in [
            ("a\"b\\c\n", r#""a\"b\\c\n""#),
            ("\u{1}\u{7f}\u{a0}\u{e9}e\u{301}", "\"\\x01\\x7f\\u00a0\u{e9}e\u{301}\""),
            ("\u{e0001}", r#""\U000e0001""#),
        ] {
            assert_eq!(quoted(text), expected);
        }
        assert_eq!(quoted_letter('\''), r"'\''");
    }

    #[test]
    fn escapes_are_undone() {
        for (token, expected) in [
            (r#""a\tb\\\"""#, Some("a\tb\\\"")),
            (r"`\n`", Some(r"\n")),
            (r"'\x41\u00e9\U0001F600\101x'", Some("A\u{e9}\u{1f600}Ax")),
            (r"'\xc3\xa9'", Some("\u{e9}")),
            (r"'\xff\101'", Some("\u{fffd}A")),
        ] {
            let text = unquoted(token).map(crate::syntax::Text::new);
            assert_eq!(text.as_ref().map(|it| it.as_str()), expected, "{token}");
        }
    }
}
