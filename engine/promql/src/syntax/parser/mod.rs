//! Recursive descent parser with precedence climbing and one token of look-ahead.
//!
//! The next token is read only where the grammar needs it, so that of several errors the first is
//! the same as in upstream's parser.

mod aggregate;
mod binary;
mod duration;
mod postfix;
mod primary;
mod selector;

use super::lexer::Lexer;
use super::token::{Token, TokenKind};
use super::{Expr, ExprKind, ParseError, Span, VectorSelector, check};

/// Longest text that is parsed, in bytes.
const TEXT_BYTES_MAX: usize = 1 << 20;

/// Maximum nesting of an expression.
const NESTING_MAX: u32 = 200;

/// Maximum height of a tree; a chain of operators is one level, and each subquery is a level.
const HEIGHT_MAX: u32 = 1000;

/// Maximum number of consecutive operators, as in `a + b + c`.
const CHAIN_MAX: u32 = 10_000;

/// Switch of upstream's programs for experimental functions; a host may name another switch.
const UPSTREAM_SWITCH: &str = "--enable-feature=promql-experimental-functions";

/// Extensions of the stable language to accept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParserOptions {
    /// Accepts experimental functions and aggregations.
    pub experimental_functions: bool,
    /// Name of the switch in the error about a disabled aggregation.
    pub experimental_functions_switch: &'static str,
    /// Accepts arithmetic in place of durations.
    pub duration_expressions: bool,
    /// Accepts the modifiers `anchored` and `smoothed`.
    pub extended_range_selectors: bool,
    /// Accepts `fill`, `fill_left` and `fill_right`.
    pub fill_modifiers: bool,
    /// Maximum number of consecutive operators, as in `a + b + c`.
    pub chain_max: u32,
}

impl Default for ParserOptions {
    fn default() -> ParserOptions {
        ParserOptions {
            experimental_functions: false,
            experimental_functions_switch: UPSTREAM_SWITCH,
            duration_expressions: true,
            extended_range_selectors: false,
            fill_modifiers: false,
            chain_max: CHAIN_MAX,
        }
    }
}

impl ParserOptions {
    /// Returns options that accept all extensions.
    pub fn all() -> ParserOptions {
        ParserOptions {
            experimental_functions: true,
            experimental_functions_switch: UPSTREAM_SWITCH,
            duration_expressions: true,
            extended_range_selectors: true,
            fill_modifiers: true,
            chain_max: CHAIN_MAX,
        }
    }
}

/// Parses an expression and checks its types.
pub fn parse(text: &str, options: &ParserOptions) -> Result<Expr, ParseError> {
    let mut parser = Parser::new(text, options)?;
    // Upstream has its own error for a text without tokens.
    if parser.peek()?.kind == TokenKind::End {
        return Err(parser.error(Span::default(), "no expression found in input"));
    }
    let mut expr = parser.expression()?;
    parser.finish()?;
    // Types are checked after the whole text, since syntax errors take precedence.
    check::check(&mut expr, text)?;
    Ok(expr)
}

/// Parses a series selector, as in the parameter `match[]`.
pub fn parse_selector(text: &str) -> Result<VectorSelector, ParseError> {
    let mut parser = Parser::new(text, &ParserOptions::default())?;
    let expr = match parser.peek()?.kind {
        TokenKind::LeftBrace => parser.selector()?,
        kind if kind.is_metric_name() => parser.selector()?,
        _ => return Err(parser.unexpected()),
    };
    parser.finish()?;
    match expr.kind {
        ExprKind::Vector(selector) => Ok(selector),
        _ => Err(parser.unexpected()),
    }
}

type Parsed = Result<Expr, ParseError>;

struct Parser<'a> {
    text: &'a str,
    lexer: Lexer<'a>,
    /// The next token, if it was read already.
    next: Option<Token<'a>>,
    /// Offset after the last token that was taken.
    end: u32,
    options: ParserOptions,
    nesting: u32,
    /// Height of the tree that was finished last.
    height: u32,
    /// Whether arguments of an aggregation are being parsed; errors name that context.
    in_aggregation: bool,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str, options: &ParserOptions) -> Result<Parser<'a>, ParseError> {
        // Bounds the memory of the tree, and lets any position fit into 32 bits.
        if text.len() > TEXT_BYTES_MAX {
            let reason = format!("the expression has more than {TEXT_BYTES_MAX} bytes");
            return Err(ParseError::new(Span::default(), reason, text));
        }
        Ok(Parser {
            text,
            lexer: Lexer::new(text),
            next: None,
            end: 0,
            options: *options,
            nesting: 0,
            height: 0,
            in_aggregation: false,
        })
    }

    /// Returns the next token without taking it.
    fn peek(&mut self) -> Result<Token<'a>, ParseError> {
        match self.next {
            Some(token) => Ok(token),
            None => Ok(*self.next.insert(self.lexer.next()?)),
        }
    }

    fn take(&mut self) -> Result<Token<'a>, ParseError> {
        let token = self.peek()?;
        self.next = None;
        self.end = token.end();
        Ok(token)
    }

    fn take_if(&mut self, kind: TokenKind) -> Result<Option<Token<'a>>, ParseError> {
        match self.peek()?.kind == kind {
            true => self.take().map(Some),
            false => Ok(None),
        }
    }

    fn expect(&mut self, kind: TokenKind) -> Result<Token<'a>, ParseError> {
        match self.take_if(kind)? {
            Some(token) => Ok(token),
            None => Err(self.unexpected()),
        }
    }

    fn finish(&mut self) -> Result<(), ParseError> {
        self.expect(TokenKind::End).map(drop)
    }

    fn error(&self, span: Span, text: impl Into<String>) -> ParseError {
        ParseError::new(span, text, self.text)
    }

    fn unexpected(&mut self) -> ParseError {
        let context = if self.in_aggregation { "aggregation" } else { "" };
        self.unexpected_in(context, "")
    }

    /// Makes the error of a token that is not allowed here; `context` and `expected` may be empty.
    fn unexpected_in(&mut self, context: &str, expected: &str) -> ParseError {
        let token = match self.peek() {
            Ok(token) => token,
            Err(error) => return error,
        };
        let mut text = format!("unexpected {token}");
        for (before, part) in [(" in ", context), (", expected ", expected)] {
            if !part.is_empty() {
                text.extend([before, part]);
            }
        }
        self.error(token.span(), text)
    }

    fn span_from(&self, start: u32) -> Span {
        Span { start, end: self.end }
    }

    /// Adds a node above trees of at most this height; fails if the tree is too high.
    fn grow(&mut self, height: u32, span: Span) -> Result<(), ParseError> {
        self.height = height + 1;
        match self.height > HEIGHT_MAX {
            true => Err(self.error(span, "the expression has too many levels")),
            false => Ok(()),
        }
    }

    /// Enters a level of nesting. An error ends the parser, so the level need not be left.
    fn go_down(&mut self) -> Result<(), ParseError> {
        self.nesting += 1;
        match self.nesting > NESTING_MAX {
            true => {
                let span = self.peek()?.span();
                Err(self.error(span, "the expression is nested too deeply"))
            }
            false => Ok(()),
        }
    }

    fn go_up(&mut self) {
        self.nesting -= 1;
    }
}
