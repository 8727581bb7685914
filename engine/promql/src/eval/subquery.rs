//! Range functions over the values of a subquery.

use super::budget::Usage;
use super::buffer::Buffer;
use super::fold::Fold;
use super::pipeline::{Operator, Out};
use super::series::Series;
use crate::error::EvalError;
use crate::plan::{FoldPlan, Grid, Port};
use crate::syntax::Span;

/// A fold over the values of a subquery instead of samples.
pub struct SubqueryFold {
    fold: Fold,
    inner: Grid,
    series_port: Port,
    buffer: Buffer,
    buffer_held: Usage,
    memory_held: Usage,
    span: Span,
}

impl SubqueryFold {
    pub fn new(plan: FoldPlan, grid: Grid, inner: Grid, series_port: Port, span: Span) -> Self {
        let fold = Fold::new(plan, grid, span);
        let (buffer, buffer_held) = (Buffer::default(), Usage::default());
        let memory_held = Usage::default();
        SubqueryFold { fold, inner, series_port, buffer, buffer_held, memory_held, span }
    }
}

impl Operator for SubqueryFold {
    fn push(&mut self, port: Port, series: Series, out: &mut Out<'_>) -> Result<(), EvalError> {
        if port != self.series_port {
            self.fold.set_scalar(port, series);
            return Ok(());
        }
        let was_dropped = series.drop_name;
        // The memory of the buffer is counted before it is allocated.
        let budget = &mut out.context.budget;
        budget.set(&mut self.buffer_held, Buffer::held_of(&series.column), self.span)?;
        self.buffer.fill(&series.column, self.inner);
        // The fold reads from `buffer`, so the column can serve as its result.
        out.context.recycle(series.column);
        self.fold.begin(series.labels, out.context);
        self.fold.advance(&self.buffer, out.context)?;
        let memory = Usage { bytes: self.fold.memory_bytes(), samples: 0 };
        out.context.budget.set(&mut self.memory_held, memory, self.span)?;
        let mut series = self.fold.finish(out.context)?;
        // `finish` makes a new series, which would lose the mark of the inner expression.
        series.drop_name |= was_dropped;
        out.emit(series)
    }

    fn end(&mut self, _: Port, out: &mut Out<'_>) -> Result<(), EvalError> {
        self.fold.release(out.context);
        out.context.budget.give(std::mem::take(&mut self.buffer_held));
        out.context.budget.give(std::mem::take(&mut self.memory_held));
        self.buffer = Buffer::default();
        Ok(())
    }
}
