//! Parsing of binary and unary operators by precedence climbing.

use super::{Expr, ExprKind, ParseError, Parsed, Parser, Span, TokenKind};
use crate::syntax::{
    Binary, BinaryOp, Cardinality, Keyword, Matching, NumberLiteral, UnaryOp, ValueType,
};

/// Modifiers between a binary operator and its right operand.
#[derive(Default)]
struct Modifiers {
    returns_bool: bool,
    matching: Matching,
}

impl Parser<'_> {
    pub(super) fn expression(&mut self) -> Parsed {
        self.binary(0)
    }

    /// Parses an expression whose operators bind at least as strongly as `least`.
    fn binary(&mut self, least: u8) -> Parsed {
        self.go_down()?;
        let mut lhs = self.unary()?;
        let (mut height, mut length) = (self.height, 0);
        while let TokenKind::Operator(op) = self.peek()?.kind {
            let precedence = op.precedence();
            if precedence < least {
                break;
            }
            self.take()?;
            let modifiers = self.modifiers()?;
            // `^` is right-associative: its right operand may contain another `^`.
            let rhs = self.binary(precedence + u8::from(op != BinaryOp::Pow))?;
            let span = Span { start: lhs.span.start, end: rhs.span.end };
            let matching = modifiers.matching;
            let fills = matching.fill_lhs.is_some() || matching.fill_rhs.is_some();
            if fills && !self.options.fill_modifiers {
                let text = "binop fill modifiers are experimental and not enabled";
                return Err(self.error(span, text));
            }
            // A chain counts as one level, since it is walked in loops.
            height = height.max(self.height);
            length += 1;
            if length > self.options.chain_max {
                let text = format!("more than {} operators follow one another", length - 1);
                return Err(self.error(span, text));
            }
            let is_scalar = [&lhs, &rhs].iter().all(|it| it.value_type() == ValueType::Scalar);
            let value_type = if is_scalar { ValueType::Scalar } else { ValueType::Vector };
            let binary = Binary {
                op,
                lhs,
                rhs,
                returns_bool: modifiers.returns_bool,
                // The type check removes the matching if an operand is a scalar.
                matching: Some(matching),
                value_type,
            };
            lhs = Expr { span, kind: ExprKind::Binary(Box::new(binary)) };
        }
        if length > 0 {
            self.grow(height, lhs.span)?;
        }
        self.go_up();
        Ok(lhs)
    }

    fn unary(&mut self) -> Parsed {
        let start = self.peek()?.start;
        let Some(op) = self.sign()? else { return self.postfix() };
        // Signs bind as strongly as multiplication: only a power comes first.
        let mut inner = self.binary(BinaryOp::Pow.precedence())?;
        let span = Span { start, end: inner.span.end };
        // Upstream folds the sign into the number, and so prints both as one literal.
        if let ExprKind::Number(number) = &mut inner.kind {
            number.negate_if(op == UnaryOp::Minus);
            inner.span = span;
            return Ok(inner);
        }
        self.grow(self.height, span)?;
        Ok(Expr { span, kind: ExprKind::Unary(op, Box::new(inner)) })
    }

    pub(super) fn sign(&mut self) -> Result<Option<UnaryOp>, ParseError> {
        let op = match self.peek()?.kind {
            TokenKind::Operator(BinaryOp::Add) => UnaryOp::Plus,
            TokenKind::Operator(BinaryOp::Sub) => UnaryOp::Minus,
            _ => return Ok(None),
        };
        self.take()?;
        Ok(Some(op))
    }

    fn modifiers(&mut self) -> Result<Modifiers, ParseError> {
        let mut modifiers =
            Modifiers { returns_bool: self.take_word(Keyword::Bool)?, ..Modifiers::default() };
        let matching = &mut modifiers.matching;
        matching.is_on = self.take_word(Keyword::On)?;
        if matching.is_on || self.take_word(Keyword::Ignoring)? {
            matching.labels = self.labels()?;
            let cardinality = match self.peek()?.kind {
                TokenKind::Keyword(Keyword::GroupLeft) => Some(Cardinality::ManyToOne),
                TokenKind::Keyword(Keyword::GroupRight) => Some(Cardinality::OneToMany),
                _ => None,
            };
            if let Some(cardinality) = cardinality {
                self.take()?;
                matching.cardinality = cardinality;
                // A token other than `(` that can begin an operand means that no labels follow.
                let kind = self.peek()?.kind;
                if kind == TokenKind::LeftParen || !kind.begins_expression() {
                    matching.include = self.labels()?;
                }
            }
        }
        // `fill_left` and `fill_right` may come in any order, but not with `fill`.
        if self.take_word(Keyword::Fill)? {
            let value = Some(self.fill_value()?);
            (matching.fill_lhs, matching.fill_rhs) = (value, value);
        } else if self.take_word(Keyword::FillLeft)? {
            matching.fill_lhs = Some(self.fill_value()?);
            if self.take_word(Keyword::FillRight)? {
                matching.fill_rhs = Some(self.fill_value()?);
            }
        } else if self.take_word(Keyword::FillRight)? {
            matching.fill_rhs = Some(self.fill_value()?);
            if self.take_word(Keyword::FillLeft)? {
                matching.fill_lhs = Some(self.fill_value()?);
            }
        }
        Ok(modifiers)
    }

    fn fill_value(&mut self) -> Result<f64, ParseError> {
        self.expect(TokenKind::LeftParen)?;
        let sign = self.sign()?;
        let mut number = self.number()?;
        number.negate_if(sign == Some(UnaryOp::Minus));
        self.expect(TokenKind::RightParen)?;
        Ok(number.value)
    }

    pub(super) fn take_word(&mut self, word: Keyword) -> Result<bool, ParseError> {
        Ok(self.take_if(TokenKind::Keyword(word))?.is_some())
    }
}

impl NumberLiteral {
    pub(super) fn negate_if(&mut self, negates: bool) {
        if negates {
            self.value = -self.value;
        }
    }
}
