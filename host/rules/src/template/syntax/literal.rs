//! Strings and characters as Go writes them.

/// Returns the text within quotes, of which backquotes are raw. Bytes that are not UTF-8 become
/// U+FFFD.
pub fn unquoted(token: &str) -> Option<String> {
    let mark = token.chars().next()?;
    let inner = token.get(1..token.len().checked_sub(1)?)?;
    if mark == '`' {
        return Some(inner.replace('\r', ""));
    }
    let mut bytes = Vec::with_capacity(inner.len());
    let mut rest = inner;
    while !rest.is_empty() {
        rest = unescaped(rest, mark, &mut bytes)?;
    }
    Some(match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    })
}

/// Returns the character of a constant such as `'a'`; `None` if it is malformed.
pub fn character(token: &str) -> Option<char> {
    let mut bytes = Vec::new();
    let inner = token.strip_prefix('\'')?;
    if unescaped(inner, '\'', &mut bytes)? != "'" {
        return None;
    }
    match bytes[..] {
        // An escape such as `\xff` is the number of a character here.
        [byte] => Some(char::from(byte)),
        _ => std::str::from_utf8(&bytes).ok()?.chars().next(),
    }
}

/// Appends the first character of a text or the byte that it escapes, and returns the rest.
fn unescaped<'t>(text: &'t str, mark: char, out: &mut Vec<u8>) -> Option<&'t str> {
    let mut letters = text.chars();
    let mut push = |letter: char| out.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
    let first = letters.next()?;
    if first != '\\' {
        push(first);
        return if first == mark { None } else { Some(letters.as_str()) };
    }
    let escape = letters.next()?;
    let rest = letters.as_str();
    let digits = |count: usize| {
        let digits = rest.get(..count)?;
        let are_digits = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        are_digits.then(|| u32::from_str_radix(digits, 16).ok())?
    };
    let plain = match escape {
        'a' => '\u{7}',
        'b' => '\u{8}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'v' => '\u{b}',
        '\\' => '\\',
        _ if escape == mark => mark,
        'x' => {
            out.push(digits(2)? as u8);
            return rest.get(2..);
        }
        'u' | 'U' => {
            let count = if escape == 'u' { 4 } else { 8 };
            push(char::from_u32(digits(count)?)?);
            return rest.get(count..);
        }
        '0'..='7' => {
            let value = u32::from_str_radix(text.get(1..4)?, 8).ok()?;
            out.push(u8::try_from(value).ok()?);
            return text.get(4..);
        }
        _ => return None,
    };
    push(plain);
    Some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_gos() {
        for (token, expected) in [
            (r#""a\tb\"c\\""#, Some("a\tb\"c\\")),
            (r#""\u00e9\x41\101\U0001F600""#, Some("éAA\u{1f600}")),
            (r#""\xc3\xa9""#, Some("é")),
            (r#""\xff""#, Some("\u{fffd}")),
            ("`a\\n\r`", Some("a\\n")),
            (r#""\'""#, None),
            (r#""\q""#, None),
            (r#""\400""#, None),
            (r#""\x+1""#, None),
        ] {
            assert_eq!(unquoted(token).as_deref(), expected, "{token}");
        }
        assert_eq!(character("'a'"), Some('a'));
        assert_eq!(character(r"'\''"), Some('\''));
        assert_eq!(character(r"'\xe9'"), Some('é'));
        assert_eq!(character("'ab'"), None);
        assert_eq!(character("''"), None);
    }
}
