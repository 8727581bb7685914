//! Values as JSON, as Go's `encoding/json` writes them.

use crate::template::error::Reason;
use crate::template::format::Sink;
use crate::template::value::Value;
use tidepool_model::number::general;

/// Layout of a time in JSON (RFC 3339).
const TIME_LAYOUT: &str = "2006-01-02T15:04:05.999999999Z07:00";

/// Writes a value, as far as there is room. Values nest to a bounded depth only.
pub fn write(value: &Value, sink: &mut Sink) -> Result<(), Reason> {
    if sink.is_full() {
        return Ok(());
    }
    match value {
        Value::None => sink.push("null"),
        Value::Bool(truth) => sink.push(if *truth { "true" } else { "false" }),
        Value::Float(number) => write_number(*number, sink)?,
        Value::Html(text) | Value::Text(text) => write_text(text, sink),
        Value::Time { time, .. } => write_text(&time.format(TIME_LAYOUT), sink),
        Value::Duration { nanos, .. } => sink.push(&nanos.to_string()),
        Value::Kv(labels) | Value::Labels(labels) => {
            object(labels.iter(), sink, |value, sink| {
                write_text(value, sink);
                Ok(())
            })?;
        }
        Value::Map(map) => object(map.values.iter(), sink, write)?,
        Value::List(list) => {
            sink.push("[");
            for (place, item) in list.items.iter().enumerate() {
                sink.push(if place > 0 { "," } else { "" });
                write(item, sink)?;
            }
            sink.push("]");
        }
        Value::Struct(value) => {
            let names = value.shape.fields.iter().map(|(_, name)| *name);
            object(names.zip(&value.values), sink, |value, sink| match value {
                // Samples are texts, as in Prometheus' API: JSON has neither NaN nor infinity.
                Value::Float(number) => {
                    write_text(&general(*number), sink);
                    Ok(())
                }
                value => write(value, sink),
            })?;
        }
        other => match other.integer() {
            Some(number) => sink.push(&number.to_string()),
            None => return Err(format!("json: unsupported type: {}", other.type_name()).into()),
        },
    }
    Ok(())
}

fn object<V>(
    entries: impl Iterator<Item = (impl AsRef<str>, V)>,
    sink: &mut Sink,
    mut write: impl FnMut(V, &mut Sink) -> Result<(), Reason>,
) -> Result<(), Reason> {
    sink.push("{");
    for (place, (name, value)) in entries.enumerate() {
        sink.push(if place > 0 { "," } else { "" });
        write_text(name.as_ref(), sink);
        sink.push(":");
        write(value, sink)?;
    }
    sink.push("}");
    Ok(())
}

fn write_number(number: f64, sink: &mut Sink) -> Result<(), Reason> {
    if !number.is_finite() {
        return Err(format!("json: unsupported value: {}", general(number)).into());
    }
    let is_plain = number == 0.0 || (1e-6..1e21).contains(&number.abs());
    sink.push(&match is_plain {
        true => number.to_string(),
        false => {
            let text = format!("{number:e}");
            if text.contains("e-") { text } else { text.replace('e', "e+") }
        }
    });
    Ok(())
}

/// Writes a text; what may end a script in HTML is escaped.
fn write_text(text: &str, sink: &mut Sink) {
    sink.push("\"");
    let mut start = 0;
    for (at, letter) in text.char_indices() {
        let escape = match letter {
            '"' => "\\\"",
            '\\' => "\\\\",
            '\u{8}' => "\\b",
            '\u{c}' => "\\f",
            '\n' => "\\n",
            '\r' => "\\r",
            '\t' => "\\t",
            '\0'..='\u{1f}' | '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                &format!("\\u{:04x}", u32::from(letter))
            }
            _ => continue,
        };
        sink.push(&text[start..at]);
        sink.push(escape);
        start = at + letter.len_utf8();
    }
    sink.push(&text[start..]);
    sink.push("\"");
}
