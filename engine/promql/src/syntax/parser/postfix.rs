//! Parsing of modifiers after an operand: ranges, `offset`, `@`, `anchored`, `smoothed`.

use super::{Expr, ExprKind, ParseError, Parsed, Parser, Span, TokenKind};
use crate::syntax::{
    At, DurationExpr, DurationExprKind, DurationValue, Keyword, MatrixSelector, RangeBounds,
    Subquery, TimeShift, UnaryOp,
};

impl Parser<'_> {
    pub(super) fn postfix(&mut self) -> Parsed {
        let mut expr = self.primary()?;
        loop {
            expr = match self.peek()?.kind {
                TokenKind::LeftBracket => self.range(expr)?,
                TokenKind::At => self.at(expr)?,
                TokenKind::Keyword(Keyword::Offset) => self.offset(expr)?,
                TokenKind::Keyword(Keyword::Anchored) => {
                    self.bounds(expr, RangeBounds::Anchored)?
                }
                TokenKind::Keyword(Keyword::Smoothed) => {
                    self.bounds(expr, RangeBounds::Smoothed)?
                }
                _ => return Ok(expr),
            };
        }
    }

    /// Parses a range in brackets, or a subquery.
    fn range(&mut self, expr: Expr) -> Parsed {
        const WANTED: &str = "number, duration, step(), or range()";
        let bracket = self.take()?;
        let range = self.range_duration("subquery or range selector", WANTED)?;
        let start = expr.span.start;
        if self.take_if(TokenKind::RightBracket)?.is_some() {
            // Everything but a plain selector needs the colon of a subquery.
            let ExprKind::Vector(selector) = expr.kind else {
                let text = "ranges only allowed for vector selectors";
                return Err(self.error(self.span_from(bracket.start), text));
            };
            // Modifiers follow the range; upstream has errors for modifiers before a range.
            let early = match &selector.shift {
                TimeShift { offset: Some(_), .. } => "no offset modifiers allowed before range",
                TimeShift { at: Some(_), .. } => "no @ modifiers allowed before range",
                _ => {
                    let kind = MatrixSelector { selector, selector_span: expr.span, range };
                    let span = self.span_from(start);
                    return Ok(Expr { span, kind: ExprKind::Matrix(kind) });
                }
            };
            return Err(self.error(self.span_from(bracket.start), early));
        }
        if self.take_if(TokenKind::Colon)?.is_none() {
            return Err(self.unexpected_in("subquery or range", "\":\" or \"]\""));
        }
        let mut step = None;
        if self.take_if(TokenKind::RightBracket)?.is_none() {
            let wanted = "number, duration, step(), range(), or \"]\"";
            step = Some(self.range_duration("subquery selector", wanted)?);
            if self.take_if(TokenKind::RightBracket)?.is_none() {
                return Err(self.unexpected_in("subquery selector", "\"]\""));
            }
        }
        let span = self.span_from(start);
        // Subqueries follow one another without nesting, so they are counted by height.
        self.grow(self.height, span)?;
        let subquery = Subquery { expr, range, step, shift: TimeShift::default() };
        Ok(Expr { span, kind: ExprKind::Subquery(Box::new(subquery)) })
    }

    fn range_duration(&mut self, context: &str, wanted: &str) -> Result<DurationValue, ParseError> {
        let duration = self.duration(context, wanted)?;
        // Upstream reads the next token before it checks the value.
        self.peek()?;
        if duration.literal().is_some_and(|number| number.value <= 0.0) {
            return Err(self.error(duration.span, "duration must be greater than 0"));
        }
        Ok(duration.into())
    }

    fn offset(&mut self, mut expr: Expr) -> Parsed {
        self.take()?;
        let offset = self.offset_duration()?;
        let span = expr.span;
        let Some(shift) = shift_of(&mut expr) else {
            let text = "offset modifier must be preceded by an instant vector selector or range \
                        vector selector or a subquery";
            return Err(self.error(span, text));
        };
        if shift.offset.is_some() {
            return Err(self.error(span, "offset may not be set multiple times"));
        }
        // Upstream does not record an offset of zero, so another offset may follow.
        shift.offset = Some(offset.into()).filter(|offset| *offset != DurationValue::Ms(0));
        expr.span.end = self.end;
        Ok(expr)
    }

    fn at(&mut self, mut expr: Expr) -> Parsed {
        self.take()?;
        let span = expr.span;
        let unexpected = |parser: &mut Self| Err(parser.unexpected_in("@", "timestamp"));
        let at = match self.peek()?.kind {
            TokenKind::Keyword(word @ (Keyword::Start | Keyword::End)) => {
                self.take()?;
                for kind in [TokenKind::LeftParen, TokenKind::RightParen] {
                    if self.take_if(kind)?.is_none() {
                        return unexpected(self);
                    }
                }
                if word == Keyword::Start { At::Start } else { At::End }
            }
            _ => {
                let sign = self.sign()?;
                if !matches!(self.peek()?.kind, TokenKind::Number | TokenKind::Duration) {
                    return unexpected(self);
                }
                let mut number = self.number()?;
                number.negate_if(sign == Some(UnaryOp::Minus));
                let seconds = number.value;
                // 2^63 is the first number that is not a 64-bit integer.
                if !seconds.is_finite() || seconds.abs() >= 9_223_372_036_854_775_808.0 {
                    let shown = match seconds {
                        _ if seconds.is_nan() => "NaN".to_owned(),
                        _ if seconds == f64::INFINITY => "+Inf".to_owned(),
                        _ if seconds == f64::NEG_INFINITY => "-Inf".to_owned(),
                        _ => format!("{seconds:.6}"),
                    };
                    let text = format!("timestamp out of bounds for @ modifier: {shown}");
                    return Err(self.error(span, text));
                }
                // A product beyond the range of times saturates, as the cast does.
                At::Time((seconds * 1000.0).round() as i64)
            }
        };
        let Some(shift) = shift_of(&mut expr) else {
            let text = "@ modifier must be preceded by an instant vector selector or range vector \
                        selector or a subquery";
            return Err(self.error(span, text));
        };
        if shift.at.is_some() {
            return Err(self.error(span, "@ <timestamp> may not be set multiple times"));
        }
        shift.at = Some(at);
        expr.span.end = self.end;
        Ok(expr)
    }

    fn bounds(&mut self, mut expr: Expr, bounds: RangeBounds) -> Parsed {
        let word = if bounds == RangeBounds::Anchored { "anchored" } else { "smoothed" };
        let span: Span = expr.span;
        self.take()?;
        if !self.options.extended_range_selectors {
            let text = format!("{word} modifier is experimental and not enabled");
            return Err(self.error(span, text));
        }
        let selector = match &mut expr.kind {
            ExprKind::Vector(selector) => selector,
            ExprKind::Matrix(matrix) => &mut matrix.selector,
            ExprKind::Subquery(_) => {
                let text = format!("{word} modifier is not supported for subqueries");
                return Err(self.error(span, text));
            }
            _ => return Err(self.error(span, format!("{word} modifier not implemented"))),
        };
        if selector.bounds != RangeBounds::Samples && selector.bounds != bounds {
            let text = "anchored and smoothed modifiers cannot be used together";
            return Err(self.error(span, text));
        }
        selector.bounds = bounds;
        Ok(expr)
    }
}

/// Returns the field for `offset` and `@` of an expression; `None` if it accepts neither.
fn shift_of(expr: &mut Expr) -> Option<&mut TimeShift> {
    match &mut expr.kind {
        ExprKind::Vector(selector) => Some(&mut selector.shift),
        ExprKind::Matrix(matrix) => Some(&mut matrix.selector.shift),
        ExprKind::Subquery(subquery) => Some(&mut subquery.shift),
        _ => None,
    }
}

impl From<DurationExpr> for DurationValue {
    /// Computes a literal at once; expressions are computed when the query's range is known.
    fn from(expr: DurationExpr) -> DurationValue {
        match (&expr.kind, expr.is_wrapped) {
            (DurationExprKind::Number(number), false) => {
                // Go's durations have whole nanoseconds, which are then cut to milliseconds.
                DurationValue::Ms(((number.value * 1e9).round() / 1e6) as i64)
            }
            _ => DurationValue::Expr(Box::new(expr)),
        }
    }
}
