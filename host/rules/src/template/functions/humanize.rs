//! Numbers, times and durations for people.

use super::Parameter::{Any, Text};
use super::{Function, plain, text};
use crate::template::error::Reason;
use crate::template::format::quoted;
use crate::template::number::{FloatError, float};
use crate::template::time::Time;
use crate::template::value::Value;
use tidepool_model::number::{general, general_rounded};

const SECOND_NANOS: f64 = 1e9;
const LARGER: [&str; 8] = ["k", "M", "G", "T", "P", "E", "Z", "Y"];
const LARGER_BINARY: [&str; 8] = ["ki", "Mi", "Gi", "Ti", "Pi", "Ei", "Zi", "Yi"];
const SMALLER: [&str; 8] = ["m", "u", "n", "p", "f", "a", "z", "y"];

pub const FUNCTIONS: &[Function] = &[
    plain("humanize", &[Any], |_, values| {
        let value = float_of(values)?;
        let (value, prefix) = match value {
            _ if value == 0.0 || !value.is_finite() => (value, ""),
            _ if value.abs() >= 1.0 => divided(value, 1000.0, LARGER),
            _ => multiplied(value),
        };
        Ok(Value::text(format!("{}{prefix}", rounded(value))))
    }),
    plain("humanize1024", &[Any], |_, values| {
        let value = float_of(values)?;
        let (value, prefix) = match value {
            _ if value.abs() <= 1.0 || !value.is_finite() => (value, ""),
            _ => divided(value, 1024.0, LARGER_BINARY),
        };
        Ok(Value::text(format!("{}{prefix}", rounded(value))))
    }),
    plain("humanizeDuration", &[Any], |_, values| Ok(Value::text(duration(float_of(values)?)))),
    plain("humanizePercentage", &[Any], |_, values| {
        Ok(Value::text(format!("{}%", rounded(float_of(values)? * 100.0))))
    }),
    plain("humanizeTimestamp", &[Any], |_, values| {
        let value = float_of(values)?;
        Ok(Value::text(match value.is_finite() {
            true => time(value)?.to_string(),
            false => rounded(value),
        }))
    }),
    plain("now", &[], |context, _| Ok(Value::Float(context.source.time_ms() as f64 / 1000.0))),
    plain("parseDuration", &[Text], |_, values| parse_duration(text(values, 0)).map(Value::Float)),
    plain("toDuration", &[Any], |_, values| {
        // As a conversion in Go, but for values beyond 64 bits, which Go leaves undefined.
        let nanos = (float_of(values)? * SECOND_NANOS) as i64;
        Ok(Value::Duration { nanos, is_pointer: true })
    }),
    plain("toTime", &[Any], |_, values| {
        let value = float_of(values)?;
        match value.is_finite() {
            true => Ok(Value::Time { time: time(value)?, is_pointer: true }),
            false => Err("value is NaN or Inf".into()),
        }
    }),
];

/// Converts an argument to a float; texts and durations have one, too.
fn float_of(values: &[Value]) -> Result<f64, Reason> {
    let value = values.first().unwrap_or(&Value::None);
    let error = |text: &str, wrong: &str| {
        Err(format!("strconv.ParseFloat: parsing {}: {wrong}", quoted(text)).into())
    };
    match value {
        Value::Duration { nanos, is_pointer: false } => Ok(*nanos as f64 / SECOND_NANOS),
        Value::Float(value) => Ok(*value),
        Value::Int(value) | Value::Int64(value) => Ok(*value as f64),
        Value::Text(text) => match float(text) {
            Ok(value) => Ok(value),
            Err(FloatError::Syntax) => error(text, "invalid syntax"),
            Err(FloatError::Range) => error(text, "value out of range"),
        },
        other => Err(format!("can't convert {} to float", other.type_name()).into()),
    }
}

fn rounded(value: f64) -> String {
    general_rounded(value, 4)
}

fn divided(mut value: f64, by: f64, names: [&'static str; 8]) -> (f64, &'static str) {
    let mut prefix = "";
    for name in names {
        if value.abs() < by {
            break;
        }
        (value, prefix) = (value / by, name);
    }
    (value, prefix)
}

fn multiplied(mut value: f64) -> (f64, &'static str) {
    let mut prefix = "";
    for name in SMALLER {
        if value.abs() >= 1.0 {
            break;
        }
        (value, prefix) = (value * 1000.0, name);
    }
    (value, prefix)
}

fn duration(value: f64) -> String {
    if !value.is_finite() {
        return rounded(value);
    }
    if value == 0.0 {
        return format!("{}s", rounded(value));
    }
    if value.abs() < 1.0 {
        let (value, prefix) = multiplied(value);
        return format!("{}{prefix}s", rounded(value));
    }
    let sign = if value < 0.0 { "-" } else { "" };
    let whole = value.abs() as i64;
    let (seconds, minutes) = (whole % 60, whole / 60 % 60);
    let (hours, days) = (whole / 3600 % 24, whole / 86_400);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{sign}{}s", rounded(value.abs())),
        (0, 0, _) => format!("{sign}{minutes}m {seconds}s"),
        (0, ..) => format!("{sign}{hours}h {minutes}m {seconds}s"),
        _ => format!("{sign}{days}d {hours}h {minutes}m {seconds}s"),
    }
}

/// Returns the time of seconds since the epoch, in whole milliseconds.
fn time(value: f64) -> Result<Time, Reason> {
    let nanos = value * SECOND_NANOS;
    // The float nearest to the greatest number of 64 bits is one above it.
    if nanos.abs() > i64::MAX as f64 {
        let value = general(value);
        let text = "cannot be represented as a nanoseconds timestamp since it overflows int64";
        return Err(format!("{value} {text}").into());
    }
    Ok(Time::from_millis(nanos as i64 / 1_000_000))
}

/// Parses a duration of Prometheus, which may be negative, to seconds.
fn parse_duration(text: &str) -> Result<f64, Reason> {
    const UNITS: [(&str, u64); 7] = [
        ("y", 31_536_000_000),
        ("w", 604_800_000),
        ("d", 86_400_000),
        ("h", 3_600_000),
        ("m", 60_000),
        ("s", 1000),
        ("ms", 1),
    ];
    // Go counts nanoseconds in 63 bits.
    const MILLIS_MAX: u64 = i64::MAX as u64 / 1_000_000;
    let (sign, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, text),
    };
    let invalid = || Reason::from(format!("not a valid duration string: {}", quoted(unsigned)));
    match unsigned {
        "0" => return Ok(0.0),
        "" => return Err("empty duration string".into()),
        _ => {}
    }
    let (mut rest, mut sum, mut units) = (unsigned, 0u64, &UNITS[..]);
    while !rest.is_empty() {
        let digits = rest.find(|letter: char| !letter.is_ascii_digit()).ok_or_else(invalid)?;
        let count: u64 = rest[..digits].parse().map_err(|_| invalid())?;
        rest = &rest[digits..];
        let end = rest.find(|letter: char| letter.is_ascii_digit()).unwrap_or(rest.len());
        let (unit, after) = rest.split_at(end);
        if !UNITS.iter().any(|(name, _)| *name == unit) {
            let (unit, text) = (quoted(unit), quoted(unsigned));
            return Err(format!("unknown unit {unit} in duration {text}").into());
        }
        let place = units.iter().position(|(name, _)| *name == unit).ok_or_else(invalid)?;
        let part = count.checked_mul(units[place].1);
        sum = part
            .and_then(|part| sum.checked_add(part))
            .filter(|sum| *sum <= MILLIS_MAX)
            .ok_or("duration out of range")?;
        // A unit may only be followed by smaller ones.
        units = &units[place + 1..];
        rest = after;
    }
    Ok(sign * (sum * 1_000_000) as f64 / SECOND_NANOS)
}
