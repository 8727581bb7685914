//! Floats as Go's `strconv.FormatFloat` prints them.

use tidepool_model::number::general;

/// Digits behind which the exact decimal number of every float has ended.
const DIGITS_MAX: usize = 1100;

/// Formats by a verb, without flags and width; infinite values have a sign.
pub fn float_text(value: f64, verb: char, precision: Option<usize>) -> String {
    if !value.is_finite() {
        return general(value);
    }
    match verb {
        'e' | 'E' => exponential(value, precision.unwrap_or(6), verb),
        'f' | 'F' => fixed(value, precision.unwrap_or(6)),
        'x' | 'X' => hexadecimal(value, precision, verb),
        'b' => {
            let (sign, mantissa, exponent) = binary(value);
            format!("{sign}{mantissa}p{exponent:+}")
        }
        _ => shortest_form(value, precision, verb),
    }
}

fn fixed(value: f64, digits: usize) -> String {
    let exact = digits.min(DIGITS_MAX);
    let mut text = format!("{value:.exact$}");
    text.extend(std::iter::repeat_n('0', digits - exact));
    text
}

fn exponential(value: f64, digits: usize, verb: char) -> String {
    let exact = digits.min(DIGITS_MAX);
    let text = format!("{value:.exact$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let zeros = "0".repeat(digits - exact);
    format!("{mantissa}{zeros}{verb}{}", exponent_text(exponent.parse().unwrap_or(0)))
}

fn exponent_text(exponent: i32) -> String {
    format!("{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}

/// Formats with an exponent only if it is small or large (`%g`).
fn shortest_form(value: f64, precision: Option<usize>, verb: char) -> String {
    let letter = if verb == 'G' { 'E' } else { 'e' };
    let Some(precision) = precision else {
        return general(value).replace('e', &letter.to_string());
    };
    let wanted = precision.max(1);
    let text = format!("{value:.*e}", wanted.min(DIGITS_MAX) - 1);
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    // As many digits as are left without zeros at the end.
    let mantissa = match mantissa.contains('.') {
        true => mantissa.trim_end_matches('0').trim_end_matches('.'),
        false => mantissa,
    };
    let digits = mantissa.bytes().filter(u8::is_ascii_digit).count() as i32;
    let is_exponential = value != 0.0 && (exponent < -4 || i64::from(exponent) >= wanted as i64);
    match is_exponential {
        true => format!("{mantissa}{letter}{}", exponent_text(exponent)),
        false => {
            let decimals = usize::try_from(digits - 1 - exponent).unwrap_or(0);
            // The digits are exact, so that rounding to the same place gives the same ones.
            format!("{value:.decimals$}")
        }
    }
}

/// Returns sign, mantissa and exponent of two, of which the mantissa is an integer.
fn binary(value: f64) -> (&'static str, u64, i32) {
    let bits = value.to_bits();
    let (fraction, exponent) = (bits & ((1 << 52) - 1), (bits >> 52 & 0x7ff) as i32);
    let sign = if value.is_sign_negative() { "-" } else { "" };
    match exponent {
        0 => (sign, fraction, -1074),
        _ => (sign, fraction | 1 << 52, exponent - 1075),
    }
}

/// Formats with a mantissa of base 16 and an exponent of two (`%x`).
fn hexadecimal(value: f64, precision: Option<usize>, verb: char) -> String {
    let (sign, mantissa, exponent) = binary(value);
    // The first bit is at 60, so that a hexadecimal digit stands before the point.
    let shift = mantissa.leading_zeros().min(63) as i32 - 3;
    let (mut mantissa, mut exponent) = match mantissa {
        0 => (0, 0),
        _ => (mantissa << shift, exponent - shift + 60),
    };
    if let Some(digits) = precision.filter(|digits| *digits < 15) {
        let dropped = 60 - digits as u32 * 4;
        let (rest, half) = (mantissa & ((1 << dropped) - 1), 1 << (dropped - 1));
        mantissa >>= dropped;
        // Halves round to even digits.
        if rest > half || rest == half && mantissa & 1 == 1 {
            mantissa += 1;
        }
        mantissa <<= dropped;
        if mantissa >> 61 > 0 {
            mantissa >>= 1;
            exponent += 1;
        }
    }
    let digits = format!("{:015x}", mantissa & ((1 << 60) - 1));
    let fraction = match precision {
        Some(precision) => {
            let zeros = "0".repeat(precision.saturating_sub(digits.len()));
            format!("{}{zeros}", &digits[..precision.min(digits.len())])
        }
        None => digits.trim_end_matches('0').to_owned(),
    };
    let point = if fraction.is_empty() { "" } else { "." };
    let exponent = exponent_text(exponent);
    let text = format!("{sign}0x{}{point}{fraction}p{exponent}", mantissa >> 60);
    if verb == 'X' { text.to_ascii_uppercase() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected values are from Go's `fmt`.
    #[test]
    fn floats_are_gos() {
        for (value, verb, precision, expected) in [
            (1e6, 'g', None, "1e+06"),
            (123456.0, 'g', None, "123456"),
            (1e-5, 'G', None, "1E-05"),
            (1234.5, 'g', Some(4), "1234"),
            (99999.0, 'g', Some(4), "1e+05"),
            (1000.0, 'g', Some(4), "1000"),
            (0.00012345, 'g', Some(3), "0.000123"),
            (0.1, 'g', Some(20), "0.10000000000000000555"),
            (0.0, 'g', Some(4), "0"),
            (-0.0, 'g', Some(4), "-0"),
            (2.5, 'f', Some(0), "2"),
            (1.5, 'e', None, "1.500000e+00"),
            (1.5, 'E', Some(0), "2E+00"),
            (1.5, 'x', None, "0x1.8p+00"),
            (0.1, 'x', Some(3), "0x1.99ap-04"),
            (1.9999, 'X', Some(1), "0X1.0P+01"),
            (0.0, 'x', Some(2), "0x0.00p+00"),
            (5e-324, 'x', None, "0x1p-1074"),
            (1.0, 'b', None, "4503599627370496p-52"),
            (f64::NEG_INFINITY, 'f', None, "-Inf"),
        ] {
            assert_eq!(float_text(value, verb, precision), expected, "{value} {verb}");
        }
        assert_eq!(float_text(1.0, 'f', Some(5000)).len(), 5002);
    }
}
