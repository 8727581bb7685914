//! Fields, elements of maps, and methods.

use super::{At, Result, State};
use crate::template::functions::method;
use crate::template::syntax::Operand;
use crate::template::value::Value;

impl<'t> State<'t> {
    /// Evaluates `(…).a.b`.
    pub(super) fn chain(
        &mut self,
        dot: &Value,
        operand: &'t Operand,
        inner: &'t Operand,
        fields: &'t [String],
        arguments: &'t [Operand],
        last: Option<Value>,
    ) -> Result<Value> {
        self.at = At::Operand(operand);
        let value = self.untyped(dot, inner)?;
        self.fields(dot, value, operand, fields, arguments, last)
    }

    /// Evaluates `$a.b.c`.
    pub(super) fn variable_fields(
        &mut self,
        dot: &Value,
        operand: &'t Operand,
        name: &str,
        fields: &'t [String],
        arguments: &'t [Operand],
        last: Option<Value>,
    ) -> Result<Value> {
        let place = self.variable(name)?;
        let value = self.variables.get(place).map_or(Value::None, |(_, value)| value.clone());
        if !fields.is_empty() {
            return self.fields(dot, value, operand, fields, arguments, last);
        }
        match arguments.is_empty() && last.is_none() {
            true => Ok(value),
            false => Err(self.fail(format!("can't give argument to non-function {operand}"))),
        }
    }

    /// Evaluates fields of a value, of which the last one may be a method with arguments.
    pub(super) fn fields(
        &mut self,
        dot: &Value,
        mut value: Value,
        operand: &'t Operand,
        fields: &'t [String],
        arguments: &'t [Operand],
        mut last: Option<Value>,
    ) -> Result<Value> {
        // Whether Go only knows that the value is of any type, which errors tell.
        let mut is_any = false;
        for (place, name) in fields.iter().enumerate() {
            if is_any && method(&value, name).is_none() && !has_field(&value, name) {
                return Err(self.fail(match value {
                    Value::None => format!("nil pointer evaluating interface {{}}.{name}"),
                    _ => format!("can't evaluate field {name} in type interface {{}}"),
                }));
            }
            is_any = match &value {
                Value::Map(_) => true,
                Value::Struct(_) => false,
                _ => name == "Value",
            };
            value = match place + 1 == fields.len() {
                true => self.field(dot, value, operand, name, arguments, last.take())?,
                false => self.field(dot, value, operand, name, &[], None)?,
            };
        }
        Ok(value)
    }

    fn field(
        &mut self,
        dot: &Value,
        value: Value,
        operand: &'t Operand,
        name: &'t str,
        arguments: &'t [Operand],
        last: Option<Value>,
    ) -> Result<Value> {
        self.charge(1)?;
        if let Some(method) = method(&value, name) {
            return self.call(dot, method, At::Operand(operand), Some(value), arguments, last);
        }
        let has_arguments = !arguments.is_empty() || last.is_some();
        let found = match &value {
            // As in Go, a field of no value is no value.
            Value::None => return Ok(Value::None),
            Value::Kv(_) | Value::Labels(_) | Value::Map(_) if has_arguments => {
                return Err(self.fail(format!("{name} is not a method but has arguments")));
            }
            Value::Kv(labels) | Value::Labels(labels) => {
                // Absent labels are empty (`missingkey=zero`).
                Some(Value::text(labels.get(name).map_or("", String::as_str)))
            }
            Value::Map(map) => Some(map.values.get(name).cloned().unwrap_or(Value::None)),
            Value::Data(data) => match name {
                "Labels" => Some(Value::Labels(data.labels.clone())),
                "ExternalLabels" => Some(Value::Labels(data.external_labels.clone())),
                "ExternalURL" => Some(Value::text(data.external_url.as_str())),
                "Value" => Some(data.value.value()),
                _ => None,
            },
            Value::Struct(value) => value.get(name).cloned(),
            Value::Sample(sample) => match name {
                "Labels" => Some(Value::Labels(sample.labels.clone())),
                "Value" => Some(sample.value.value()),
                _ => None,
            },
            _ => None,
        };
        match found {
            Some(_) if has_arguments => {
                let text = "has arguments but cannot be invoked as function";
                Err(self.fail(format!("{name} {text}")))
            }
            Some(found) => {
                let charged = self.budget.charge_bytes(found.bytes(), 0);
                charged.map_err(|reason| self.fail(reason))?;
                Ok(found)
            }
            None => {
                let type_name = value.type_name();
                Err(self.fail(format!("can't evaluate field {name} in type {type_name}")))
            }
        }
    }
}

/// Returns whether a value has a field or element of this name, or may have one.
fn has_field(value: &Value, name: &str) -> bool {
    match value {
        Value::Kv(_) | Value::Labels(_) | Value::Map(_) => true,
        Value::Struct(value) => value.get(name).is_some(),
        Value::Data(_) => matches!(name, "Labels" | "ExternalLabels" | "ExternalURL" | "Value"),
        Value::Sample(_) => matches!(name, "Labels" | "Value"),
        _ => false,
    }
}
