//! Interprets plain text like go-yaml (`resolve.go`, version 2), with which Prometheus reads its
//! files: YAML 1.1's words for true and false, whole numbers in four bases, floats with infinity,
//! and `_` between digits.

/// The value of a text without quotes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Scalar {
    Bool(bool),
    /// A whole number in the range from the smallest `i64` to the largest `u64`.
    Whole(i128),
    Float(f64),
    Text,
}

impl Scalar {
    pub(super) fn of(text: &str) -> Scalar {
        match text {
            "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
                Scalar::Bool(true)
            }
            "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off"
            | "OFF" => Scalar::Bool(false),
            ".nan" | ".NaN" | ".NAN" => Scalar::Float(f64::NAN),
            ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => Scalar::Float(f64::INFINITY),
            "-.inf" | "-.Inf" | "-.INF" => Scalar::Float(f64::NEG_INFINITY),
            _ if text.starts_with('.') => float(text),
            _ if text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-')) => {
                let digits = text.replace('_', "");
                whole(&digits).map_or_else(|| float(&digits), Scalar::Whole)
            }
            _ => Scalar::Text,
        }
    }

    /// The value as a number; `None` for a boolean or text.
    pub(super) fn number(self) -> Option<f64> {
        match self {
            // Large numbers are rounded, as in Go.
            #[expect(clippy::cast_precision_loss, reason = "upstream rounds, too")]
            Scalar::Whole(number) => Some(number as f64),
            Scalar::Float(number) => Some(number),
            Scalar::Bool(_) | Scalar::Text => None,
        }
    }

    /// The value as a whole number. A float loses its fraction, as in Go.
    pub(super) fn whole(self) -> Option<i128> {
        match self {
            Scalar::Whole(number) => Some(number),
            #[expect(clippy::cast_possible_truncation, reason = "the bound fits")]
            Scalar::Float(number) if number.abs() < 1e30 => Some(number as i128),
            Scalar::Bool(_) | Scalar::Text | Scalar::Float(_) => None,
        }
    }
}

/// Parses a whole number with the prefix of its base; a leading zero alone means base 8.
fn whole(text: &str) -> Option<i128> {
    let (is_negative, digits) = match text.as_bytes() {
        [sign @ (b'+' | b'-'), ..] => (*sign == b'-', &text[1..]),
        _ => (false, text),
    };
    let prefixed = |prefix: [&str; 2], base| {
        let digits = digits.strip_prefix(prefix[0]).or_else(|| digits.strip_prefix(prefix[1]));
        digits.map(|digits| (digits, base))
    };
    let (digits, base) = prefixed(["0x", "0X"], 16)
        .or_else(|| prefixed(["0b", "0B"], 2))
        .or_else(|| prefixed(["0o", "0O"], 8))
        .or_else(|| prefixed(["0", "0"], 8).filter(|(digits, _)| !digits.is_empty()))
        .unwrap_or((digits, 10));
    // `from_str_radix` would accept a second sign.
    let number = digits.starts_with(|c: char| c.is_digit(base)).then_some(digits);
    let number = number.and_then(|digits| u64::from_str_radix(digits, base).ok())?;
    let number = if is_negative { -i128::from(number) } else { i128::from(number) };
    (number >= i128::from(i64::MIN)).then_some(number)
}

/// Parses a number in base 10. A number that is too large for a float is text.
fn float(text: &str) -> Scalar {
    let is_part = |c: char| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '+' | '-');
    let number = text.chars().all(is_part).then(|| text.parse::<f64>().ok()).flatten();
    number.filter(|number| number.is_finite()).map_or(Scalar::Text, Scalar::Float)
}
