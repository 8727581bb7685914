//! Parsing of aggregations and lists of labels.

use super::{Expr, ExprKind, ParseError, Parsed, Parser, TokenKind};
use crate::syntax::token::Token;
use crate::syntax::{Aggregate, AggregateOp, Keyword};

/// Labels of `by` or `without`; true for `without`.
type Grouping = (Vec<String>, bool);

impl Parser<'_> {
    /// Parses an aggregation after its operator.
    pub(super) fn aggregate(&mut self, op: AggregateOp, word: Token<'_>) -> Parsed {
        let mut grouping = self.grouping()?;
        let outer = std::mem::replace(&mut self.in_aggregation, true);
        let mut args = self.arguments()?;
        self.in_aggregation = outer;
        // The clause may be before or after the arguments, but only once.
        if grouping.is_none() {
            grouping = self.grouping()?;
        }
        // All checks follow the whole aggregation, so that syntax errors within come first.
        let span = self.span_from(word.start);
        let fail = |text: String| Err(self.error(span, text));
        if args.is_empty() {
            return fail("no arguments for aggregate expression provided".into());
        }
        if op.is_experimental() && !self.options.experimental_functions {
            return fail(format!(
                "{}() is experimental and must be enabled with {}",
                op.name(),
                self.options.experimental_functions_switch
            ));
        }
        let wanted = 1 + usize::from(op.param_type().is_some());
        let count = args.len();
        let (param, expr) = match (count == wanted, args.pop()) {
            (true, Some(expr)) => (args.pop(), expr),
            _ => {
                return fail(format!(
                    "wrong number of arguments for aggregate expression provided, \
                     expected {wanted}, got {count}"
                ));
            }
        };
        // `arguments` has set `height` to that of the highest argument.
        self.grow(self.height, span)?;
        let (grouping, is_without) = grouping.unwrap_or_default();
        let aggregate = Aggregate { op, expr, param, grouping, is_without };
        Ok(Expr { span, kind: ExprKind::Aggregate(Box::new(aggregate)) })
    }

    fn grouping(&mut self) -> Result<Option<Grouping>, ParseError> {
        if self.take_word(Keyword::By)? {
            return Ok(Some((self.labels()?, false)));
        }
        match self.take_word(Keyword::Without)? {
            true => Ok(Some((self.labels()?, true))),
            false => Ok(None),
        }
    }

    pub(super) fn labels(&mut self) -> Result<Vec<String>, ParseError> {
        const CONTEXT: &str = "grouping opts";
        if self.take_if(TokenKind::LeftParen)?.is_none() {
            return Err(self.unexpected_in(CONTEXT, "\"(\""));
        }
        let mut labels = Vec::new();
        while self.take_if(TokenKind::RightParen)?.is_none() {
            let token = self.peek()?;
            labels.push(match token.kind {
                TokenKind::Text => {
                    let label = self.string()?;
                    let Some(name) = label.label_name() else {
                        let text = format!("invalid label name for grouping: {}", label.quoted());
                        return Err(self.error(token.span(), text));
                    };
                    name.to_owned()
                }
                kind if kind.is_label_name() => self.take()?.text.to_owned(),
                _ => return Err(self.unexpected_in(CONTEXT, "label")),
            });
            // A trailing comma is allowed here, unlike in arguments.
            if self.take_if(TokenKind::Comma)?.is_none()
                && self.peek()?.kind != TokenKind::RightParen
            {
                return Err(self.unexpected_in(CONTEXT, "\",\" or \")\""));
            }
        }
        Ok(labels)
    }
}
