//! Evaluation of the tree of a template.
//!
//! Source: Go's `text/template`, from its documentation and behaviour. As there, an error names the
//! part that was evaluated last, which [`State::at`] holds.

mod call;
mod field;
mod pipeline;
mod range;

use super::Template;
use super::budget::Budget;
use super::data::Source;
use super::error::{ExpansionError, Reason, TemplateError};
use super::format::{Sink, print_bare};
use super::syntax::{Branches, Command, Invocation, List, Node, Operand, Pipe};
use super::value::Value;
use std::fmt;

/// Maximum nesting of lists, pipelines and templates that are evaluated, which is recursive.
pub const NESTING_MAX: usize = 400;

type Result<T> = std::result::Result<T, TemplateError>;

/// Steps for each of the variables that are looked through.
const VARIABLES_PER_STEP: usize = 16;

pub struct State<'t> {
    template: &'t Template,
    external_url: &'t str,
    source: &'t dyn Source,
    budget: Budget,
    out: String,
    /// Name of the template that is evaluated.
    executing: &'t str,
    /// Variables, of which those before `frame` belong to templates outside of this one.
    variables: Vec<(&'t str, Value)>,
    frame: usize,
    at: At<'t>,
    nesting: usize,
}

/// A part of a template.
#[derive(Clone, Copy)]
enum At<'t> {
    Text(usize),
    Command(&'t Command),
    Invocation(&'t Invocation),
    Operand(&'t Operand),
    Pipe(&'t Pipe),
}

/// Where evaluation goes on.
#[derive(PartialEq, Eq)]
enum Flow {
    Next,
    Break,
    Continue,
}

impl<'t> State<'t> {
    pub fn new(
        template: &'t Template,
        external_url: &'t str,
        source: &'t dyn Source,
        budget: Budget,
    ) -> State<'t> {
        State {
            template,
            external_url,
            source,
            budget,
            out: String::new(),
            executing: &template.name,
            variables: Vec::new(),
            frame: 0,
            at: At::Text(0),
            nesting: 0,
        }
    }

    /// Evaluates the template with `dot`, and returns its output.
    pub fn run(mut self, dot: Value) -> Result<String> {
        let Some(root) = self.template.parsed.get(&self.template.name) else {
            return Ok(String::new());
        };
        self.variables.push(("$", dot.clone()));
        self.list(&dot, root)?;
        Ok(self.out)
    }

    fn list(&mut self, dot: &Value, list: &'t List) -> Result<Flow> {
        self.enter()?;
        for node in list {
            let flow = self.node(dot, node)?;
            if flow != Flow::Next {
                self.nesting -= 1;
                return Ok(flow);
            }
        }
        self.nesting -= 1;
        Ok(Flow::Next)
    }

    fn node(&mut self, dot: &Value, node: &'t Node) -> Result<Flow> {
        self.charge(1)?;
        match node {
            Node::Text(range) => {
                self.at = At::Text(range.start);
                let text = self.template.text.get(range.clone()).unwrap_or_default();
                self.write(text)?;
            }
            Node::Action(pipe) => {
                self.at = At::Pipe(pipe);
                let value = self.pipe(dot, pipe)?;
                if pipe.variables.is_empty() {
                    self.at = At::Pipe(pipe);
                    self.print(&value)?;
                }
            }
            Node::If(branches) => return self.branches(dot, branches, false),
            Node::With(branches) => return self.branches(dot, branches, true),
            Node::Range { pipe, body, otherwise } => {
                let known = self.variables.len();
                let flow = self.range(dot, pipe, body, otherwise);
                self.variables.truncate(known);
                return flow;
            }
            Node::Break => return Ok(Flow::Break),
            Node::Continue => return Ok(Flow::Continue),
            Node::Template(invocation) => self.invocation(dot, invocation)?,
        }
        Ok(Flow::Next)
    }

    fn branches(&mut self, dot: &Value, branches: &'t Branches, sets_dot: bool) -> Result<Flow> {
        let known = self.variables.len();
        for (pipe, body) in &branches.branches {
            let value = self.pipe(dot, pipe)?;
            if value.is_true() {
                let flow = self.list(if sets_dot { &value } else { dot }, body);
                self.variables.truncate(known);
                return flow;
            }
        }
        let flow = self.list(dot, &branches.otherwise);
        self.variables.truncate(known);
        flow
    }

    fn invocation(&mut self, dot: &Value, invocation: &'t Invocation) -> Result<()> {
        self.at = At::Invocation(invocation);
        let Some((name, list)) = self.template.parsed.get_key_value(&invocation.name) else {
            let name = super::format::quoted(&invocation.name);
            return Err(self.fail(format!("template {name} not defined")));
        };
        let dot = match &invocation.pipe {
            Some(pipe) => self.pipe(dot, pipe)?,
            None => Value::None,
        };
        let executing = std::mem::replace(&mut self.executing, name);
        let frame = std::mem::replace(&mut self.frame, self.variables.len());
        self.variables.push(("$", dot.clone()));
        self.list(&dot, list)?;
        self.variables.truncate(self.frame);
        self.frame = frame;
        self.executing = executing;
        Ok(())
    }

    fn print(&mut self, value: &Value) -> Result<()> {
        if let Value::Text(text) | Value::Html(text) = value {
            return self.write(text);
        }
        let mut sink = Sink::new(self.budget.bytes_max() - self.out.len());
        print_bare(std::slice::from_ref(value), &mut sink);
        match sink.into_text() {
            Some(text) => self.write(&text),
            None => Err(self.fail(self.budget.output())),
        }
    }

    fn write(&mut self, text: &str) -> Result<()> {
        if self.budget.bytes_max() - self.out.len() < text.len() {
            return Err(self.fail(self.budget.output()));
        }
        self.out.push_str(text);
        Ok(())
    }

    /// Returns the place of a variable.
    fn variable(&mut self, name: &str) -> Result<usize> {
        let known = self.variables.get(self.frame..).unwrap_or_default();
        let found = known.iter().rposition(|(known, _)| *known == name);
        let passed = known.len() - found.unwrap_or(0);
        self.charge((passed / VARIABLES_PER_STEP) as u64)?;
        match found {
            Some(place) => Ok(self.frame + place),
            None => Err(self.fail(format!("undefined variable: {name}"))),
        }
    }

    fn assign(&mut self, name: &str, value: Value) -> Result<()> {
        let place = self.variable(name)?;
        if let Some(variable) = self.variables.get_mut(place) {
            variable.1 = value;
        }
        Ok(())
    }

    fn charge(&mut self, steps: u64) -> Result<()> {
        self.budget.charge(steps).map_err(|reason| self.fail(reason))
    }

    /// Goes one level deeper; the caller comes back by subtracting from `nesting`.
    fn enter(&mut self) -> Result<()> {
        if self.nesting >= NESTING_MAX {
            return Err(self.fail(Reason::Nesting { nesting_max: NESTING_MAX }));
        }
        self.nesting += 1;
        Ok(())
    }

    fn fail(&self, reason: impl Into<Reason>) -> TemplateError {
        let at = self.at.offset();
        let before = self.template.text.get(..at).unwrap_or_default();
        let column = before.rfind('\n').map_or(at, |newline| at - newline - 1);
        TemplateError::Expansion(Box::new(ExpansionError {
            name: self.template.name.clone(),
            line: 1 + before.matches('\n').count(),
            column,
            executing: self.executing.to_owned(),
            context: self.at.to_string(),
            reason: reason.into(),
        }))
    }
}

impl At<'_> {
    fn offset(&self) -> usize {
        match self {
            At::Text(at) => *at,
            At::Command(command) => command.at,
            At::Invocation(invocation) => invocation.at,
            At::Operand(operand) => operand.at,
            At::Pipe(pipe) => pipe.at,
        }
    }
}

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            At::Text(_) => Ok(()),
            At::Command(command) => command.fmt(f),
            At::Invocation(invocation) => invocation.fmt(f),
            At::Operand(operand) => operand.fmt(f),
            At::Pipe(pipe) => pipe.fmt(f),
        }
    }
}
