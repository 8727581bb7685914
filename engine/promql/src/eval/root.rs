//! Where series become the answer.

use super::EvalError;
use super::context::Ready;
use super::pipeline::{Operator, Out};
use super::series::{Series, drop_metadata, has_metadata};
use super::unite::Unite;
use crate::plan::{Grid, Names, Port};
use crate::syntax::Span;

/// Takes out names whose removal was delayed.
pub struct Cleanup {
    names: Names,
    unite: Unite,
    span: Span,
}

impl Cleanup {
    /// For series whose names are known so far.
    pub fn new(names: Names, span: Span) -> Cleanup {
        Cleanup { names, unite: Unite::default(), span }
    }
}

impl Operator for Cleanup {
    fn push(&mut self, _: Port, mut series: Series, out: &mut Out<'_>) -> Result<(), EvalError> {
        let is_distinct = self.names != Names::Any && !has_metadata(&series.labels);
        if series.drop_name {
            drop_metadata(&mut series.labels);
        }
        self.unite.push(series, is_distinct, self.span, out)
    }

    fn end(&mut self, _: Port, out: &mut Out<'_>) -> Result<(), EvalError> {
        self.unite.end(out)
    }
}

/// Gives series to the caller.
pub struct Root {
    grid: Grid,
    span: Span,
}

impl Root {
    /// Values at these times.
    pub fn new(grid: Grid, span: Span) -> Root {
        Root { grid, span }
    }
}

impl Operator for Root {
    fn push(&mut self, _: Port, series: Series, out: &mut Out<'_>) -> Result<(), EvalError> {
        out.context.answer(Ready::Column(series, self.grid), self.span)
    }

    fn end(&mut self, _: Port, _: &mut Out<'_>) -> Result<(), EvalError> {
        Ok(())
    }
}
