//! Loops.

use super::{Flow, Result, State};
use crate::template::format::{Sink, print_bare};
use crate::template::syntax::{List, Pipe};
use crate::template::value::Value;

impl<'t> State<'t> {
    pub(super) fn range(
        &mut self,
        dot: &Value,
        pipe: &'t Pipe,
        body: &'t List,
        otherwise: &'t List,
    ) -> Result<Flow> {
        let values = self.pipe(dot, pipe)?;
        let known = self.variables.len();
        let mut turns = 0;
        // One pass of the body; returns whether there is another.
        let mut turn = |state: &mut State<'t>, index: Value, value: Value| -> Result<bool> {
            turns += 1;
            state.charge(1)?;
            state.set_range_variables(pipe, known, index, &value)?;
            let flow = state.list(&value, body)?;
            state.variables.truncate(known);
            Ok(flow != Flow::Break)
        };
        match &values {
            Value::None => {}
            Value::Samples(samples) => {
                for (index, sample) in samples.iter().enumerate() {
                    if !turn(self, Value::Int(index as i64), Value::Sample(sample.clone()))? {
                        break;
                    }
                }
            }
            Value::List(list) => {
                for (index, item) in list.items.iter().enumerate() {
                    if !turn(self, Value::Int(index as i64), item.clone())? {
                        break;
                    }
                }
            }
            Value::Kv(labels) | Value::Labels(labels) => {
                for (name, value) in labels.iter() {
                    if !turn(self, Value::text(name.as_str()), Value::text(value.as_str()))? {
                        break;
                    }
                }
            }
            Value::Map(map) => {
                for (name, value) in &map.values {
                    if !turn(self, Value::text(name.as_str()), value.clone())? {
                        break;
                    }
                }
            }
            other => {
                let Some(count) = other.integer() else {
                    return Err(self.fail(format!("range can't iterate over {}", shown(other))));
                };
                if pipe.variables.len() > 1 {
                    let count = shown(other);
                    return Err(self.fail(format!(
                        "can't use {count} to iterate over more than one variable"
                    )));
                }
                for number in 0..count {
                    if !turn(self, Value::None, like(other, number))? {
                        break;
                    }
                }
            }
        }
        match turns {
            0 => self.list(dot, otherwise),
            _ => Ok(Flow::Next),
        }
    }

    /// Sets the variables of a pass: the last one is the value, one before it the index.
    fn set_range_variables(
        &mut self,
        pipe: &'t Pipe,
        known: usize,
        index: Value,
        value: &Value,
    ) -> Result<()> {
        let values = match pipe.variables.len() {
            0 => return Ok(()),
            1 => vec![value.clone()],
            _ => vec![index, value.clone()],
        };
        let first = known.saturating_sub(values.len());
        for (place, (name, value)) in pipe.variables.iter().zip(values).enumerate() {
            if pipe.assigns {
                self.assign(name, value)?;
            } else if let Some(variable) = self.variables.get_mut(first + place) {
                // The pipeline declared them.
                variable.1 = value;
            }
        }
        Ok(())
    }
}

/// Returns a number of the type of another value.
fn like(value: &Value, number: i64) -> Value {
    match value {
        Value::Byte(_) => Value::Byte(number as u8),
        Value::Duration { .. } => Value::Duration { nanos: number, is_pointer: false },
        Value::Int64(_) => Value::Int64(number),
        Value::Month(_) => Value::Month(number as u8),
        Value::Weekday(_) => Value::Weekday(number as u8),
        _ => Value::Int(number),
    }
}

/// Returns the beginning of a value for an error.
fn shown(value: &Value) -> String {
    const SHOWN_BYTES_MAX: usize = 4096;
    let mut sink = Sink::new(SHOWN_BYTES_MAX);
    print_bare(std::slice::from_ref(value), &mut sink);
    sink.into_text().unwrap_or_else(|| "…".into())
}
