//! Methods of times and durations.

use super::Parameter::{Duration, Int, Text, Time as TimeOf};
use super::{Context, Function, Parameter, Run, text};
use crate::template::error::Reason;
use crate::template::format::{Sink, print};
use crate::template::time::Time;
use crate::template::value::Value;

type Body = fn(&mut Context<'_>, &[Value]) -> Result<Value, Reason>;

const fn method_of(name: &'static str, parameters: &'static [Parameter], run: Body) -> Function {
    Function { name, parameters, variadic: None, run: Run::Plain(run) }
}

/// Returns the method of a value.
pub fn method(value: &Value, name: &str) -> Option<&'static Function> {
    let methods = match value {
        Value::Duration { .. } => DURATION,
        Value::Time { .. } => TIME,
        Value::Kv(_) => super::notification::KV,
        Value::List(list) => super::notification::list_methods(list.type_name),
        Value::Histogram(_) | Value::Month(_) | Value::Weekday(_) => STRING,
        _ => return None,
    };
    methods.iter().find(|method| method.name == name)
}

const STRING: &[Function] = &[method_of("String", &[], |context, values| {
    let text = context.written(|sink: &mut Sink| print(&values[..values.len().min(1)], sink))?;
    Ok(Value::text(text))
})];

const TIME: &[Function] = &[
    method_of("Add", &[Duration], |_, values| Ok(of(receiver(values).plus(nanos(values, 1))))),
    method_of("AddDate", &[Int, Int, Int], |_, values| {
        let number = |place: usize| values.get(place).and_then(Value::integer).unwrap_or(0);
        Ok(of(receiver(values).plus_date(number(1), number(2), number(3))))
    }),
    method_of("After", &[TimeOf], |_, values| Ok(Value::Bool(receiver(values) > other(values)))),
    method_of("Before", &[TimeOf], |_, values| Ok(Value::Bool(receiver(values) < other(values)))),
    method_of("Compare", &[TimeOf], |_, values| {
        Ok(Value::Int(receiver(values).cmp(&other(values)) as i64))
    }),
    method_of("Day", &[], |_, values| Ok(Value::Int(receiver(values).day().into()))),
    method_of("Equal", &[TimeOf], |_, values| Ok(Value::Bool(receiver(values) == other(values)))),
    method_of("Format", &[Text], |context, values| {
        let layout = text(values, 1);
        // An element of a layout is written with at most five times its letters.
        context.budget.charge_bytes(layout.len(), 5)?;
        let formatted = receiver(values).format(layout);
        match formatted.len() > context.budget.bytes_max() {
            true => Err(context.budget.output()),
            false => Ok(Value::text(formatted)),
        }
    }),
    method_of("Hour", &[], |_, values| Ok(Value::Int(receiver(values).hour()))),
    method_of("IsZero", &[], |_, values| Ok(Value::Bool(receiver(values).is_zero()))),
    method_of("Minute", &[], |_, values| Ok(Value::Int(receiver(values).minute()))),
    method_of("Month", &[], |_, values| Ok(Value::Month(receiver(values).month()))),
    method_of("Nanosecond", &[], |_, values| Ok(Value::Int(receiver(values).nanos.into()))),
    method_of("Round", &[Duration], |_, values| Ok(of(receiver(values).rounded(nanos(values, 1))))),
    method_of("Second", &[], |_, values| Ok(Value::Int(receiver(values).second()))),
    method_of("String", &[], |_, values| Ok(Value::text(receiver(values).to_string()))),
    method_of("Sub", &[TimeOf], |_, values| {
        let nanos = receiver(values).since(other(values));
        Ok(Value::Duration { nanos, is_pointer: false })
    }),
    method_of("Truncate", &[Duration], |_, values| {
        Ok(of(receiver(values).truncated(nanos(values, 1))))
    }),
    method_of("UTC", &[], |_, values| Ok(of(receiver(values)))),
    method_of("Unix", &[], |_, values| Ok(Value::Int64(receiver(values).seconds))),
    method_of("UnixMicro", &[], |_, values| Ok(since_epoch(values, 1_000))),
    method_of("UnixMilli", &[], |_, values| Ok(since_epoch(values, 1_000_000))),
    method_of("UnixNano", &[], |_, values| Ok(since_epoch(values, 1))),
    method_of("Weekday", &[], |_, values| Ok(Value::Weekday(receiver(values).weekday()))),
    method_of("Year", &[], |_, values| Ok(Value::Int(receiver(values).year()))),
    method_of("YearDay", &[], |_, values| Ok(Value::Int(receiver(values).year_day()))),
];

const DURATION: &[Function] = &[
    method_of("Abs", &[], |_, values| {
        Ok(Value::Duration { nanos: nanos(values, 0).saturating_abs(), is_pointer: false })
    }),
    method_of("Hours", &[], |_, values| Ok(Value::Float(in_units(values, 3_600_000_000_000)))),
    method_of("Microseconds", &[], |_, values| Ok(Value::Int64(nanos(values, 0) / 1_000))),
    method_of("Milliseconds", &[], |_, values| Ok(Value::Int64(nanos(values, 0) / 1_000_000))),
    method_of("Minutes", &[], |_, values| Ok(Value::Float(in_units(values, 60_000_000_000)))),
    method_of("Nanoseconds", &[], |_, values| Ok(Value::Int64(nanos(values, 0)))),
    method_of("Round", &[Duration], |_, values| {
        let (nanos, unit) = (i128::from(nanos(values, 0)), i128::from(nanos(values, 1)));
        let rest = if unit > 0 { nanos % unit } else { 0 };
        // Halves round away from zero.
        let up = if rest.abs() * 2 >= unit.max(1) { unit * nanos.signum() } else { 0 };
        let rounded = nanos - rest + up;
        Ok(duration(rounded.clamp(i64::MIN.into(), i64::MAX.into()) as i64))
    }),
    method_of("Seconds", &[], |_, values| Ok(Value::Float(in_units(values, 1_000_000_000)))),
    method_of("String", &[], |context, values| {
        let text = context.written(|sink| print(&values[..values.len().min(1)], sink))?;
        Ok(Value::text(text))
    }),
    method_of("Truncate", &[Duration], |_, values| {
        let (nanos, unit) = (nanos(values, 0), nanos(values, 1));
        Ok(duration(if unit > 0 { nanos - nanos % unit } else { nanos }))
    }),
];

fn of(time: Time) -> Value {
    Value::Time { time, is_pointer: false }
}

fn duration(nanos: i64) -> Value {
    Value::Duration { nanos, is_pointer: false }
}

fn time_at(values: &[Value], place: usize) -> Time {
    match values.get(place) {
        Some(Value::Time { time, .. }) => *time,
        _ => Time::from_millis(0),
    }
}

fn receiver(values: &[Value]) -> Time {
    time_at(values, 0)
}

fn other(values: &[Value]) -> Time {
    time_at(values, 1)
}

fn nanos(values: &[Value], place: usize) -> i64 {
    match values.get(place) {
        Some(Value::Duration { nanos, .. }) => *nanos,
        _ => 0,
    }
}

/// Returns the receiver in a unit as Go computes it: whole units and the rest apart.
fn in_units(values: &[Value], unit_nanos: i64) -> f64 {
    let nanos = nanos(values, 0);
    (nanos / unit_nanos) as f64 + (nanos % unit_nanos) as f64 / unit_nanos as f64
}

/// Returns the receiver in units since the epoch, rounded down; what does not fit wraps, as in Go.
fn since_epoch(values: &[Value], unit_nanos: i128) -> Value {
    Value::Int64(receiver(values).nanos_since_epoch().div_euclid(unit_nanos) as i64)
}
