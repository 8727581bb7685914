//! Samples as lines in the format of `dump` and promtool: `{name="value", …} value time`, with
//! times in milliseconds. Label values are quoted, with the escapes `\\`, `\"` and `\n`.

use crate::bindings::tidepool::tsdb::types::Label;

/// Prometheus' `NormalNaN` (`model/value/value.go`). A dump writes every NaN as `NaN`.
const NAN_BITS: u64 = 0x7ff8_0000_0000_0001;

pub struct Line {
    /// Labels in ascending order of their names.
    pub labels: Vec<Label>,
    pub value: f64,
    pub timestamp_ms: i64,
}

pub fn parse(line: &str) -> Result<Line, String> {
    let mut rest = line.trim().strip_prefix('{').ok_or("it does not begin with `{`")?;
    let mut labels = Vec::new();
    loop {
        rest = rest.trim_start();
        if let Some(after) = rest.strip_prefix('}') {
            rest = after;
            break;
        }
        let (name, after) = match rest.starts_with('"') {
            true => quoted(rest)?,
            false => {
                let at = rest.find('=').ok_or("a label has no `=`")?;
                (rest[..at].trim_end().to_owned(), &rest[at..])
            }
        };
        let (name, value, after) = match after.strip_prefix('=') {
            Some(after) => {
                let (value, after) = quoted(after)?;
                (name, value, after)
            }
            // A quoted text without `=` is a metric name that is not a plain identifier.
            None => ("__name__".to_owned(), name, after),
        };
        labels.push(Label { name, value });
        let after = after.trim_start();
        rest = after.strip_prefix(',').unwrap_or(after);
    }
    // Sorted, because `write` looks up series by their labels.
    labels.sort_by(|one, other| one.name.cmp(&other.name));
    let mut numbers = rest.split_ascii_whitespace();
    let (Some(value), Some(time), None) = (numbers.next(), numbers.next(), numbers.next()) else {
        return Err("a value and a time must follow the labels".into());
    };
    let value = match value {
        "NaN" => f64::from_bits(NAN_BITS),
        number => number.parse().map_err(|_| format!("`{number}` is no number"))?,
    };
    let timestamp_ms = time.parse().map_err(|_| format!("`{time}` is no time in milliseconds"))?;
    Ok(Line { labels, value, timestamp_ms })
}

/// Parses a quoted string; returns its unescaped content and the text after it.
fn quoted(text: &str) -> Result<(String, &str), String> {
    let inside = text.strip_prefix('"').ok_or("a label's value does not begin with a quote")?;
    let mut value = String::new();
    let mut chars = inside.char_indices();
    while let Some((at, char)) = chars.next() {
        match char {
            '"' => return Ok((value, &inside[at + 1..])),
            '\\' => match chars.next() {
                Some((_, 'n')) => value.push('\n'),
                Some((_, escaped @ ('\\' | '"'))) => value.push(escaped),
                _ => return Err("a backslash must be followed by `\\`, `\"` or `n`".into()),
            },
            _ => value.push(char),
        }
    }
    Err("a quote is not closed".into())
}
