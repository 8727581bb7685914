//! Parsing of instant vector selectors.

use super::{Expr, ExprKind, ParseError, Parsed, Parser, Span, TokenKind};
use crate::syntax::token::Token;
use crate::syntax::{BinaryOp, MatchOp, Matcher, RangeBounds, TimeShift, VectorSelector};
use tidepool_relabel::Pattern;

const CONTEXT: &str = "label matching";

impl<'a> Parser<'a> {
    /// Parses a selector from its first token, a name or a brace.
    pub(super) fn selector(&mut self) -> Parsed {
        match self.peek()?.kind {
            TokenKind::LeftBrace => self.selector_of(None),
            _ => {
                let name = self.take()?;
                self.selector_of(Some(name))
            }
        }
    }

    /// Parses a selector after its name, or a selector without a name.
    pub(super) fn selector_of(&mut self, name: Option<Token<'a>>) -> Parsed {
        let start = match name {
            Some(name) => name.start,
            None => self.peek()?.start,
        };
        let mut matchers = Vec::new();
        if name.is_none() || self.peek()?.kind == TokenKind::LeftBrace {
            self.matchers(&mut matchers)?;
        }
        let name = name.map_or("", |name| name.text);
        // The matcher of the name comes last, where the type check expects it.
        if !name.is_empty() {
            matchers.push(name_matcher(name.to_owned()));
        }
        self.height = 1;
        let selector = VectorSelector {
            name: name.to_owned(),
            matchers,
            shift: TimeShift::default(),
            bounds: RangeBounds::default(),
        };
        Ok(Expr { span: self.span_from(start), kind: ExprKind::Vector(selector) })
    }

    fn matchers(&mut self, matchers: &mut Vec<Matcher>) -> Result<(), ParseError> {
        self.expect(TokenKind::LeftBrace)?;
        while self.take_if(TokenKind::RightBrace)?.is_none() {
            matchers.push(self.matcher()?);
            if self.take_if(TokenKind::Comma)?.is_none()
                && self.peek()?.kind != TokenKind::RightBrace
            {
                return Err(self.unexpected_in(CONTEXT, "\",\" or \"}\""));
            }
        }
        Ok(())
    }

    fn matcher(&mut self) -> Result<Matcher, ParseError> {
        let token = self.peek()?;
        let name = match token.kind {
            TokenKind::Name => self.take()?.text.to_owned(),
            TokenKind::Text => self.utf8_string()?,
            _ => return Err(self.unexpected_in(CONTEXT, "identifier or \"}\"")),
        };
        let op = match self.peek()?.kind {
            TokenKind::Assign => MatchOp::Equal,
            TokenKind::Operator(BinaryOp::NotEqual) => MatchOp::NotEqual,
            TokenKind::MatchRegex => MatchOp::Regex,
            TokenKind::NotMatchRegex => MatchOp::NotRegex,
            // A string alone in braces is the name of the metric.
            _ if token.kind == TokenKind::Text => return Ok(name_matcher(name)),
            _ => return Err(self.unexpected_in(CONTEXT, "label matching operator")),
        };
        self.take()?;
        if self.peek()?.kind != TokenKind::Text {
            return Err(self.unexpected_in(CONTEXT, "string"));
        }
        let value = self.utf8_string()?;
        // The expression is compiled only for its error; the evaluation compiles it again.
        if matches!(op, MatchOp::Regex | MatchOp::NotRegex)
            && let Err(reason) = Pattern::new(&value)
        {
            let span: Span = self.span_from(token.start);
            return Err(self.error(span, reason));
        }
        Ok(Matcher { name, op, value })
    }
}

fn name_matcher(name: String) -> Matcher {
    Matcher { name: "__name__".into(), op: MatchOp::Equal, value: name }
}
