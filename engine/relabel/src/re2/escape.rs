//! Escapes of a single character, within classes and outside.

use super::cursor::Cursor;
use super::{SyntaxError, Wrong};

/// Parses an escape after the backslash at `start`; returns the code point, which may be a
/// surrogate.
pub(super) fn escape(cursor: &mut Cursor<'_>, start: usize) -> Result<u32, SyntaxError> {
    let Some(letter) = cursor.next() else {
        return Err(SyntaxError::new(Wrong::LastBackslash, ""));
    };
    let found = match letter {
        // A single digit is a back-reference, which RE2 does not support.
        '1'..='7' if !cursor.peek().is_some_and(is_octal) => None,
        '0'..='7' => Some(octal(cursor, letter)),
        'x' => hexadecimal(cursor),
        'a' => Some(0x07),
        'f' => Some(0x0c),
        'n' => Some(0x0a),
        'r' => Some(0x0d),
        't' => Some(0x09),
        'v' => Some(0x0b),
        _ if letter.is_ascii() && !letter.is_ascii_alphanumeric() => Some(letter.into()),
        _ => None,
    };
    found.ok_or_else(|| cursor.wrong_since(start, Wrong::Escape))
}

fn is_octal(letter: char) -> bool {
    letter.is_digit(8)
}

/// Reads an octal number of at most three digits.
fn octal(cursor: &mut Cursor<'_>, first: char) -> u32 {
    let mut code = first.to_digit(8).unwrap_or_default();
    for _ in 1..3 {
        let Some(digit) = cursor.peek().and_then(|letter| letter.to_digit(8)) else { break };
        cursor.next();
        code = code * 8 + digit;
    }
    code
}

/// Reads two hexadecimal digits, or any number of digits in braces.
fn hexadecimal(cursor: &mut Cursor<'_>) -> Option<u32> {
    let digit = |letter: char| letter.to_digit(16);
    let first = cursor.next()?;
    if first != '{' {
        let second = cursor.next()?;
        return Some(digit(first)? * 16 + digit(second)?);
    }
    let mut code = digit(cursor.next()?)?;
    loop {
        match cursor.next()? {
            '}' => return Some(code),
            letter => code = code * 16 + digit(letter)?,
        }
        // Checked for each digit, so that the number cannot overflow.
        if code > char::MAX.into() {
            return None;
        }
    }
}
