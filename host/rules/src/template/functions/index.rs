//! Elements and parts of values.

use super::Context;
use crate::template::error::Reason;
use crate::template::value::{List, Value};
use std::sync::Arc;

/// Returns what lies in the first value at the first index, in that at the second, and so on.
pub fn element(values: &[Value]) -> Result<Value, Reason> {
    let Some((first, indexes)) = values.split_first() else { return Ok(Value::None) };
    if let Value::None = first {
        return Err("index of untyped nil".into());
    }
    let mut value = first.clone();
    for index in indexes {
        value = match &value {
            Value::None => return Err("index of nil pointer".into()),
            Value::Kv(labels) | Value::Labels(labels) => {
                Value::text(labels.get(key(index)?).map_or("", String::as_str))
            }
            Value::Map(map) => map.values.get(key(index)?).cloned().unwrap_or(Value::None),
            Value::Samples(samples) => match samples.get(place(index, samples.len())?) {
                Some(sample) => Value::Sample(sample.clone()),
                None => return Err("reflect: slice index out of range".into()),
            },
            Value::List(list) => match list.items.get(place(index, list.items.len())?) {
                Some(item) => item.clone(),
                None => return Err("reflect: slice index out of range".into()),
            },
            Value::Html(text) | Value::Text(text) => {
                match text.as_bytes().get(place(index, text.len())?) {
                    Some(byte) => Value::Byte(*byte),
                    None => return Err("reflect: string index out of range".into()),
                }
            }
            other => {
                let name = pointed(other);
                return Err(format!("can't index item of type {name}").into());
            }
        };
    }
    Ok(value)
}

pub fn len(values: &[Value]) -> Result<Value, Reason> {
    let len = match values.first().unwrap_or(&Value::None) {
        Value::None => return Err("reflect: call of reflect.Value.Type on zero Value".into()),
        Value::Html(text) | Value::Text(text) => text.len(),
        Value::Kv(labels) | Value::Labels(labels) => labels.len(),
        Value::List(list) => list.items.len(),
        Value::Map(map) => map.values.len(),
        Value::Samples(samples) => samples.len(),
        other => return Err(format!("len of type {}", pointed(other)).into()),
    };
    Ok(Value::Int(len as i64))
}

/// Returns the part of a value from the first index to the one before the second.
pub fn slice(context: &mut Context<'_>, values: &[Value]) -> Result<Value, Reason> {
    let Some((value, indexes)) = values.split_first() else { return Ok(Value::None) };
    if indexes.len() > 3 {
        return Err(format!("too many slice indexes: {}", indexes.len()).into());
    }
    let len = match value {
        Value::None => return Err("slice of untyped nil".into()),
        Value::Html(_) | Value::Text(_) if indexes.len() == 3 => {
            return Err("cannot 3-index slice a string".into());
        }
        Value::Html(text) | Value::Text(text) => text.len(),
        Value::List(list) => list.items.len(),
        Value::Samples(samples) => samples.len(),
        other => return Err(format!("can't slice item of type {}", pointed(other)).into()),
    };
    let mut bounds = [0, len, len];
    for (bound, index) in bounds.iter_mut().zip(indexes) {
        *bound = place(index, len)?;
    }
    let [from, to, capacity] = bounds;
    for (from, to) in [(from, to), (to, capacity)] {
        if from > to {
            return Err(format!("invalid slice index: {from} > {to}").into());
        }
    }
    Ok(match value {
        Value::Samples(samples) => {
            context.budget.charge((to - from) as u64)?;
            Value::Samples(samples[from..to].into())
        }
        Value::List(list) => {
            context.budget.charge((to - from) as u64)?;
            let items = list.items[from..to].to_vec();
            let (type_name, nesting) = (list.type_name, list.nesting);
            Value::List(Arc::new(List { type_name, items, nesting }))
        }
        Value::Html(text) => Value::Html(cut(text, from, to).into()),
        Value::Text(text) => Value::text(cut(text, from, to)),
        _ => Value::None,
    })
}

/// Returns bytes of a text, of which those of parts of a character become U+FFFD.
fn cut(text: &str, from: usize, to: usize) -> String {
    String::from_utf8_lossy(&text.as_bytes()[from..to]).into_owned()
}

fn key(index: &Value) -> Result<&str, Reason> {
    match index {
        Value::Text(text) => Ok(text),
        Value::None => Err("value is nil; should be of type string".into()),
        other => Err(format!("value has type {}; should be string", other.type_name()).into()),
    }
}

/// Returns an index as a place, which may be the end.
fn place(index: &Value, len: usize) -> Result<usize, Reason> {
    let number = match index {
        Value::None => return Err("cannot index slice/array with nil".into()),
        _ => index.integer().ok_or_else(|| {
            Reason::from(format!("cannot index slice/array with type {}", index.type_name()))
        })?,
    };
    let place = usize::try_from(number).ok().filter(|place| *place <= len);
    place.ok_or_else(|| format!("index out of range: {number}").into())
}

/// Returns the name of the type to which a pointer leads.
fn pointed(value: &Value) -> &'static str {
    let name = value.type_name();
    name.strip_prefix('*').unwrap_or(name)
}
