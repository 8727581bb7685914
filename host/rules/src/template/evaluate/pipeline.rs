//! Evaluation of pipelines and their commands.

use super::{At, Result, State};
use crate::template::number::Number;
use crate::template::syntax::{Command, Operand, Pipe, Term};
use crate::template::value::Value;

impl<'t> State<'t> {
    /// Evaluates a pipeline, and sets its variables.
    pub(super) fn pipe(&mut self, dot: &Value, pipe: &'t Pipe) -> Result<Value> {
        self.enter()?;
        self.at = At::Pipe(pipe);
        let mut last = None;
        for command in &pipe.commands {
            last = Some(self.command(dot, command, last)?);
        }
        let value = last.unwrap_or(Value::None);
        for name in &pipe.variables {
            match pipe.assigns {
                true => self.assign(name, value.clone())?,
                false => self.variables.push((name, value.clone())),
            }
        }
        self.nesting -= 1;
        Ok(value)
    }

    /// Evaluates a command; the value of the one before it is its last argument.
    fn command(&mut self, dot: &Value, command: &'t Command, last: Option<Value>) -> Result<Value> {
        self.charge(1)?;
        let Some((first, arguments)) = command.operands.split_first() else {
            return Ok(Value::None);
        };
        match &first.term {
            Term::Field(fields) => {
                self.at = At::Operand(first);
                return self.fields(dot, dot.clone(), first, fields, arguments, last);
            }
            Term::Chain(inner, fields) => {
                return self.chain(dot, first, inner, fields, arguments, last);
            }
            Term::Function(function) => {
                self.at = At::Operand(first);
                return self.call(dot, function, At::Command(command), None, arguments, last);
            }
            Term::Variable(name, fields) => {
                self.at = At::Operand(first);
                return self.variable_fields(dot, first, name, fields, arguments, last);
            }
            Term::Pipe(pipe) => {
                self.takes_no_arguments(first, arguments, &last)?;
                return self.pipe(dot, pipe);
            }
            _ => {}
        }
        self.at = At::Operand(first);
        self.takes_no_arguments(first, arguments, &last)?;
        match &first.term {
            Term::Bool(value) => Ok(Value::Bool(*value)),
            Term::Dot => Ok(dot.clone()),
            Term::Number(number) => self.number(number),
            Term::Text { text, .. } => Ok(Value::text(text.as_str())),
            _ => Err(self.fail("nil is not a command")),
        }
    }

    fn takes_no_arguments(
        &self,
        first: &Operand,
        arguments: &[Operand],
        last: &Option<Value>,
    ) -> Result<()> {
        if arguments.is_empty() && last.is_none() {
            return Ok(());
        }
        let first = match &first.term {
            Term::Pipe(pipe) => pipe.to_string(),
            _ => first.to_string(),
        };
        Err(self.fail(format!("can't give argument to non-function {first}")))
    }

    /// Returns the value of a number where no type is asked for.
    pub(super) fn number(&self, number: &Number) -> Result<Value> {
        if number.is_float() {
            return Ok(Value::Float(number.float));
        }
        match number.int {
            Some(int) => Ok(Value::Int(int)),
            None => Err(self.fail(format!("{} overflows int", number.text))),
        }
    }
}
