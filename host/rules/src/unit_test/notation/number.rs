//! Numbers as the lexer of PromQL finds them in series, and as Go reads them.

use super::NotationError;
use super::cursor::{Cursor, is_name_part};

/// Takes the text of a number without sign: digits, a dot, an exponent, `_` between digits.
pub fn take<'t>(cursor: &mut Cursor<'t>) -> Result<&'t str, NotationError> {
    let bytes = cursor.rest().as_bytes();
    let at = |place: usize| bytes.get(place).copied().unwrap_or(0);
    let (mut end, mut has_dot, mut has_exponent) = (0, false, false);
    loop {
        match at(end) {
            b'0'..=b'9' => end += 1,
            b'.' if !has_dot && !matches!(at(end + 1), b'_' | b'.') => {
                has_dot = true;
                end += 1;
            }
            b'e' | b'E' if !has_exponent && end > 0 => {
                has_exponent = true;
                end += if matches!(at(end + 1), b'+' | b'-') { 2 } else { 1 };
                if !at(end).is_ascii_digit() {
                    return Err(cursor.error("bad number syntax"));
                }
            }
            b'_' if end > 0 && at(end + 1).is_ascii_digit() => end += 1,
            _ => break,
        }
    }
    let next = cursor.rest().get(end..).and_then(|rest| rest.chars().next());
    if end == 0 || next.is_some_and(|next| next != 'x' && (is_name_part(next) || next == '.')) {
        return Err(cursor.error("bad number syntax"));
    }
    Ok(cursor.skip(end))
}

/// Takes a number without sign, or the word for infinity or for no number.
pub fn unsigned(cursor: &mut Cursor<'_>) -> Result<f64, NotationError> {
    for (word, value) in [("inf", f64::INFINITY), ("nan", f64::NAN)] {
        let is_next = cursor.rest().get(..3).is_some_and(|text| text.eq_ignore_ascii_case(word));
        let goes_on = cursor.rest().get(3..).is_some_and(|rest| rest.starts_with(is_name_part));
        if is_next && !goes_on {
            cursor.skip(3);
            return Ok(value);
        }
    }
    let text = take(cursor)?;
    value(text).ok_or_else(|| cursor.error(format!("error parsing number: {text:?}")))
}

/// Takes a number with or without a sign.
pub fn signed(cursor: &mut Cursor<'_>) -> Result<f64, NotationError> {
    if cursor.take('-') {
        return Ok(-unsigned(cursor)?);
    }
    cursor.take('+');
    unsigned(cursor)
}

/// Takes a number of a histogram, which has no `+` and does not begin with a dot.
pub fn of_histogram(cursor: &mut Cursor<'_>, may_be_negative: bool) -> Result<f64, NotationError> {
    if may_be_negative && cursor.take('-') {
        return Ok(-unsigned(cursor)?);
    }
    match cursor.peek() {
        Some('.') => Err(cursor.error("unexpected '.' in a histogram")),
        _ => unsigned(cursor),
    }
}

/// Takes a whole number without sign.
pub fn whole(cursor: &mut Cursor<'_>) -> Result<u64, NotationError> {
    let text = take(cursor)?;
    let are_digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let number = are_digits.then(|| text.parse().ok()).flatten();
    number.ok_or_else(|| cursor.error(format!("invalid repetition in series values: {text:?}")))
}

/// The value of a number's text: whole ones with a zero before them have base 8.
fn value(text: &str) -> Option<f64> {
    let digits = text.replace('_', "");
    let is_whole = digits.bytes().all(|byte| byte.is_ascii_digit());
    let is_octal = is_whole && digits.len() > 1 && digits.starts_with('0');
    if let Some(number) = i64::from_str_radix(&digits, 8).ok().filter(|_| is_octal) {
        return Some(number as f64);
    }
    digits.parse::<f64>().ok().filter(|number| number.is_finite())
}
