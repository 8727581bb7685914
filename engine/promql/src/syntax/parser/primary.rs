//! Parsing of operands: literals, selectors, calls, parentheses.

use super::{Expr, ExprKind, ParseError, Parsed, Parser, TokenKind};
use crate::syntax::token::Token;
use crate::syntax::{BinaryOp, Call, Function, Keyword, NumberLiteral, Text, number, quote};

impl<'a> Parser<'a> {
    pub(super) fn primary(&mut self) -> Parsed {
        let token = self.peek()?;
        match token.kind {
            TokenKind::Number | TokenKind::Duration => {
                let number = self.number()?;
                self.height = 1;
                Ok(Expr { span: token.span(), kind: ExprKind::Number(number) })
            }
            TokenKind::Text => {
                let text = self.string()?;
                self.height = 1;
                Ok(Expr { span: token.span(), kind: ExprKind::String(text) })
            }
            TokenKind::LeftParen => {
                self.take()?;
                let inner = self.expression()?;
                self.expect(TokenKind::RightParen)?;
                let span = self.span_from(token.start);
                self.grow(self.height, span)?;
                Ok(Expr { span, kind: ExprKind::Paren(Box::new(inner)) })
            }
            TokenKind::LeftBrace => self.selector(),
            TokenKind::Name => {
                self.take()?;
                self.call_or_selector(token)
            }
            TokenKind::Keyword(Keyword::Start | Keyword::End) => {
                // `start` and `end` are functions; without parentheses they are names of metrics.
                self.take()?;
                self.call_or_selector(token)
            }
            kind if kind.is_duration_word() => {
                self.take()?;
                self.call_or_selector(token)
            }
            TokenKind::Aggregate(op) => {
                self.take()?;
                // Without arguments or a clause the word is the name of a metric.
                match self.peek()?.kind {
                    TokenKind::LeftParen | TokenKind::Keyword(Keyword::By | Keyword::Without) => {
                        self.aggregate(op, token)
                    }
                    _ => self.selector_of(Some(token)),
                }
            }
            kind if kind.is_metric_name() => self.selector(),
            _ => Err(self.unexpected()),
        }
    }

    fn call_or_selector(&mut self, name: Token<'a>) -> Parsed {
        if self.peek()?.kind != TokenKind::LeftParen {
            return self.selector_of(Some(name));
        }
        // Upstream parses the arguments before it checks the name.
        let args = self.arguments()?;
        let Some(function) = Function::by_name(name.text) else {
            let text = format!("unknown function with name {}", quote::quoted(name.text));
            return Err(self.error(name.span(), text));
        };
        if function.is_experimental && !self.options.experimental_functions {
            let text = format!("function {} is not enabled", quote::quoted(name.text));
            return Err(self.error(name.span(), text));
        }
        let span = self.span_from(name.start);
        self.grow(self.height, span)?;
        Ok(Expr { span, kind: ExprKind::Call(Call { function, args }) })
    }

    /// Parses expressions in parentheses. Sets the height to that of the highest expression.
    pub(super) fn arguments(&mut self) -> Result<Vec<Expr>, ParseError> {
        self.expect(TokenKind::LeftParen)?;
        let mut args = Vec::new();
        let mut height = 0;
        if self.take_if(TokenKind::RightParen)?.is_none() {
            loop {
                args.push(self.expression()?);
                height = height.max(self.height);
                let Some(comma) = self.take_if(TokenKind::Comma)? else { break };
                // Upstream has an error of its own for a trailing comma.
                if !self.peek()?.kind.begins_expression() {
                    let text = "trailing commas not allowed in function call args";
                    return Err(self.error(comma.span(), text));
                }
            }
            self.expect(TokenKind::RightParen)?;
        }
        self.height = height;
        Ok(args)
    }

    /// Parses a number, or a duration in seconds.
    pub(super) fn number(&mut self) -> Result<NumberLiteral, ParseError> {
        let token = self.peek()?;
        let read = match token.kind {
            TokenKind::Number => {
                number::number(token.text).map(|value| NumberLiteral { value, is_duration: false })
            }
            TokenKind::Duration => number::duration(token.text)
                .map(|ms| NumberLiteral { value: ms as f64 / 1000.0, is_duration: true }),
            _ => return Err(self.unexpected()),
        };
        self.take()?;
        read.map_err(|text| self.error(token.span(), text))
    }

    pub(super) fn string(&mut self) -> Result<Text, ParseError> {
        let token = self.expect(TokenKind::Text)?;
        // The lexer has checked each escape.
        let bytes = quote::unquoted(token.text);
        bytes.map(Text::new).ok_or_else(|| self.error(token.span(), "invalid escape"))
    }

    /// Parses a string literal that must be UTF-8, as all labels of series are.
    pub(super) fn utf8_string(&mut self) -> Result<String, ParseError> {
        let span = self.peek()?.span();
        let text = self.string()?;
        match text.utf8() {
            Some(text) => Ok(text.to_owned()),
            None => Err(self.error(span, format!("{} is no UTF-8", text.quoted()))),
        }
    }
}

impl TokenKind {
    pub(super) fn begins_expression(self) -> bool {
        match self {
            TokenKind::Number | TokenKind::Duration | TokenKind::Text => true,
            TokenKind::LeftParen | TokenKind::LeftBrace => true,
            TokenKind::Operator(BinaryOp::Add | BinaryOp::Sub) => true,
            other => other.is_metric_name(),
        }
    }
}
