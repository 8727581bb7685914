//! Where series become the answer.

use super::budget::Held;
use super::context::Ready;
use super::pipeline::{Operator, Out};
use super::series::Series;
use super::unite::Unite;
use crate::error::EvalError;
use crate::model::{drop_metadata, has_metadata};
use crate::plan::{self, Grid, Names, Port, Sorting};
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
    plan: plan::Root,
    grid: Grid,
    span: Span,
    waiting: Vec<Series>,
    held: Held,
}

impl Root {
    /// Values at these times. All series wait if later ones may make the query fail. Those that are
    /// to be sorted wait, too; if they would take too much of the query's memory, they are given as
    /// they come.
    pub fn new(plan: plan::Root, grid: Grid, span: Span) -> Root {
        Root { plan, grid, span, waiting: Vec::new(), held: Held::default() }
    }

    /// Gives the series that wait.
    fn release(&mut self, out: &mut Out<'_>) -> Result<(), EvalError> {
        let mut waiting = std::mem::take(&mut self.waiting);
        if self.plan.sorting == Sorting::All {
            waiting.sort_unstable_by(|a, b| a.labels.cmp(&b.labels));
        }
        out.context.budget.give(std::mem::take(&mut self.held));
        let mut waiting = waiting.into_iter();
        waiting
            .try_for_each(|series| out.context.answer(Ready::Column(series, self.grid), self.span))
    }
}

impl Operator for Root {
    fn push(&mut self, _: Port, series: Series, out: &mut Out<'_>) -> Result<(), EvalError> {
        if self.plan.sorting == Sorting::IfHeld && out.context.has_held_series {
            // Held for `__type__` or `__unit__`: series with these come before those without, and
            // after those that were given already.
            self.plan.sorting = Sorting::All;
        }
        let may_fail = self.plan.may_fail || out.context.may_fail;
        if self.plan.sorting != Sorting::All && !may_fail {
            return out.context.answer(Ready::Column(series, self.grid), self.span);
        }
        let held = series.held();
        self.held.bytes += held.bytes;
        self.held.samples += held.samples;
        out.context.budget.take(held, self.span)?;
        self.waiting.push(series);
        if !may_fail && out.context.budget.is_too_much_to_sort(self.held) {
            self.plan.sorting = Sorting::None;
            out.context.is_sorted = false;
            return self.release(out);
        }
        Ok(())
    }

    fn end(&mut self, _: Port, out: &mut Out<'_>) -> Result<(), EvalError> {
        self.release(out)
    }
}
