//! Numbers and times as text, formatted as by Go and therefore Prometheus.
//!
//! Sources: Go, `strconv.FormatFloat` and `fmt`; prometheus/prometheus, `util/jsonutil`.

/// Fewest digits at which two shortest texts can be equally near to a number.
const TIE_DIGITS_MIN: usize = 16;

/// Formats as the shortest exact text without exponent, as in samples and labels (Go's `'f', -1`).
pub fn plain(value: f64) -> String {
    if let Some(text) = special(value) {
        return text.to_owned();
    }
    // Rust's text differs from Go's only if two texts are equally near; `shortest` is slower.
    match may_tie(value) {
        true => expanded(&shortest(value)).unwrap_or_else(|| value.to_string()),
        false => value.to_string(),
    }
}

/// Formats as the shortest exact text, with an exponent below 1e-4 and from 1e6 on (Go's `%g`,
/// `%v`).
pub fn general(value: f64) -> String {
    match special(value) {
        Some(text) => text.to_owned(),
        None if value == 0.0 => plain(value),
        None => by_exponent(value, &shortest(value), -4, 6),
    }
}

/// Formats with at most `digits` significant digits, without trailing zeros (Go's `%.2g`).
pub fn general_rounded(value: f64, digits: usize) -> String {
    if let Some(text) = special(value) {
        return text.to_owned();
    }
    let rounded = format!("{value:.*e}", digits.max(1) - 1);
    let (mantissa, exponent) = rounded.split_once('e').unwrap_or((&rounded, "0"));
    let mantissa = match mantissa.contains('.') {
        true => mantissa.trim_end_matches('0').trim_end_matches('.'),
        false => mantissa,
    };
    let text = format!("{mantissa}e{exponent}");
    // Rounding may carry into another exponent, so the rounded value decides about scientific form.
    let value = text.parse().unwrap_or(value);
    by_exponent(value, &text, -4, digits.max(1) as i32)
}

/// Returns the number with `digits` decimals (Go's `%.3f`).
pub fn fixed(value: f64, digits: usize) -> String {
    special(value).map_or_else(|| format!("{value:.digits$}"), str::to_owned)
}

/// Appends a value as in JSON answers, unquoted, with an exponent below 1e-6 and from 1e21 on.
pub fn push_json(value: f64, out: &mut Vec<u8>) {
    // 2^53: integers below it are exact, and most values of counters are such integers.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let is_integer = value.abs() < EXACT && value as i64 as f64 == value;
    // Negative zero is formatted below, because an integer would lose its sign.
    if is_integer && value.to_bits() != (-0.0f64).to_bits() {
        return push_integer(value as i64, out);
    }
    let text = match special(value) {
        Some(text) => return out.extend_from_slice(text.as_bytes()),
        None if value == 0.0 || (1e-6..1e21).contains(&value.abs()) => {
            if !may_tie(value) && push_shortest(value, out) {
                return;
            }
            plain(value)
        }
        None => by_exponent(value, &shortest(value), -6, 21),
    };
    out.extend_from_slice(text.as_bytes());
}

/// Appends the shortest text unless it has an exponent; returns whether text was appended.
fn push_shortest(value: f64, out: &mut Vec<u8>) -> bool {
    // `zmij` is three times as fast as the standard library, which matters for large answers.
    let mut buffer = zmij::Buffer::new();
    let text = buffer.format_finite(value).as_bytes();
    if text.contains(&b'e') {
        return false;
    }
    out.extend_from_slice(text.strip_suffix(b".0").unwrap_or(text));
    true
}

/// Appends a time in milliseconds as seconds, with three decimals or none.
pub fn push_seconds(time_ms: i64, out: &mut Vec<u8>) {
    if time_ms < 0 {
        out.push(b'-');
    }
    let time_ms = time_ms.unsigned_abs();
    push_integer(time_ms / 1000, out);
    if !time_ms.is_multiple_of(1000) {
        let digit = |divisor| b'0' + (time_ms / divisor % 10) as u8;
        out.extend_from_slice(&[b'.', digit(100), digit(10), digit(1)]);
    }
}

fn push_integer(value: impl itoa::Integer, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

fn special(value: f64) -> Option<&'static str> {
    match value {
        f64::INFINITY => Some("+Inf"),
        f64::NEG_INFINITY => Some("-Inf"),
        value if value.is_nan() => Some("NaN"),
        _ => None,
    }
}

/// Returns `scientific` if the exponent is below `low` or at least `high`, else the plain form.
fn by_exponent(value: f64, scientific: &str, low: i32, high: i32) -> String {
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if exponent < low || exponent >= high {
        // Go writes the sign of an exponent, and at least two digits.
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{mantissa}e{sign}{:02}", exponent.abs());
    }
    plain(value)
}

/// Returns the fewest digits that read back as the same number, with an exponent. If two texts are
/// equally near, Go's ends with an even digit, and so does the text that Rust rounds.
fn shortest(value: f64) -> String {
    let text = format!("{value:e}");
    if !may_tie(value) {
        return text;
    }
    let digits = text.bytes().take_while(|byte| *byte != b'e').filter(u8::is_ascii_digit).count();
    if digits < TIE_DIGITS_MIN {
        return text;
    }
    let rounded = format!("{value:.*e}", digits - 1);
    if rounded.parse() == Ok(value) { rounded } else { text }
}

/// Returns whether two shortest texts may be equally near. The exact number then has a digit more
/// than the 17 that always suffice: an integer, or a fraction over a small power of two.
fn may_tie(value: f64) -> bool {
    const FRACTION_BITS_MAX: i64 = 26;
    const MANTISSA_BITS: u32 = 52;
    let bits = value.to_bits();
    let exponent = (bits >> MANTISSA_BITS & 0x7ff) as i64 - 1023;
    let mantissa = bits & ((1 << MANTISSA_BITS) - 1) | 1 << MANTISSA_BITS;
    let fraction_bits = i64::from(MANTISSA_BITS) - i64::from(mantissa.trailing_zeros()) - exponent;
    // Integers below 2^53 are excluded: they have at most 16 digits, all of them exact.
    fraction_bits <= FRACTION_BITS_MAX && (fraction_bits > 0 || exponent > i64::from(MANTISSA_BITS))
}

fn expanded(scientific: &str) -> Option<String> {
    let (mantissa, exponent) = scientific.split_once('e')?;
    let exponent: i32 = exponent.parse().ok()?;
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(mantissa) => ("-", mantissa),
        None => ("", mantissa),
    };
    let digits = mantissa.replace('.', "");
    let zeros = |count: usize| "0".repeat(count);
    let point = usize::try_from(exponent + 1).ok().filter(|point| *point > 0);
    Some(match point {
        // `exponent` is negative here, so the subtraction cannot underflow.
        None => format!("{sign}0.{}{digits}", zeros(exponent.unsigned_abs() as usize - 1)),
        Some(point) => match digits.split_at_checked(point) {
            Some((whole, "")) => format!("{sign}{whole}"),
            Some((whole, decimals)) => format!("{sign}{whole}.{decimals}"),
            None => format!("{sign}{digits}{}", zeros(point - digits.len())),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn texts_are_those_of_go() {
        // From `fmt.Printf` and `strconv.FormatFloat`: `%g`, `'f', -1`, `%.2g`.
        for (value, as_general, as_plain, as_rounded) in [
            (0.0, "0", "0", "0"),
            (-0.0, "-0", "-0", "-0"),
            (100000.0, "100000", "100000", "1e+05"),
            (1234567.0, "1.234567e+06", "1234567", "1.2e+06"),
            (1e20, "1e+20", "100000000000000000000", "1e+20"),
            (0.0001, "0.0001", "0.0001", "0.0001"),
            (0.00001, "1e-05", "0.00001", "1e-05"),
            (0.00012345, "0.00012345", "0.00012345", "0.00012"),
            (9.5e-7, "9.5e-07", "0.00000095", "9.5e-07"),
            (2.5e300, "2.5e+300", &format!("25{}", "0".repeat(299)), "2.5e+300"),
            (123.456, "123.456", "123.456", "1.2e+02"),
            (99.9, "99.9", "99.9", "1e+02"),
            (1.05, "1.05", "1.05", "1.1"),
            (20.0, "20", "20", "20"),
            (5e-324, "5e-324", &format!("0.{}5", "0".repeat(323)), "4.9e-324"),
            (2f64.powi(-25), "2.9802322387695312e-08", "0.000000029802322387695312", "3e-08"),
            (f64::INFINITY, "+Inf", "+Inf", "+Inf"),
            (f64::NEG_INFINITY, "-Inf", "-Inf", "-Inf"),
            (f64::NAN, "NaN", "NaN", "NaN"),
        ] {
            assert_eq!(general(value), as_general);
            assert_eq!(plain(value), as_plain);
            assert_eq!(general_rounded(value, 2), as_rounded);
        }
    }

    #[test]
    fn json_takes_an_exponent_at_the_ends() {
        // From Go's `jsonutil.MarshalFloat`.
        for (value, text) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1e20, "100000000000000000000"),
            (1e21, "1e+21"),
            (-1.5e22, "-1.5e+22"),
            (0.000001, "0.000001"),
            (0.0000009, "9e-07"),
            (1e-10, "1e-10"),
            (1e-300, "1e-300"),
            (-12.0, "-12"),
            (1234567890.5, "1234567890.5"),
            (f64::NAN, "NaN"),
        ] {
            let mut out = Vec::new();
            push_json(value, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), text);
        }
    }

    #[test]
    fn decimals_are_fixed() {
        // From `fmt.Sprintf("%f")` and `%.3f`.
        for (value, digits, text) in [
            (0.00001, 6, "0.000010"),
            (-0.0, 6, "-0.000000"),
            (1e21, 1, "1000000000000000000000.0"),
            (2.0 / 3.0, 3, "0.667"),
            (f64::INFINITY, 3, "+Inf"),
        ] {
            assert_eq!(fixed(value, digits), text);
        }
    }

    #[test]
    fn times_are_seconds_with_a_fraction_if_they_have_one() {
        for (time_ms, expected) in
            [(0, "0"), (1_600_096_945_479, "1600096945.479"), (70, "0.070"), (-1500, "-1.500")]
        {
            let mut out = Vec::new();
            push_seconds(time_ms, &mut out);
            assert_eq!(out, expected.as_bytes(), "{time_ms}");
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_back(bits in any::<u64>()) {
            let value = f64::from_bits(bits);
            let mut json = Vec::new();
            push_json(value, &mut json);
            let json = String::from_utf8(json).unwrap_or_default();
            for text in [plain(value), general(value), json] {
                let read: f64 = text.parse().map_err(|_| TestCaseError::fail(text.clone()))?;
                prop_assert!(read.to_bits() == bits || (read.is_nan() && value.is_nan()), "{}", text);
            }
        }
    }

    fn any_number() -> impl Strategy<Value = f64> {
        let few_bits = (any::<u64>(), 0..53u32, -40..70i32)
            .prop_map(|(bits, kept, power)| (bits >> (63 - kept)) as f64 * 2f64.powi(power));
        prop_oneof![few_bits, any::<u64>().prop_map(f64::from_bits)]
    }

    proptest! {
        #[test]
        fn json_is_what_the_standard_library_prints(value in any_number(), near in 1e-6..1e21f64) {
            for value in [value, near, near * value.signum(), near.trunc()] {
                let mut json = Vec::new();
                push_json(value, &mut json);
                if (1e-6..1e21).contains(&value.abs()) {
                    prop_assert_eq!(String::from_utf8(json).unwrap_or_default(), plain(value));
                }
            }
        }

        #[test]
        fn ties_are_only_where_they_are_looked_for(value in any_number()) {
            if value.is_finite() && value != 0.0 && !may_tie(value) {
                let text = format!("{value:e}");
                let digits = text.bytes().take_while(|byte| *byte != b'e');
                let digits = digits.filter(u8::is_ascii_digit).count();
                if digits >= TIE_DIGITS_MIN {
                    let rounded = format!("{value:.*e}", digits - 1);
                    prop_assert!(rounded == text || rounded.parse() != Ok(value), "{}", text);
                }
            }
        }
    }
}
