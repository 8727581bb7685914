//! Comparisons of values of the same kind.

use crate::template::error::Reason;
use crate::template::format::{Sink, print};
use crate::template::value::{Kind, Value};
use std::cmp::Ordering;
use std::sync::Arc;

/// Returns whether the first value equals any of the others.
pub fn is_any(values: &[Value]) -> Result<bool, Reason> {
    let Some((first, others @ [_, ..])) = values.split_first() else {
        return Err("missing argument for comparison".into());
    };
    for other in others {
        if is_equal(first, other)? {
            return Ok(true);
        }
    }
    Ok(false)
}

pub fn is_less(values: &[Value]) -> Result<bool, Reason> {
    ordering(values).map(|ordering| ordering == Some(Ordering::Less))
}

pub fn is_at_most(values: &[Value]) -> Result<bool, Reason> {
    ordering(values).map(|ordering| ordering.is_some_and(Ordering::is_le))
}

fn incompatible(first: &Value, other: &Value) -> Reason {
    let (first, other) = (first.type_name(), other.type_name());
    format!("incompatible types for comparison: {first} and {other}").into()
}

/// Returns whether both are integers, with a sign or without.
fn are_integers(first: &Value, other: &Value) -> bool {
    let is_integer = |value: &Value| matches!(value.kind(), Kind::Int | Kind::Uint);
    is_integer(first) && is_integer(other)
}

fn is_equal(first: &Value, other: &Value) -> Result<bool, Reason> {
    if are_integers(first, other) {
        return Ok(first.integer() == other.integer());
    }
    if let (Value::None, _) | (_, Value::None) = (first, other) {
        // An empty list of samples may be nil in Go, but ours never is.
        return Ok(matches!((first, other), (Value::None, Value::None)));
    }
    if first.kind() != other.kind() {
        return Err(incompatible(first, other));
    }
    Ok(match (first, other) {
        (Value::Bool(first), Value::Bool(other)) => first == other,
        (Value::Float(first), Value::Float(other)) => first == other,
        (Value::Html(first) | Value::Text(first), Value::Html(other) | Value::Text(other)) => {
            first == other
        }
        // Pointers are equal if they lead to the same value.
        (Value::Sample(first), Value::Sample(other)) => Arc::ptr_eq(first, other),
        (Value::Histogram(first), Value::Histogram(other)) => Arc::ptr_eq(first, other),
        (Value::Duration { nanos: first, .. }, Value::Duration { nanos: other, .. }) => {
            first == other
        }
        (Value::Time { time: first, .. }, Value::Time { time: other, .. }) => first == other,
        (
            Value::Data(_)
            | Value::Kv(_)
            | Value::Labels(_)
            | Value::List(_)
            | Value::Map(_)
            | Value::Samples(_)
            | Value::Struct(_),
            _,
        ) if first.type_name() == other.type_name() => {
            // The error holds the value, of which the beginning says enough.
            const SHOWN_BYTES_MAX: usize = 4096;
            let mut sink = Sink::new(SHOWN_BYTES_MAX);
            print(std::slice::from_ref(other), &mut sink);
            let shown = sink.into_text().unwrap_or_else(|| "…".into());
            return Err(format!("non-comparable type {shown}: {}", other.type_name()).into());
        }
        _ => false,
    })
}

/// Returns how two values compare; `None` if one is no number.
fn ordering(values: &[Value]) -> Result<Option<Ordering>, Reason> {
    let [first, other] = values else { return Err("missing argument for comparison".into()) };
    for value in values {
        if value.kind() == Kind::Other {
            return Err("invalid type for comparison".into());
        }
    }
    if are_integers(first, other) {
        return Ok(first.integer().partial_cmp(&other.integer()));
    }
    match (first, other) {
        (Value::Float(first), Value::Float(other)) => Ok(first.partial_cmp(other)),
        (Value::Html(first) | Value::Text(first), Value::Html(other) | Value::Text(other)) => {
            Ok(Some(first.cmp(other)))
        }
        (Value::Bool(_), Value::Bool(_)) => Err("invalid type for comparison".into()),
        _ => Err(incompatible(first, other)),
    }
}
