//! The tree of a template, and how errors show its parts.

use crate::template::format::quoted;
use crate::template::functions::Function;
use crate::template::number::Number;
use std::fmt;
use std::ops::Range;

pub type List = Vec<Node>;

#[derive(Debug)]
pub enum Node {
    /// Bytes of the template that are copied.
    Text(Range<usize>),
    Action(Pipe),
    If(Branches),
    With(Branches),
    Range {
        pipe: Pipe,
        body: List,
        otherwise: List,
    },
    Break,
    Continue,
    Template(Invocation),
}

/// `if` or `with`, with its `else if` or `else with`.
#[derive(Debug)]
pub struct Branches {
    pub branches: Vec<(Pipe, List)>,
    pub otherwise: List,
}

/// Invocation of a named template.
#[derive(Debug)]
pub struct Invocation {
    pub at: usize,
    pub name: String,
    pub pipe: Option<Pipe>,
}

#[derive(Debug)]
pub struct Pipe {
    pub at: usize,
    /// Whether the variables exist already.
    pub assigns: bool,
    /// Names of variables, with the dollar.
    pub variables: Vec<String>,
    pub commands: Vec<Command>,
}

/// A function with its arguments, or a single value. It has at least one operand.
#[derive(Debug)]
pub struct Command {
    pub at: usize,
    pub operands: Vec<Operand>,
}

#[derive(Debug)]
pub struct Operand {
    pub at: usize,
    pub term: Term,
}

#[derive(Debug)]
pub enum Term {
    Bool(bool),
    Chain(Box<Operand>, Vec<String>),
    Dot,
    Field(Vec<String>),
    Function(&'static Function),
    Nil,
    Number(Number),
    Pipe(Pipe),
    Text {
        source: String,
        text: String,
    },
    /// A variable, and fields of its value.
    Variable(String, Vec<String>),
}

impl Node {
    /// Returns whether the node is nothing but space in `template`.
    pub fn is_space(&self, template: &str) -> bool {
        let Node::Text(range) = self else { return false };
        template.get(range.clone()).is_some_and(|text| text.trim().is_empty())
    }
}

impl fmt::Display for Pipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.variables.is_empty() {
            let sign = if self.assigns { "=" } else { ":=" };
            write!(f, "{} {sign} ", self.variables.join(", "))?;
        }
        for (place, command) in self.commands.iter().enumerate() {
            write!(f, "{}{command}", if place > 0 { " | " } else { "" })?;
        }
        Ok(())
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, operand) in self.operands.iter().enumerate() {
            f.write_str(if place > 0 { " " } else { "" })?;
            match &operand.term {
                Term::Pipe(pipe) => write!(f, "({pipe})")?,
                _ => write!(f, "{operand}")?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let write_fields = |f: &mut fmt::Formatter<'_>, fields: &[String]| {
            fields.iter().try_for_each(|field| write!(f, ".{field}"))
        };
        match &self.term {
            Term::Bool(value) => write!(f, "{value}"),
            Term::Chain(first, fields) => {
                match &first.term {
                    Term::Pipe(pipe) => write!(f, "({pipe})")?,
                    _ => write!(f, "{first}")?,
                }
                write_fields(f, fields)
            }
            Term::Dot => f.write_str("."),
            Term::Field(fields) => write_fields(f, fields),
            Term::Function(function) => f.write_str(function.name),
            Term::Nil => f.write_str("nil"),
            Term::Number(number) => f.write_str(&number.text),
            Term::Pipe(pipe) => write!(f, "{pipe}"),
            Term::Text { source, .. } => f.write_str(source),
            Term::Variable(name, fields) => {
                f.write_str(name)?;
                write_fields(f, fields)
            }
        }
    }
}

impl fmt::Display for Invocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{{template {}", quoted(&self.name))?;
        if let Some(pipe) = &self.pipe {
            write!(f, " {pipe}")?;
        }
        f.write_str("}}")
    }
}
