//! Parsing of duration expressions: arithmetic in place of a duration.

use super::{ParseError, Parser, Span, TokenKind};
use crate::syntax::{
    BinaryOp, DurationExpr, DurationExprKind, DurationOp, Keyword, NumberLiteral, UnaryOp,
};

type Parsed = Result<DurationExpr, ParseError>;

/// Longest duration in seconds: Go's durations are 63 bits of nanoseconds.
const SECONDS_MAX: f64 = 9_223_372_036.854_776;

/// Names of the context and of the expected tokens, for errors.
type ErrorContext<'p> = (&'p str, &'p str);

impl DurationExpr {
    /// Returns the number, if the expression is nothing but a literal.
    pub(super) fn literal(&self) -> Option<NumberLiteral> {
        match self.kind {
            DurationExprKind::Number(number) if !self.is_wrapped => Some(number),
            _ => None,
        }
    }
}

impl Parser<'_> {
    pub(super) fn duration(&mut self, context: &str, wanted: &str) -> Parsed {
        self.duration_binary(0, (context, wanted))
    }

    /// Parses an offset's duration. Operators after a literal belong to the enclosing expression.
    pub(super) fn offset_duration(&mut self) -> Parsed {
        let place = ("offset", "number, duration, step(), or range()");
        let start = self.peek()?.start;
        let sign = self.sign()?;
        let token = self.peek()?;
        if matches!(token.kind, TokenKind::Number | TokenKind::Duration) {
            let number = self.number()?;
            // Upstream positions the error at the sign, if there is one.
            let blamed = sign.map_or(token.span(), |_| Span { start, end: start + 1 });
            self.check_range(&number, blamed)?;
            let kind = DurationExprKind::Number(number);
            let inner = DurationExpr { span: token.span(), is_wrapped: false, kind };
            return self.signed(start, sign, inner);
        }
        let has_signed_parens = sign.is_some() && token.kind == TokenKind::LeftParen;
        // Operators after these operands belong to the enclosing expression, too.
        if has_signed_parens || token.kind.is_duration_word() {
            let inner = self.duration_operand(place)?;
            return self.signed(start, sign, inner);
        }
        let first = match sign {
            Some(_) => {
                let inner = self.duration_binary(BinaryOp::Pow.precedence(), place)?;
                self.signed(start, sign, inner)?
            }
            None => self.duration_operand(place)?,
        };
        self.duration_rest(first, 0, place)
    }

    fn duration_binary(&mut self, least: u8, place: ErrorContext<'_>) -> Parsed {
        self.go_down()?;
        let start = self.peek()?.start;
        let first = match self.sign()? {
            None => self.duration_operand(place)?,
            sign => {
                let inner = self.duration_binary(BinaryOp::Pow.precedence(), place)?;
                self.signed(start, sign, inner)?
            }
        };
        let whole = self.duration_rest(first, least, place)?;
        self.go_up();
        Ok(whole)
    }

    /// Parses operators and operands after the first operand.
    fn duration_rest(&mut self, first: DurationExpr, least: u8, place: ErrorContext<'_>) -> Parsed {
        let mut lhs = first;
        let mut length = 0;
        // The height of the expression before the brackets, which a subquery adds to.
        let height = self.height;
        loop {
            let token = self.peek()?;
            let TokenKind::Operator(sign) = token.kind else { return Ok(lhs) };
            let op = match sign {
                BinaryOp::Add => DurationOp::Add,
                BinaryOp::Sub => DurationOp::Sub,
                BinaryOp::Mul => DurationOp::Mul,
                BinaryOp::Div => DurationOp::Div,
                BinaryOp::Mod => DurationOp::Mod,
                BinaryOp::Pow => DurationOp::Pow,
                _ => return Ok(lhs),
            };
            let precedence = sign.precedence();
            if precedence < least {
                return Ok(lhs);
            }
            length += 1;
            // Recursive walks over the tree go down one level for each operator of a chain.
            self.grow(length, token.span())?;
            self.height = self.height.max(height);
            self.take()?;
            let rhs = self.duration_binary(precedence + u8::from(sign != BinaryOp::Pow), place)?;
            // Upstream refuses a disabled expression once its operands are parsed.
            self.gate(lhs.span)?;
            // Only a literal zero is known now; all other zeros are found by the planner.
            let is_zero = rhs.literal().is_some_and(|number| number.value == 0.0);
            match op {
                DurationOp::Div if is_zero => {
                    return Err(self.error(token.span(), "division by zero"));
                }
                DurationOp::Mod if is_zero => {
                    return Err(self.error(token.span(), "modulo by zero"));
                }
                _ => {}
            }
            let span = Span { start: lhs.span.start, end: rhs.span.end };
            let kind = DurationExprKind::Binary(op, Box::new(lhs), Box::new(rhs));
            lhs = DurationExpr { span, is_wrapped: false, kind };
        }
    }

    /// Parses a number, a function, or an expression in parentheses.
    fn duration_operand(&mut self, place: ErrorContext<'_>) -> Parsed {
        let token = self.peek()?;
        let kind = match token.kind {
            TokenKind::Number | TokenKind::Duration => {
                let number = self.number()?;
                self.check_range(&number, token.span())?;
                DurationExprKind::Number(number)
            }
            TokenKind::Keyword(word @ (Keyword::Step | Keyword::Range)) => {
                self.take()?;
                self.duration_sign(TokenKind::LeftParen, place)?;
                self.duration_sign(TokenKind::RightParen, place)?;
                self.gate(self.span_from(token.start))?;
                match word {
                    Keyword::Step => DurationExprKind::Step,
                    _ => DurationExprKind::Range,
                }
            }
            TokenKind::Keyword(word @ (Keyword::MinOf | Keyword::MaxOf)) => {
                self.take()?;
                self.duration_sign(TokenKind::LeftParen, place)?;
                let first = self.duration_binary(0, place)?;
                self.duration_sign(TokenKind::Comma, place)?;
                let second = self.duration_binary(0, place)?;
                self.duration_sign(TokenKind::RightParen, place)?;
                self.gate(self.span_from(token.start))?;
                let op = if word == Keyword::MinOf { DurationOp::Min } else { DurationOp::Max };
                DurationExprKind::Binary(op, Box::new(first), Box::new(second))
            }
            TokenKind::LeftParen => {
                self.take()?;
                let mut inner = self.duration_binary(0, place)?;
                self.duration_sign(TokenKind::RightParen, place)?;
                self.gate(inner.span)?;
                // Upstream's position of a literal begins at `(`, and does not include `)`.
                if inner.literal().is_some() {
                    inner.span.start = token.start;
                }
                inner.is_wrapped = true;
                return Ok(inner);
            }
            _ => return Err(self.unexpected_in(place.0, place.1)),
        };
        Ok(DurationExpr { span: self.span_from(token.start), is_wrapped: false, kind })
    }

    fn signed(&mut self, start: u32, sign: Option<UnaryOp>, mut inner: DurationExpr) -> Parsed {
        let Some(sign) = sign else { return Ok(inner) };
        let is_negative = sign == UnaryOp::Minus;
        let span = Span { start, end: inner.span.end };
        // Upstream folds a sign into a literal and drops a plus.
        match &mut inner.kind {
            DurationExprKind::Number(number) if !inner.is_wrapped => {
                number.negate_if(is_negative);
                inner.span = span;
                Ok(inner)
            }
            _ if is_negative => {
                let kind = DurationExprKind::Unary(sign, Box::new(inner));
                Ok(DurationExpr { span, is_wrapped: false, kind })
            }
            _ => Ok(inner),
        }
    }

    fn duration_sign(
        &mut self,
        kind: TokenKind,
        place: ErrorContext<'_>,
    ) -> Result<(), ParseError> {
        match self.take_if(kind)? {
            Some(_) => Ok(()),
            None => Err(self.unexpected_in(place.0, place.1)),
        }
    }

    fn check_range(&self, number: &NumberLiteral, span: Span) -> Result<(), ParseError> {
        match number.value.abs() > SECONDS_MAX {
            true => Err(self.error(span, "duration out of range")),
            false => Ok(()),
        }
    }

    fn gate(&self, span: Span) -> Result<(), ParseError> {
        match self.options.duration_expressions {
            true => Ok(()),
            false => Err(self.error(span, "experimental duration expression is not enabled")),
        }
    }
}
