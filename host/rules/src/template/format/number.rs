//! Numbers by a verb and its flags.

use super::float::float_text;
use super::print::Printer;
use super::quote::quoted_within;
use crate::template::value::Value;

impl Printer<'_> {
    pub(super) fn float(&mut self, number: f64, verb: char) {
        // No longer than what fits, since more is an error anyway.
        let most = self.sink.bytes_max() as i64 + 1;
        let precision = self.flags.precision.map(|precision| precision.min(most).max(0) as usize);
        let mut text = float_text(number, verb, precision);
        if self.flags.sharp && verb != 'b' && number.is_finite() {
            text = with_point(&text, verb, precision);
        }
        let (sign, digits) = match text.strip_prefix(['+', '-']) {
            Some(digits) => (&text[..1], digits),
            None => ("+", text.as_str()),
        };
        let sign = match sign {
            "+" if self.flags.plus => "+",
            "+" if self.flags.space => " ",
            "+" if number != f64::INFINITY => "",
            sign => sign,
        };
        let zero = self.flags.zero;
        if !number.is_finite() {
            self.flags.zero = false;
        }
        self.signed(sign, digits);
        self.flags.zero = zero;
    }

    /// Writes a number; zeros that pad it stand behind the sign.
    fn signed(&mut self, sign: &str, digits: &str) {
        let len = (sign.len() + digits.len()) as i64;
        let missing = self.flags.width.unwrap_or(0).saturating_sub(len);
        if self.flags.zero && !self.flags.minus && missing > 0 {
            self.sink.push(sign);
            self.sink.pad('0', missing as usize);
            return self.sink.push(digits);
        }
        self.padded(&format!("{sign}{digits}"));
    }

    pub(super) fn integer(&mut self, is_negative: bool, number: u64, verb: char, value: &Value) {
        let flags = self.flags;
        let signed_number =
            if is_negative { (number as i64).wrapping_neg() } else { number as i64 };
        let letter = u32::try_from(signed_number).ok().and_then(char::from_u32);
        let letter = letter.unwrap_or(char::REPLACEMENT_CHARACTER);
        let digits = match verb {
            'v' if flags.sharp_v && matches!(value, Value::Byte(_)) => format!("{number:#x}"),
            'v' | 'd' => number.to_string(),
            'b' => format!("{number:b}"),
            'o' | 'O' => format!("{number:o}"),
            'x' | 'p' => format!("{number:x}"),
            'X' => format!("{number:X}"),
            'c' => return self.padded(letter.encode_utf8(&mut [0; 4])),
            'q' => {
                return self.padded(&quoted_within(
                    letter.encode_utf8(&mut [0; 4]),
                    '\'',
                    flags.plus,
                ));
            }
            'U' => {
                let precision = flags.precision.unwrap_or(4).max(4) as usize;
                let precision = precision.min(self.sink.bytes_max() + 1);
                let digits = format!("{signed_number:X}");
                let zeros = "0".repeat(precision.saturating_sub(digits.len()));
                let mut text = format!("U+{zeros}{digits}");
                if flags.sharp
                    && super::is_printable(letter)
                    && i64::from(u32::from(letter)) == signed_number
                {
                    text += &format!(" '{letter}'");
                }
                self.flags.zero = false;
                self.padded(&text);
                self.flags.zero = flags.zero;
                return;
            }
            _ => return self.wrong(value, verb),
        };
        let sign = match is_negative {
            true => "-",
            false if flags.plus => "+",
            false if flags.space => " ",
            false => "",
        };
        let mut least = 0;
        if let Some(precision) = flags.precision {
            if precision == 0 && number == 0 {
                return self.sink.pad(' ', flags.width.unwrap_or(0) as usize);
            }
            least = precision;
        } else if let Some(width) = flags.width.filter(|_| flags.zero && !flags.minus) {
            least = width - sign.len() as i64;
        }
        let least = (least.max(0) as usize).min(self.sink.bytes_max() + 1);
        let digits = format!("{}{digits}", "0".repeat(least.saturating_sub(digits.len())));
        let prefix = match verb {
            'b' if flags.sharp => "0b",
            'o' if flags.sharp && !digits.starts_with('0') => "0",
            'O' => "0o",
            'x' | 'p' if flags.sharp => "0x",
            'X' if flags.sharp => "0X",
            _ => "",
        };
        self.flags.zero = false;
        self.padded(&format!("{sign}{prefix}{digits}"));
        self.flags.zero = flags.zero;
    }
}

/// Returns a float with the point and zeros that the flag `#` keeps.
fn with_point(text: &str, verb: char, precision: Option<usize>) -> String {
    let is_hexadecimal = matches!(verb, 'x' | 'X');
    let exponent = text.find(if is_hexadecimal { ['p', 'P'] } else { ['e', 'E'] });
    let (number, tail) = text.split_at(exponent.unwrap_or(text.len()));
    let mut wanted = match verb {
        'v' | 'g' | 'G' | 'x' => precision.unwrap_or(6),
        _ => 0,
    };
    let digits = number.trim_start_matches(['+', '-']);
    let has_point = digits.contains('.');
    // Digits count from the first that is not zero, as do the letters of a prefix.
    let significant = digits.trim_start_matches(['0', '.']).chars().filter(|c| *c != '.').count();
    wanted = wanted.saturating_sub(significant);
    if !has_point && digits == "0" {
        wanted = wanted.saturating_sub(1);
    }
    let point = if has_point { "" } else { "." };
    format!("{number}{point}{}{tail}", "0".repeat(wanted))
}
