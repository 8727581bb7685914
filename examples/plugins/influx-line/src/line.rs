//! Parser for one line of the line protocol.
//!
//! Source: InfluxDB's documentation, "Line protocol".

/// A parsed line: one point.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    pub measurement: String,
    pub tags: Vec<(String, String)>,
    pub fields: Vec<(String, Value)>,
    /// Time in the unit of the request.
    pub timestamp: Option<i64>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A float, an integer, or a boolean as 1 or 0.
    Number(f64),
    /// A quoted string, whose content is not kept.
    Text,
}

/// Parses a line; `None` if it is empty or a comment.
pub fn parse(line: &str) -> Result<Option<Point>, String> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    let (measurement, mut rest) = split(line, &[',', ' ']);
    if measurement.is_empty() {
        return Err("the measurement is missing".to_owned());
    }
    let mut tags = Vec::new();
    while let Some(after) = rest.strip_prefix(',') {
        let (tag, after) = split(after, &['=', ',', ' ']);
        let after = after.strip_prefix('=').ok_or(format!("the tag {tag:?} has no value"))?;
        let (value, after) = split(after, &[',', ' ']);
        if tag.is_empty() || value.is_empty() {
            return Err("a tag has no name or no value".to_owned());
        }
        tags.push((tag, value));
        rest = after;
    }
    rest = rest.trim_start_matches(' ');
    let mut fields = Vec::new();
    loop {
        let (field, after) = split(rest, &['=', ',', ' ']);
        if field.is_empty() {
            return Err("a field is missing".to_owned());
        }
        let after = after.strip_prefix('=').ok_or(format!("the field {field:?} has no value"))?;
        let (value, after) = value(after)?;
        fields.push((field, value));
        match after.strip_prefix(',') {
            Some(next) => rest = next,
            None => {
                rest = after;
                break;
            }
        }
    }
    let timestamp = match rest.trim() {
        "" => None,
        time => Some(time.parse().map_err(|_| format!("{time:?} is not a timestamp"))?),
    };
    Ok(Some(Point { measurement: measurement.to_owned(), tags, fields, timestamp }))
}

/// Parses a field value; returns it with the rest of the line.
fn value(text: &str) -> Result<(Value, &str), String> {
    if let Some(quoted) = text.strip_prefix('"') {
        let mut is_escaped = false;
        for (place, c) in quoted.char_indices() {
            match c {
                '"' if !is_escaped => return Ok((Value::Text, &quoted[place + 1..])),
                _ => is_escaped = c == '\\' && !is_escaped,
            }
        }
        return Err("a string has no closing quote".to_owned());
    }
    let end = text.find([',', ' ']).unwrap_or(text.len());
    let (value, rest) = text.split_at(end);
    let number = match value {
        "t" | "T" | "true" | "True" | "TRUE" => Ok(1.0),
        "f" | "F" | "false" | "False" | "FALSE" => Ok(0.0),
        _ => match value.strip_suffix('i') {
            Some(whole) => whole.parse::<i64>().map(|number| number as f64).map_err(drop),
            None => match value.strip_suffix('u') {
                Some(whole) => whole.parse::<u64>().map(|number| number as f64).map_err(drop),
                None => value.parse::<f64>().map_err(drop).and_then(finite),
            },
        },
    };
    match number {
        Ok(number) => Ok((Value::Number(number), rest)),
        Err(()) => Err(format!("{value:?} is not a value")),
    }
}

/// Refuses infinities and NaN, which the protocol does not have.
fn finite(number: f64) -> Result<f64, ()> {
    if number.is_finite() { Ok(number) } else { Err(()) }
}

/// Splits at the first of these characters that is not escaped; returns the unescaped text before
/// it and the rest, which begins with it.
fn split<'a>(text: &'a str, ends: &[char]) -> (String, &'a str) {
    let mut found = String::new();
    let mut letters = text.char_indices();
    while let Some((place, c)) = letters.next() {
        match c {
            '\\' => match letters.next() {
                Some((_, next @ (',' | '=' | ' ' | '\\'))) => found.push(next),
                Some((_, next)) => found.extend(['\\', next]),
                None => found.push('\\'),
            },
            c if ends.contains(&c) => return (found, &text[place..]),
            c => found.push(c),
        }
    }
    (found, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
    }

    #[test]
    fn lines_are_read() {
        let telegraf = "cpu,cpu=cpu0,host=a\\ b usage_idle=98.5,n=3i,u=4u,ok=t,s=\"a, \\\"b\\\" c=1\" 1700000000000000000";
        let number = |name: &str, number: f64| (name.to_owned(), Value::Number(number));
        let expected = Point {
            measurement: "cpu".to_owned(),
            tags: pairs(&[("cpu", "cpu0"), ("host", "a b")]),
            fields: vec![
                number("usage_idle", 98.5),
                number("n", 3.0),
                number("u", 4.0),
                number("ok", 1.0),
                ("s".to_owned(), Value::Text),
            ],
            timestamp: Some(1_700_000_000_000_000_000),
        };
        assert_eq!(parse(telegraf), Ok(Some(expected)));
        let escaped = parse("my\\,m,a\\=b=c\\,d \\=f=-1e3");
        let expected = Point {
            measurement: "my,m".to_owned(),
            tags: pairs(&[("a=b", "c,d")]),
            fields: vec![number("=f", -1000.0)],
            timestamp: None,
        };
        assert_eq!(escaped, Ok(Some(expected)));
        assert_eq!((parse("  "), parse("# cpu a=1")), (Ok(None), Ok(None)));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (line, why) in [
            (",a=b c=1", "measurement"),
            ("m", "a field is missing"),
            ("m,a c=1", "the tag \"a\" has no value"),
            ("m,a= c=1", "no name or no value"),
            ("m c", "the field \"c\" has no value"),
            ("m c=", "\"\" is not a value"),
            ("m c=1,", "a field is missing"),
            ("m c=x", "\"x\" is not a value"),
            ("m c=NaN", "\"NaN\" is not a value"),
            ("m c=\"x", "has no closing quote"),
            ("m c=1 soon", "\"soon\" is not a timestamp"),
            ("m c=99999999999999999999i", "is not a value"),
        ] {
            let found = parse(line);
            assert!(found.as_ref().is_err_and(|error| error.contains(why)), "{line}: {found:?}");
        }
    }
}
