//! Parser of templates: actions with bodies, and named templates.

use super::lexer::{Tokens, tokens};
use super::literal::unquoted;
use super::token::{Token, TokenKind, Word};
use super::tree::{Branches, Invocation, List, Node, Pipe};
use crate::template::error::TemplateError;
use crate::template::format::quoted;
use crate::template::functions::Dialect;
use std::collections::HashMap;

/// Maximum nesting of actions and parentheses, which are parsed, shown and evaluated recursively.
pub const NESTING_MAX: usize = 100;

/// Named templates of a text. That with the name of the text is what is outside of all others.
pub type Parsed = HashMap<String, List>;

pub struct Parser<'t> {
    pub(super) dialect: Dialect,
    name: &'t str,
    text: &'t str,
    lexed: Tokens<'t>,
    /// Index of the next token, and of the first one that was never read.
    next: usize,
    unread: usize,
    /// Variables that are known, and how often each of them is.
    pub(super) variables: Vec<&'t str>,
    pub(super) known: HashMap<&'t str, usize>,
    ranges: usize,
    nesting: usize,
    /// Line on which the action begins that is parsed.
    action_line: usize,
    templates: Parsed,
}

pub type Result<T> = std::result::Result<T, TemplateError>;

/// What ends a list of nodes.
enum Stop {
    End,
    Else,
}

enum Item {
    Node(Node),
    Stop(Stop),
}

pub fn parse(dialect: Dialect, name: &str, text: &str) -> Result<Parsed> {
    let mut parser = Parser {
        dialect,
        name,
        text,
        lexed: tokens(text),
        next: 0,
        unread: 0,
        variables: vec!["$"],
        known: HashMap::from([("$", 1)]),
        ranges: 0,
        nesting: 0,
        action_line: 0,
        templates: HashMap::new(),
    };
    parser.top()?;
    Ok(parser.templates)
}

impl<'t> Parser<'t> {
    fn top(&mut self) -> Result<()> {
        let mut root = List::new();
        while self.peek().kind != TokenKind::End {
            let start = self.next;
            let is_action = self.read().kind == TokenKind::LeftDelimiter;
            if is_action && self.read_word().kind == TokenKind::Word(Word::Define) {
                self.definition()?;
                continue;
            }
            self.next = start;
            match self.item()? {
                Item::Node(node) => root.push(node),
                Item::Stop(stop) => return Err(self.error(format!("unexpected {stop}"))),
            }
        }
        self.add(self.name.to_owned(), root)
    }

    /// Parses a template behind `define`.
    fn definition(&mut self) -> Result<()> {
        const CONTEXT: &str = "define clause";
        let name = self.template_name(CONTEXT)?;
        self.expect(TokenKind::RightDelimiter, CONTEXT)?;
        self.template(name, CONTEXT)
    }

    /// Parses the body of a named template, in which only `$` is known.
    fn template(&mut self, name: String, context: &str) -> Result<()> {
        let variables = std::mem::replace(&mut self.variables, vec!["$"]);
        let known = std::mem::replace(&mut self.known, HashMap::from([("$", 1)]));
        let ranges = std::mem::take(&mut self.ranges);
        let (body, stop) = self.list()?;
        if let Stop::Else = stop {
            return Err(self.error(format!("unexpected {stop} in {context}")));
        }
        self.variables = variables;
        self.known = known;
        self.ranges = ranges;
        self.add(name, body)
    }

    fn add(&mut self, name: String, list: List) -> Result<()> {
        let text = self.text;
        let is_empty = |list: &List| list.iter().all(|node| node.is_space(text));
        match self.templates.get(&name) {
            Some(known) if !is_empty(known) => match is_empty(&list) {
                true => Ok(()),
                false => Err(self
                    .error(format!("template: multiple definition of template {}", quoted(&name)))),
            },
            _ => {
                self.templates.insert(name, list);
                Ok(())
            }
        }
    }

    /// Parses up to `end` or `else`.
    fn list(&mut self) -> Result<(List, Stop)> {
        self.enter()?;
        let mut list = List::new();
        while self.peek_word().kind != TokenKind::End {
            match self.item()? {
                Item::Node(node) => list.push(node),
                Item::Stop(stop) => {
                    self.leave();
                    return Ok((list, stop));
                }
            }
        }
        Err(self.error("unexpected EOF"))
    }

    fn item(&mut self) -> Result<Item> {
        let token = self.read_word();
        match token.kind {
            TokenKind::Text => Ok(Item::Node(Node::Text(token.at..token.at + token.text.len()))),
            TokenKind::LeftDelimiter => {
                self.action_line = token.line;
                let item = self.action()?;
                self.action_line = 0;
                Ok(item)
            }
            _ => Err(self.unexpected(token, "input")),
        }
    }

    fn action(&mut self) -> Result<Item> {
        let start = self.next;
        let token = self.read_word();
        let TokenKind::Word(word) = token.kind else {
            self.next = start;
            return self
                .pipe("command", TokenKind::RightDelimiter)
                .map(Node::Action)
                .map(Item::Node);
        };
        Ok(Item::Node(match word {
            Word::Block => self.block()?,
            Word::Break | Word::Continue => self.jump(word, token.text)?,
            Word::Else => {
                // `else if` is read by the `if` to which it belongs.
                let next = self.peek_word().kind;
                if !matches!(next, TokenKind::Word(Word::If | Word::With)) {
                    self.expect(TokenKind::RightDelimiter, "else")?;
                }
                return Ok(Item::Stop(Stop::Else));
            }
            Word::End => {
                self.expect(TokenKind::RightDelimiter, "end")?;
                return Ok(Item::Stop(Stop::End));
            }
            Word::If => Node::If(self.branches("if", Word::If)?),
            Word::With => Node::With(self.branches("with", Word::With)?),
            Word::Range => self.range()?,
            Word::Template => self.invocation()?,
            Word::Define | Word::Dot | Word::Nil => {
                self.next = start;
                Node::Action(self.pipe("command", TokenKind::RightDelimiter)?)
            }
        }))
    }

    fn jump(&mut self, word: Word, name: &str) -> Result<Node> {
        let token = self.read_word();
        if token.kind != TokenKind::RightDelimiter {
            return Err(self.unexpected(token, &format!("{{{{{name}}}}}")));
        }
        if self.ranges == 0 {
            return Err(self.error(format!("{{{{{name}}}}} outside {{{{range}}}}")));
        }
        Ok(if word == Word::Break { Node::Break } else { Node::Continue })
    }

    fn branches(&mut self, context: &str, word: Word) -> Result<Branches> {
        let known = self.variables.len();
        let mut branches = Vec::new();
        loop {
            let pipe = self.pipe(context, TokenKind::RightDelimiter)?;
            let (body, stop) = self.list()?;
            branches.push((pipe, body));
            let otherwise = match stop {
                Stop::End => List::new(),
                Stop::Else if self.peek().kind == TokenKind::Word(word) => {
                    self.read();
                    continue;
                }
                Stop::Else => self.otherwise()?,
            };
            self.truncate_variables(known);
            return Ok(Branches { branches, otherwise });
        }
    }

    fn range(&mut self) -> Result<Node> {
        let known = self.variables.len();
        let pipe = self.pipe("range", TokenKind::RightDelimiter)?;
        self.ranges += 1;
        let (body, stop) = self.list()?;
        self.ranges -= 1;
        let otherwise = match stop {
            Stop::End => List::new(),
            Stop::Else => self.otherwise()?,
        };
        self.truncate_variables(known);
        Ok(Node::Range { pipe, body, otherwise })
    }

    /// Parses what follows an `else` that is the last one.
    fn otherwise(&mut self) -> Result<List> {
        match self.list()? {
            (list, Stop::End) => Ok(list),
            (_, stop) => Err(self.error(format!("expected end; found {stop}"))),
        }
    }

    fn block(&mut self) -> Result<Node> {
        const CONTEXT: &str = "block clause";
        let at = self.peek_word().at;
        let name = self.template_name(CONTEXT)?;
        let pipe = Some(self.pipe(CONTEXT, TokenKind::RightDelimiter)?);
        self.template(name.clone(), CONTEXT)?;
        Ok(Node::Template(Invocation { at, name, pipe }))
    }

    fn invocation(&mut self) -> Result<Node> {
        const CONTEXT: &str = "template clause";
        let at = self.peek_word().at;
        let name = self.template_name(CONTEXT)?;
        let pipe = match self.peek_word().kind {
            TokenKind::RightDelimiter => {
                self.read_word();
                None
            }
            _ => Some(self.pipe(CONTEXT, TokenKind::RightDelimiter)?),
        };
        Ok(Node::Template(Invocation { at, name, pipe }))
    }

    fn template_name(&mut self, context: &str) -> Result<String> {
        let token = self.read_word();
        match token.kind {
            TokenKind::Quoted => self.unquoted(token),
            _ => Err(self.unexpected(token, context)),
        }
    }

    pub(super) fn unquoted(&self, token: Token<'_>) -> Result<String> {
        unquoted(token.text).ok_or_else(|| self.error("invalid syntax"))
    }

    pub(super) fn pipe(&mut self, context: &str, end: TokenKind) -> Result<Pipe> {
        self.enter()?;
        let pipe = self.pipe_of(context, end)?;
        self.leave();
        Ok(pipe)
    }

    pub(super) fn declare(&mut self, name: &'t str) {
        self.variables.push(name);
        *self.known.entry(name).or_default() += 1;
    }

    fn truncate_variables(&mut self, len: usize) {
        for name in self.variables.drain(len..) {
            if let Some(count) = self.known.get_mut(name) {
                *count -= 1;
            }
        }
    }

    fn enter(&mut self) -> Result<()> {
        if self.nesting >= NESTING_MAX {
            return Err(self.error(format!("nests more than {NESTING_MAX} deep")));
        }
        self.nesting += 1;
        Ok(())
    }

    fn leave(&mut self) {
        self.nesting -= 1;
    }

    /// Index of the next token, to which [`Parser::back_to`] returns.
    pub(super) fn place(&self) -> usize {
        self.next
    }

    pub(super) fn back_to(&mut self, place: usize) {
        self.next = place;
    }

    pub(super) fn read(&mut self) -> Token<'t> {
        let token = self.peek();
        self.next += 1;
        token
    }

    pub(super) fn peek(&mut self) -> Token<'t> {
        self.unread = self.unread.max(self.next + 1);
        self.token(self.next)
    }

    /// Reads the next token that is no space.
    pub(super) fn read_word(&mut self) -> Token<'t> {
        loop {
            let token = self.read();
            if token.kind != TokenKind::Space {
                return token;
            }
        }
    }

    /// Skips spaces, and returns the token behind them.
    pub(super) fn peek_word(&mut self) -> Token<'t> {
        while self.peek().kind == TokenKind::Space {
            self.next += 1;
        }
        self.peek()
    }

    /// Returns a token; the last one stands for all behind it.
    fn token(&self, index: usize) -> Token<'t> {
        let tokens = &self.lexed.tokens;
        let end = Token { kind: TokenKind::End, at: self.text.len(), line: 0, text: "" };
        tokens.get(index).or(tokens.last()).copied().unwrap_or(end)
    }

    pub(super) fn expect(&mut self, kind: TokenKind, context: &str) -> Result<Token<'t>> {
        let token = self.read_word();
        if token.kind == kind { Ok(token) } else { Err(self.unexpected(token, context)) }
    }

    pub(super) fn error(&self, reason: impl Into<String>) -> TemplateError {
        // As in Go, the line is that of the last token that was read.
        let line = self.token(self.unread.saturating_sub(1)).line;
        TemplateError::Syntax { name: self.name.to_owned(), line, reason: reason.into() }
    }

    pub(super) fn unexpected(&self, token: Token<'_>, context: &str) -> TemplateError {
        if token.kind != TokenKind::Error {
            return self.error(format!("unexpected {token} in {context}"));
        }
        let error = &self.lexed.error;
        if self.action_line == 0 || self.action_line == token.line {
            return self.error(error.as_str());
        }
        let action = if error.ends_with(" action") { "" } else { " in action" };
        self.error(format!("{error}{action} started at {}:{}", self.name, self.action_line))
    }
}

impl std::fmt::Display for Stop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Stop::End => "{{end}}",
            Stop::Else => "{{else}}",
        })
    }
}
