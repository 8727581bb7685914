//! From tokens to a tree, by precedence climbing with one token of look-ahead.
//!
//! The look-ahead is read only where the grammar needs it, so that of several errors the same one
//! is found first as by upstream's parser.

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

/// How deep expressions may be nested.
const NESTING_MAX: u32 = 200;

/// How high a tree may be, where a chain of operators counts once: subqueries behind one another
/// are high without being nested.
const HEIGHT_MAX: u32 = 1000;

/// How many operators may follow one another, as in `a + b + c`.
const CHAIN_MAX: u32 = 10_000;

/// What enables experimental functions in upstream's programs, unless a host names another switch.
const UPSTREAM_SWITCH: &str = "--enable-feature=promql-experimental-functions";

/// What is accepted beside the stable language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParserOptions {
    /// Experimental functions and aggregations.
    pub experimental_functions: bool,
    /// What enables them, as the error about a disabled aggregation names it.
    pub experimental_functions_switch: &'static str,
    /// Arithmetic in the place of durations.
    pub duration_expressions: bool,
    /// `anchored` and `smoothed`.
    pub extended_range_selectors: bool,
    /// `fill`, `fill_left` and `fill_right`.
    pub fill_modifiers: bool,
    /// How many operators may follow one another, as in `a + b + c`.
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
    /// Everything.
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
    if parser.peek()?.kind == TokenKind::End {
        return Err(parser.error(Span::default(), "no expression found in input"));
    }
    let mut expr = parser.expression()?;
    parser.finish()?;
    check::check(&mut expr, text)?;
    Ok(expr)
}

/// Parses a selector of series, as `match[]` takes it.
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
    /// The next token, if it has been looked at.
    next: Option<Token<'a>>,
    /// Behind the last token that was taken.
    end: u32,
    options: ParserOptions,
    nesting: u32,
    /// Height of the tree that was finished last.
    height: u32,
    /// Whether arguments of an aggregation are being read, which errors say.
    in_aggregation: bool,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str, options: &ParserOptions) -> Result<Parser<'a>, ParseError> {
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

    /// The next token, which stays.
    fn peek(&mut self) -> Result<Token<'a>, ParseError> {
        match self.next {
            Some(token) => Ok(token),
            None => Ok(*self.next.insert(self.lexer.next()?)),
        }
    }

    /// Takes the next token.
    fn take(&mut self) -> Result<Token<'a>, ParseError> {
        let token = self.peek()?;
        self.next = None;
        self.end = token.end();
        Ok(token)
    }

    /// Takes the next token if it is of a kind.
    fn take_if(&mut self, kind: TokenKind) -> Result<Option<Token<'a>>, ParseError> {
        match self.peek()?.kind == kind {
            true => self.take().map(Some),
            false => Ok(None),
        }
    }

    /// Takes the next token, which must be of a kind.
    fn expect(&mut self, kind: TokenKind) -> Result<Token<'a>, ParseError> {
        match self.take_if(kind)? {
            Some(token) => Ok(token),
            None => Err(self.unexpected()),
        }
    }

    /// There must be nothing left.
    fn finish(&mut self) -> Result<(), ParseError> {
        self.expect(TokenKind::End).map(drop)
    }

    fn error(&self, span: Span, text: impl Into<String>) -> ParseError {
        ParseError::new(span, text, self.text)
    }

    /// The next token cannot stand here.
    fn unexpected(&mut self) -> ParseError {
        let context = if self.in_aggregation { "aggregation" } else { "" };
        self.unexpected_in(context, "")
    }

    /// The next token cannot stand here; `context` and `expected` may be empty.
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

    /// Counts a node above trees of which the highest has this height.
    fn grow(&mut self, height: u32, span: Span) -> Result<(), ParseError> {
        self.height = height + 1;
        match self.height > HEIGHT_MAX {
            true => Err(self.error(span, "the expression has too many levels")),
            false => Ok(()),
        }
    }

    /// Goes one level down.
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

    /// Goes one level up.
    fn go_up(&mut self) {
        self.nesting -= 1;
    }
}
