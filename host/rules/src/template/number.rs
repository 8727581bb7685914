//! Numbers as Go reads them.

use crate::template::format::quoted;

/// A number literal, with the values that it has as other types.
#[derive(Debug)]
pub struct Number {
    pub text: String,
    pub int: Option<i64>,
    pub float: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FloatError {
    Syntax,
    Range,
}

/// Powers of two from which a float is infinite or zero, whatever its mantissa.
const EXPONENT_MAX: i64 = 4000;

impl Number {
    /// Parses a literal; the error is Go's text.
    pub fn parse(text: &str) -> Result<Number, String> {
        let number = |int, float| Number { text: text.to_owned(), int, float };
        if let Some(value) = integer(text) {
            let int = i64::try_from(value).ok();
            if int.is_some() || u64::try_from(value).is_ok() {
                return Ok(number(int, value as f64));
            }
        }
        let illegal = || format!("illegal number syntax: {}", quoted(text));
        let value = float(text).map_err(|_| illegal())?;
        if !text.contains(['.', 'e', 'E', 'p', 'P']) {
            return Err(format!("integer overflow: {}", quoted(text)));
        }
        // 2^63: a float below it is exact as an integer.
        let is_int = value.fract() == 0.0 && (-(2f64.powi(63))..2f64.powi(63)).contains(&value);
        Ok(number(is_int.then_some(value as i64), value))
    }

    /// Returns whether the literal is written as a float.
    pub fn is_float(&self) -> bool {
        let hex = self.text.strip_prefix("0x").or_else(|| self.text.strip_prefix("0X"));
        let is_hex_int = hex.is_some_and(|digits| !digits.contains(['p', 'P']));
        !is_hex_int && self.text.contains(['.', 'e', 'E', 'p', 'P'])
    }
}

/// Parses an integer with the prefixes and underscores of Go's literals.
fn integer(text: &str) -> Option<i128> {
    let (sign, digits) = match text.as_bytes().first()? {
        b'-' => (-1, &text[1..]),
        b'+' => (1, &text[1..]),
        _ => (1, text),
    };
    let (base, prefix) = match digits.get(..2) {
        Some("0x" | "0X") => (16, 2),
        Some("0o" | "0O") => (8, 2),
        Some("0b" | "0B") => (2, 2),
        _ if digits.len() > 1 && digits.starts_with('0') => (8, 1),
        _ => (10, 0),
    };
    let mut value = 0i128;
    let mut is_digit = prefix > 0;
    for byte in digits.bytes().skip(prefix) {
        match byte {
            // An underscore separates digits, or the prefix from them.
            b'_' if is_digit => is_digit = false,
            _ => {
                value = value * base + i128::from(char::from(byte).to_digit(base as u32)?);
                if value > i128::from(u64::MAX) {
                    return None;
                }
                is_digit = true;
            }
        }
    }
    (is_digit && digits.len() > prefix || digits == "0").then_some(sign * value)
}

/// Parses a float as Go's `strconv.ParseFloat`.
pub fn float(text: &str) -> Result<f64, FloatError> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let lower = unsigned.to_ascii_lowercase();
    if matches!(lower.as_str(), "inf" | "infinity") || text.eq_ignore_ascii_case("nan") {
        return text.parse().map_err(|_| FloatError::Syntax);
    }
    let digits = underscores_removed(&lower).ok_or(FloatError::Syntax)?;
    let value = match digits.strip_prefix("0x") {
        Some(hex) => hex_float(hex).ok_or(FloatError::Syntax)?,
        None => {
            let is_of_number = |byte| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'+' | b'-');
            if !digits.starts_with(|first: char| first.is_ascii_digit() || first == '.')
                || !digits.bytes().all(is_of_number)
            {
                return Err(FloatError::Syntax);
            }
            digits.parse::<f64>().map_err(|_| FloatError::Syntax)?
        }
    };
    if value.is_infinite() {
        return Err(FloatError::Range);
    }
    Ok(if text.starts_with('-') { -value } else { value })
}

/// Removes underscores; `None` if one does not stand between digits.
fn underscores_removed(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let is_hex = text.starts_with("0x");
    let is_digit =
        |byte: &u8| if is_hex { byte.is_ascii_hexdigit() } else { byte.is_ascii_digit() };
    for (at, _) in text.match_indices('_') {
        let is_after = at > 0 && (is_digit(&bytes[at - 1]) || is_hex && at == 2);
        if !is_after || !bytes.get(at + 1).is_some_and(is_digit) {
            return None;
        }
    }
    Some(text.replace('_', ""))
}

/// Parses what follows `0x` in a float: digits in base 16, and an exponent of two.
fn hex_float(text: &str) -> Option<f64> {
    let (mantissa, exponent) = text.split_once('p')?;
    let exponent: i64 = match exponent.strip_prefix(['+', '-']).unwrap_or(exponent) {
        digits if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            return None;
        }
        _ => exponent.parse().unwrap_or(if exponent.starts_with('-') { -1 } else { 1 } * i64::MAX),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let (mut value, mut power) = (0u128, -4 * fraction.len() as i64);
    for letter in whole.chars().chain(fraction.chars()) {
        let digit = letter.to_digit(16)?;
        if value >> 120 == 0 {
            value = value << 4 | u128::from(digit);
        } else {
            // The last bit stands for all digits that are left out.
            value |= u128::from(digit > 0);
            power += 4;
        }
    }
    let power = power.saturating_add(exponent).clamp(-EXPONENT_MAX, EXPONENT_MAX) as i32;
    // In two steps, since one factor may be out of range.
    Some(value as f64 * 2f64.powi(power / 2) * 2f64.powi(power - power / 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected values are from Go's `strconv`.
    #[test]
    fn floats_are_read_as_in_go() {
        for (text, expected) in [
            ("1_000", Ok(1000.0)),
            ("0x1_0p0", Ok(16.0)),
            ("0x10", Err(FloatError::Syntax)),
            ("-0x1.8p1", Ok(-3.0)),
            ("1e", Err(FloatError::Syntax)),
            ("-Infinity", Ok(f64::NEG_INFINITY)),
            ("+nan", Err(FloatError::Syntax)),
            (" 1", Err(FloatError::Syntax)),
            ("1.", Ok(1.0)),
            (".", Err(FloatError::Syntax)),
            (".5", Ok(0.5)),
            ("1e999", Err(FloatError::Range)),
            ("0x1p99999", Err(FloatError::Range)),
            ("1e-999", Ok(0.0)),
            ("1__0", Err(FloatError::Syntax)),
            ("0b1", Err(FloatError::Syntax)),
            ("--1", Err(FloatError::Syntax)),
            ("", Err(FloatError::Syntax)),
        ] {
            assert_eq!(float(text), expected, "{text}");
        }
        assert!(float("Nan").is_ok_and(f64::is_nan));
    }

    #[test]
    fn literals_have_gos_types() {
        let int = |text: &str| Number::parse(text).map(|number| number.int);
        assert_eq!(int("0x1F"), Ok(Some(31)));
        assert_eq!(int("017"), Ok(Some(15)));
        assert_eq!(int("-1_000"), Ok(Some(-1000)));
        assert_eq!(int("0b_1"), Ok(Some(1)));
        assert_eq!(int("1e3"), Ok(Some(1000)));
        assert_eq!(int("1.5"), Ok(None));
        assert_eq!(int("9223372036854775808"), Ok(None));
        assert_eq!(int("99999999999999999999"), {
            Err("integer overflow: \"99999999999999999999\"".into())
        });
        assert_eq!(int("089"), Err("integer overflow: \"089\"".into()));
        assert_eq!(int("1_"), Err("illegal number syntax: \"1_\"".into()));
        assert!(Number::parse("1e3").is_ok_and(|number| number.is_float()));
        assert!(Number::parse("0x1e").is_ok_and(|number| !number.is_float()));
    }
}
