//! Calls of functions and methods, and the types of their arguments.

use super::{At, Result, State};
use crate::template::error::Reason;
use crate::template::functions::{Context, Function, Parameter, Run};
use crate::template::notification::{LIST, PLAIN_STRINGS, STRINGS};
use crate::template::syntax::{Operand, Term};
use crate::template::value::Value;

impl<'t> State<'t> {
    /// Calls a function with its arguments, of which `last` comes from the command before. An error
    /// of the function is one of `at`.
    pub(super) fn call(
        &mut self,
        dot: &Value,
        function: &'static Function,
        at: At<'t>,
        receiver: Option<Value>,
        arguments: &'t [Operand],
        last: Option<Value>,
    ) -> Result<Value> {
        let (name, parameters) = (function.name, function.parameters);
        let count = arguments.len() + usize::from(last.is_some());
        let is_wrong = match function.variadic {
            Some(_) => count < parameters.len(),
            None => count != parameters.len(),
        };
        if is_wrong {
            let wanted = parameters.len();
            return Err(self.fail(match function.variadic {
                Some(_) => {
                    let got = arguments.len();
                    format!("wrong number of args for {name}: want at least {wanted} got {got}")
                }
                None => format!("wrong number of args for {name}: want {wanted} got {count}"),
            }));
        }
        let run = match function.run {
            Run::And => return self.first_that(false, dot, arguments, last),
            Run::Or => return self.first_that(true, dot, arguments, last),
            Run::Call => None,
            Run::Plain(run) => Some(run),
        };
        let parameter = |place: usize| {
            parameters.get(place).copied().or(function.variadic).unwrap_or(Parameter::Any)
        };
        let mut values = Vec::with_capacity(count + 1);
        let receivers = usize::from(receiver.is_some());
        values.extend(receiver);
        for (place, argument) in arguments.iter().enumerate() {
            values.push(self.argument(dot, parameter(place), argument)?);
        }
        if let Some(last) = last {
            values.push(self.typed(last, parameter(values.len() - receivers))?);
        }
        let bytes = values.iter().map(Value::bytes).sum();
        self.budget.charge_bytes(bytes, 0).map_err(|reason| self.fail(reason))?;
        let mut context = Context {
            external_url: self.external_url,
            source: self.source,
            budget: &mut self.budget,
        };
        let result = match run {
            Some(run) => run(&mut context, &values),
            None => Err(not_a_function(arguments, values.first().unwrap_or(&Value::None))),
        };
        let checked = result.and_then(|value| {
            self.budget.charge_bytes(value.bytes(), 0)?;
            match value.bytes() > self.budget.bytes_max() {
                true => Err(self.budget.output()),
                false => Ok(value),
            }
        });
        checked.map_err(|reason| {
            self.at = at;
            self.fail(match reason {
                Reason::Failed(error) => Reason::Failed(format!("error calling {name}: {error}")),
                limit => limit,
            })
        })
    }

    /// Returns the first argument that is `truth`, else the last one. Those behind it are not
    /// evaluated.
    fn first_that(
        &mut self,
        truth: bool,
        dot: &Value,
        arguments: &'t [Operand],
        last: Option<Value>,
    ) -> Result<Value> {
        let mut value = Value::None;
        for argument in arguments {
            value = self.argument(dot, Parameter::Raw, argument)?;
            if value.is_true() == truth {
                return Ok(value);
            }
        }
        Ok(last.unwrap_or(value))
    }

    /// Evaluates an operand as an argument of a type.
    fn argument(
        &mut self,
        dot: &Value,
        parameter: Parameter,
        operand: &'t Operand,
    ) -> Result<Value> {
        self.charge(1)?;
        self.at = At::Operand(operand);
        let expected = match parameter {
            Parameter::Duration | Parameter::Int => "integer",
            Parameter::Text => "string",
            _ => "",
        };
        let is_literal =
            matches!(operand.term, Term::Bool(_) | Term::Number(_) | Term::Text { .. });
        match (&operand.term, parameter) {
            (Term::Nil, _) if !parameter.takes_nil() => {
                return Err(self.fail(format!("cannot assign nil to {parameter}")));
            }
            (Term::Nil, _) => return Ok(Value::None),
            (Term::Number(number), Parameter::Int) if number.int.is_some() => {
                return Ok(Value::Int(number.int.unwrap_or(0)));
            }
            (Term::Number(number), Parameter::Duration) if number.int.is_some() => {
                return Ok(Value::Duration { nanos: number.int.unwrap_or(0), is_pointer: false });
            }
            (Term::Text { text, .. }, Parameter::Text) => return Ok(Value::text(text.as_str())),
            (_, Parameter::Any | Parameter::Raw) => {}
            _ if is_literal && expected.is_empty() => {
                return Err(
                    self.fail(format!("can't handle {operand} for arg of type {parameter}"))
                );
            }
            _ if is_literal => {
                return Err(self.fail(format!("expected {expected}; found {operand}")));
            }
            _ => {}
        }
        let value = self.untyped(dot, operand)?;
        self.typed(value, parameter)
    }

    /// Evaluates an operand whose type does not matter.
    pub(super) fn untyped(&mut self, dot: &Value, operand: &'t Operand) -> Result<Value> {
        self.at = At::Operand(operand);
        match &operand.term {
            Term::Bool(value) => Ok(Value::Bool(*value)),
            Term::Chain(inner, fields) => self.chain(dot, operand, inner, fields, &[], None),
            Term::Dot => Ok(dot.clone()),
            Term::Field(fields) => self.fields(dot, dot.clone(), operand, fields, &[], None),
            Term::Function(function) => {
                self.call(dot, function, At::Operand(operand), None, &[], None)
            }
            Term::Nil => Err(self.fail("indirection through explicit nil")),
            Term::Number(number) => self.number(number),
            Term::Pipe(pipe) => self.pipe(dot, pipe),
            Term::Text { text, .. } => Ok(Value::text(text.as_str())),
            Term::Variable(name, fields) => {
                self.variable_fields(dot, operand, name, fields, &[], None)
            }
        }
    }

    /// Returns a value as one of a type, as Go assigns it.
    fn typed(&self, value: Value, parameter: Parameter) -> Result<Value> {
        match (value, parameter) {
            (Value::None, _) => match parameter.takes_nil() {
                true => Ok(Value::None),
                false => Err(self.fail(format!("invalid value; expected {parameter}"))),
            },
            (value, Parameter::Any | Parameter::Raw) => Ok(value),
            (value @ Value::Int(_), Parameter::Int) => Ok(value),
            (value @ Value::Sample(_), Parameter::Sample) => Ok(value),
            (value @ Value::Samples(_), Parameter::Samples) => Ok(value),
            (value @ Value::Text(_), Parameter::Text) => Ok(value),
            (Value::List(list), Parameter::List) if list.type_name == LIST => Ok(Value::List(list)),
            (Value::List(list), Parameter::Strings)
                if matches!(list.type_name, STRINGS | PLAIN_STRINGS) =>
            {
                Ok(Value::List(list))
            }
            // What a pointer leads to is a value of the type, too.
            (Value::Duration { nanos, .. }, Parameter::Duration) => {
                Ok(Value::Duration { nanos, is_pointer: false })
            }
            (Value::Time { time, .. }, Parameter::Time) => {
                Ok(Value::Time { time, is_pointer: false })
            }
            (value, _) => {
                let got = value.type_name();
                Err(self.fail(format!("wrong type for value; expected {parameter}; got {got}")))
            }
        }
    }
}

/// Returns the error of `call`: no value here is a function.
fn not_a_function(arguments: &[Operand], value: &Value) -> Reason {
    match (value, arguments.first()) {
        (Value::None, _) => "call of nil".into(),
        (_, Some(first)) => format!("non-function {first} of type {}", value.type_name()).into(),
        (_, None) => format!("non-function of type {}", value.type_name()).into(),
    }
}
