//! Functions and methods that templates call, with the types of their parameters.

mod builtin;
mod compare;
mod escape;
mod hosts;
mod humanize;
mod index;
mod json;
mod methods;
mod notification;
mod samples;
mod words;

pub use methods::method;

use super::budget::Budget;
use super::data::Source;
use super::error::Reason;
use super::format::Sink;
use super::value::Value;
use std::fmt;

/// A function, or a method whose first argument is its receiver.
pub struct Function {
    pub name: &'static str,
    /// Without the receiver.
    pub parameters: &'static [Parameter],
    /// Type of any number of further arguments.
    pub variadic: Option<Parameter>,
    pub run: Run,
}

#[derive(Clone, Copy)]
pub enum Run {
    /// Evaluates its arguments one after the other, up to one that is true, or false.
    And,
    Or,
    /// Wants to know how its first argument is written.
    Call,
    Plain(fn(&mut Context<'_>, &[Value]) -> Result<Value, Reason>),
}

/// Types of parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parameter {
    /// `interface {}`
    Any,
    Duration,
    Int,
    /// `[]interface {}`
    List,
    /// Any value, as Go's built-in functions take it.
    Raw,
    Sample,
    Samples,
    /// `[]string`
    Strings,
    Text,
    Time,
}

/// What templates are for, which decides about the functions that they have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Labels and annotations of alerts, as Prometheus has them.
    Rule,
    /// Notifications, as Alertmanager has them.
    Notification,
}

/// What functions work with.
pub struct Context<'c> {
    pub external_url: &'c str,
    pub source: &'c dyn Source,
    pub budget: &'c mut Budget,
}

impl Parameter {
    /// Returns whether nil is a value of the type.
    pub fn takes_nil(self) -> bool {
        use Parameter::{Any, List, Raw, Sample, Samples, Strings};
        matches!(self, Any | List | Raw | Sample | Samples | Strings)
    }
}

impl Context<'_> {
    /// Returns the text that is written, as far as the limit allows it.
    fn written(&self, write: impl FnOnce(&mut Sink)) -> Result<String, Reason> {
        let mut sink = Sink::new(self.budget.bytes_max());
        write(&mut sink);
        sink.into_text().ok_or(self.budget.output())
    }
}

/// Returns the function of a name. `tmpl` is known only to templates of HTML, as in upstream.
pub fn function(dialect: Dialect, name: &str) -> Option<&'static Function> {
    // Notifications have another `now`, and no store to ask.
    let own = match dialect {
        Dialect::Rule => samples::FUNCTIONS,
        Dialect::Notification => notification::FUNCTIONS,
    };
    // Few enough that reading a template does not notice.
    [own, builtin::FUNCTIONS, humanize::FUNCTIONS, hosts::FUNCTIONS, words::FUNCTIONS]
        .into_iter()
        .flatten()
        .find(|function| function.name == name)
}

const fn plain(
    name: &'static str,
    parameters: &'static [Parameter],
    run: fn(&mut Context<'_>, &[Value]) -> Result<Value, Reason>,
) -> Function {
    Function { name, parameters, variadic: None, run: Run::Plain(run) }
}

const fn variadic(
    name: &'static str,
    parameters: &'static [Parameter],
    more: Parameter,
    run: fn(&mut Context<'_>, &[Value]) -> Result<Value, Reason>,
) -> Function {
    Function { name, parameters, variadic: Some(more), run: Run::Plain(run) }
}

/// Returns a text argument, whose type is checked before.
fn text(values: &[Value], place: usize) -> &str {
    match values.get(place) {
        Some(Value::Text(text) | Value::Html(text)) => text,
        _ => "",
    }
}

/// Returns the error with which Go reports a nil pointer.
fn nil_pointer() -> Reason {
    "runtime error: invalid memory address or nil pointer dereference".into()
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Function({})", self.name)
    }
}

impl fmt::Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Parameter::Any => "interface {}",
            Parameter::Duration => "time.Duration",
            Parameter::Int => "int",
            Parameter::List => "[]interface {}",
            Parameter::Raw => "reflect.Value",
            Parameter::Sample => "*template.sample",
            Parameter::Samples => "template.queryResult",
            Parameter::Strings => "[]string",
            Parameter::Text => "string",
            Parameter::Time => "time.Time",
        })
    }
}
