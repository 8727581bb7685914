//! Parser of templates: pipelines, commands and their operands.

use super::literal::character;
use super::parser::{Parser, Result};
use super::token::{TokenKind, Word};
use super::tree::{Command, Operand, Pipe, Term};
use crate::template::format::quoted;
use crate::template::functions::function;
use crate::template::number::Number;

impl Parser<'_> {
    /// Parses a pipeline up to the token that ends it.
    pub(super) fn pipe_of(&mut self, context: &str, end: TokenKind) -> Result<Pipe> {
        let at = self.peek_word().at;
        let mut pipe = Pipe { at, assigns: false, variables: Vec::new(), commands: Vec::new() };
        self.declarations(&mut pipe, context)?;
        loop {
            let place = self.place();
            let token = self.read_word();
            match token.kind {
                kind if kind == end => break,
                TokenKind::Bool
                | TokenKind::Complex
                | TokenKind::Field
                | TokenKind::Identifier
                | TokenKind::LeftParenthesis
                | TokenKind::Number
                | TokenKind::Quoted
                | TokenKind::Rune
                | TokenKind::Variable
                | TokenKind::Word(Word::Dot | Word::Nil) => {
                    self.back_to(place);
                    pipe.commands.push(self.command()?);
                }
                _ => return Err(self.unexpected(token, context)),
            }
        }
        if pipe.commands.is_empty() {
            return Err(self.error(format!("missing value for {context}")));
        }
        for (stage, command) in pipe.commands.iter().enumerate().skip(1) {
            let first = command.operands.first().map(|operand| &operand.term);
            if let Some(
                Term::Bool(_) | Term::Dot | Term::Nil | Term::Number(_) | Term::Text { .. },
            ) = first
            {
                let stage = stage + 1;
                let text = format!("non executable command in pipeline stage {stage}");
                return Err(self.error(text));
            }
        }
        Ok(pipe)
    }

    /// Parses the variables that a pipeline sets, of which `range` may have two.
    fn declarations(&mut self, pipe: &mut Pipe, context: &str) -> Result<()> {
        loop {
            self.peek_word();
            let place = self.place();
            let variable = self.peek();
            if variable.kind != TokenKind::Variable {
                return Ok(());
            }
            self.read();
            let next = self.peek_word();
            let is_list = next.kind == TokenKind::Character && next.text == ",";
            let sets = matches!(next.kind, TokenKind::Assign | TokenKind::Declare);
            if !is_list && !sets {
                self.back_to(place);
                return Ok(());
            }
            self.read();
            pipe.variables.push(variable.text.to_owned());
            self.declare(variable.text);
            if sets {
                pipe.assigns = next.kind == TokenKind::Assign;
                return Ok(());
            }
            if context != "range" || pipe.variables.len() > 1 {
                return Err(self.error(format!("too many declarations in {context}")));
            }
            let next = self.peek_word().kind;
            if !matches!(
                next,
                TokenKind::Variable | TokenKind::RightDelimiter | TokenKind::RightParenthesis
            ) {
                return Err(self.error("range can only initialize variables"));
            }
        }
    }

    fn command(&mut self) -> Result<Command> {
        let at = self.peek_word().at;
        let mut operands = Vec::new();
        loop {
            self.peek_word();
            operands.extend(self.operand()?);
            let place = self.place();
            let token = self.read();
            match token.kind {
                TokenKind::Space => continue,
                TokenKind::RightDelimiter | TokenKind::RightParenthesis => self.back_to(place),
                TokenKind::Pipe => {}
                _ => return Err(self.unexpected(token, "operand")),
            }
            break;
        }
        match operands.is_empty() {
            true => Err(self.error("empty command")),
            false => Ok(Command { at, operands }),
        }
    }

    /// Parses a term and fields of it; `None` if no term follows.
    fn operand(&mut self) -> Result<Option<Operand>> {
        let Some(mut operand) = self.term()? else { return Ok(None) };
        if self.peek().kind != TokenKind::Field {
            return Ok(Some(operand));
        }
        let at = self.peek().at;
        let mut fields = Vec::new();
        while self.peek().kind == TokenKind::Field {
            fields.push(field_name(self.read().text));
        }
        match &mut operand.term {
            // As in Go, the place is that of the fields behind the first.
            Term::Field(first) => {
                first.append(&mut fields);
                operand.at = at;
            }
            Term::Variable(_, first) => {
                first.append(&mut fields);
                operand.at = at;
            }
            Term::Bool(_) | Term::Dot | Term::Nil | Term::Number(_) | Term::Text { .. } => {
                let term = quoted(&operand.to_string());
                return Err(self.error(format!("unexpected . after term {term}")));
            }
            Term::Chain(..) | Term::Function(_) | Term::Pipe(_) => {
                operand = Operand { at, term: Term::Chain(Box::new(operand), fields) };
            }
        }
        Ok(Some(operand))
    }

    fn term(&mut self) -> Result<Option<Operand>> {
        let place = self.place();
        let token = self.read_word();
        let term = match token.kind {
            TokenKind::Identifier => match function(self.dialect, token.text) {
                Some(function) => Term::Function(function),
                None => {
                    let name = quoted(token.text);
                    return Err(self.error(format!("function {name} not defined")));
                }
            },
            TokenKind::Word(Word::Dot) => Term::Dot,
            TokenKind::Word(Word::Nil) => Term::Nil,
            TokenKind::Variable => {
                if self.known.get(token.text).is_none_or(|count| *count == 0) {
                    let name = quoted(token.text);
                    return Err(self.error(format!("undefined variable {name}")));
                }
                Term::Variable(token.text.to_owned(), Vec::new())
            }
            TokenKind::Field => Term::Field(vec![field_name(token.text)]),
            TokenKind::Bool => Term::Bool(token.text == "true"),
            TokenKind::Rune => match character(token.text) {
                Some(letter) => Term::Number(Number {
                    text: token.text.to_owned(),
                    int: Some(i64::from(u32::from(letter))),
                    float: f64::from(u32::from(letter)),
                }),
                None => {
                    let text = format!("malformed character constant: {}", token.text);
                    return Err(self.error(text));
                }
            },
            TokenKind::Number | TokenKind::Complex => {
                Term::Number(Number::parse(token.text).map_err(|error| self.error(error))?)
            }
            TokenKind::LeftParenthesis => {
                let context = "parenthesized pipeline";
                Term::Pipe(self.pipe(context, TokenKind::RightParenthesis)?)
            }
            TokenKind::Quoted => {
                Term::Text { source: token.text.to_owned(), text: self.unquoted(token)? }
            }
            _ => {
                self.back_to(place);
                return Ok(None);
            }
        };
        Ok(Some(Operand { at: token.at, term }))
    }
}

/// Returns the name of a field without its dot.
fn field_name(token: &str) -> String {
    token.strip_prefix('.').unwrap_or(token).to_owned()
}
